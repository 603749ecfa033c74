"""The page that says how to add a consumer is followed to the letter."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, select

from headwater.events import replay
from headwater.events.catalogue import POST_STORED
from headwater.events.delivery import Consumer
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.log.tail import Window
from headwater.store.sql import BigId
from support.log import consume_all
from support.posts import NOON, a_post, a_source, visited

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "consumer.md"


@pytest.fixture
def page() -> dict[str, Any]:
    """What the page's code declares. `store/tables/posts.py` has its imports already; those are given here."""
    made: dict[str, Any] = {"Table": Table, "Column": Column, "Integer": Integer, "BigId": BigId}
    made["metadata"] = MetaData()
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["store/tables/posts.py", "store/tallies.py", "consumers/tallies.py"]
    for name, code in blocks:
        if name == "consumers/tallies.py":
            made["tallies"] = SimpleNamespace(add=made["add"], empty=made["empty"])
        exec(compile(code, f"{PAGE.name}: {name}", "exec"), made)
        if name == "store/tables/posts.py":
            made["table"] = made["tallies"]
    return made


def test_the_page_makes_a_consumer_that_counts_once_and_can_be_rebuilt(
    page: dict[str, Any], db: Database, owner: Reader
) -> None:
    consumer: Consumer = page["CONSUMER"]
    page["metadata"].create_all(db.engine)

    def counted() -> dict[int, int]:
        rows = db.read_now(lambda conn: conn.execute(select(page["table"])).all())
        return {row.source_id: row.posts for row in rows}

    source_id = db.write_now(a_source, owner)
    db.write_now(visited, source_id, [a_post("1"), a_post("2")], NOON)
    consume_all(db, consumer)
    db.write_now(visited, source_id, [a_post("3")], NOON)
    consume_all(db, consumer)
    assert counted() == {source_id: 3}
    window = Window(NOON, NOON + timedelta(hours=1), frozenset({POST_STORED.name}))
    assert replay.replay_window(db, consumer, window, lambda: NOON).handled == 3
    assert counted() == {source_id: 3}
    db.write_now(replay.rebuild, consumer, NOON)
    assert counted() == {}
    assert sum(replay.catch_up(db, consumer, lambda: NOON)) >= 3
    assert counted() == {source_id: 3}


def test_the_page_names_every_field_that_a_consumer_can_declare() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for field in Consumer._fields:
        assert f"`{field}`" in text or field in ("name", "kinds"), field
