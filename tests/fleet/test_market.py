"""Daily figures of the market: visited like any source, or read from a file; stored once, with corrections."""

from __future__ import annotations

import json
import os
import random
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from headwater import wire
from headwater.cli.crawl import visit_now
from headwater.errors import Forbidden
from headwater.follow.add import follow
from headwater.model import MarketDay, Reader
from headwater.settings import load
from headwater.sim.market import as_csv, mined
from headwater.store import sources
from headwater.store.fleet import market
from headwater.store.tables import event_outbox, market_daily
from headwater.wire import Parts
from support import forked
from support.processes import kill, start, wait_until
from support.tenants import another_tenant
from support.web import Answer, Web

START = date(2026, 1, 1)
HEADER = "date,price_usd,difficulty,height_eod,blocks,fees_btc"
LINE = "2026-01-01,90000.5,1.2e14,930000,144,3.5"


@pytest.fixture
def owner(parts: Parts) -> Reader:
    return wire.prepare_store(parts)


async def visit(parts: Parts, owner: Reader, address: str) -> dict[str, Any]:
    added = await parts.db.write(follow, owner, address, parts.now(), kind="market")
    reports: list[dict[str, Any]] = []
    await visit_now(parts, [added.source_id], reports.append)
    return reports[0]


def updates(conn: Connection) -> list[dict[str, Any]]:
    found = conn.execute(select(event_outbox).where(event_outbox.c.kind == "market.updated").order_by("id")).all()
    assert {one.domain for one in found} <= {"ops"}  # E12
    return [one.payload for one in found]


async def test_a_visit_stores_the_days_and_publishes_them_once(parts: Parts, owner: Reader, world: Web) -> None:  # E8
    days = mined(START, 40)
    world.pages["/daily.csv"] = Answer(as_csv(days).decode())
    address = world.url("/daily.csv")

    first, again = await visit(parts, owner, address), await visit(parts, owner, address)

    assert (first["outcome"], again["outcome"]) == ("ok", "unchanged")
    stored = await parts.db.read(market.days_since, START)
    assert [one.day for one in stored] == [one.day for one in days]
    assert stored[7].price_usd == pytest.approx(days[7].price_usd, abs=0.01)
    assert stored[7].height == days[7].height
    [event] = await parts.db.read(updates)
    assert event == {
        "market": "BTC",
        "first_day": str(days[0].day),
        "last_day": str(days[-1].day),
        "days": 40,
        "origin": address,
    }
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert (source.status, source.title) == ("ok", "Bitcoin, day by day")
    assert str(days[-1].day) in source.note


async def test_a_corrected_day_keeps_what_was_said_before(parts: Parts, owner: Reader, world: Web) -> None:
    days = mined(START, 10)
    world.pages["/daily.csv"] = Answer(as_csv(days[:9]).decode())
    await visit(parts, owner, world.url("/daily.csv"))
    days[3] = days[3]._replace(price_usd=123_456.0)
    world.pages["/daily.csv"] = Answer(as_csv(days).decode())

    await visit(parts, owner, world.url("/daily.csv"))

    versions = await parts.db.read(market.versions, days[3].day)
    assert [(one.version, one.superseded_at is None) for one in versions] == [(1, False), (2, True)]
    assert versions[1].price_usd == 123_456.0
    assert [event["days"] for event in await parts.db.read(updates)] == [9, 2]
    assert len(await parts.db.read(market.days_since, START)) == 10


async def test_what_a_later_document_does_not_know_stays_known(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/daily.csv"] = Answer(as_csv(mined(START, 3)).decode())
    await visit(parts, owner, world.url("/daily.csv"))
    bare = [{"date": "2026-01-02", "price_usd": 91000, "height_eod": 936500, "blocks": 140, "fees_btc": 2}]
    world.pages["/daily.json"] = Answer(json.dumps({"days": bare}))

    await visit(parts, owner, world.url("/daily.json"))

    found = (await parts.db.read(market.days_since, START))[1]
    assert (found.price_usd, found.height) == (91000, 936500)
    assert found.difficulty is not None
    assert found.hashrate_th is not None


BAD = [
    ("date,price_usd\n", "It lacks difficulty, height_eod, blocks, fees_btc"),
    (f"{HEADER}\n{LINE}\n2026-01-02,nan,1,1,1,1\n", "Line 3 cannot be read: price_usd is 'nan'"),
    (f"{HEADER}\n{LINE}\n2026-01-02,-1,1,1,1,1\n", "Line 3 cannot be read: price_usd is '-1'"),
    (f"{HEADER}\n{LINE}\n2999-01-02,1,1,1,1,1\n", "Line 3 cannot be read: 2999-01-02 is in the future"),
    (f"{HEADER}\n{LINE}\n{LINE}\n", "Line 3: 2026-01-01 does not come after 2026-01-01"),
    (f"{HEADER}\n2026-01-01,1,1,1.5,1,1\n", "height_eod is '1.5', which is not a whole number"),
    (f"{HEADER}\n2026-01-01,1,1,1,99999999999,1\n", "blocks is '99999999999'"),
    (f"{HEADER}\n2026-01-01,1e999,1,1,1,1\n", "price_usd is '1e999'"),
    (f"{HEADER}\n2026-01-01\n", "height_eod is empty"),
    ('{"days": 7}', "The document has to be a list of days"),
    ('[7]', "Entry 1 is not an object"),
    ('[{"date": "2026-01-01", "price_usd": true, "height_eod": 1, "blocks": 1}]', "price_usd is True"),
    ("[{]", "cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "says"), BAD)
def test_a_bad_document_is_refused_as_a_whole_with_its_line(
    document: str, says: str, environ: dict[str, str], tmp_path: Path
) -> None:
    if "postgres" in environ["HEADWATER_DATABASE_URL"]:
        return  # it is refused before any store is opened
    (tmp_path / "bad.csv").write_text(document)

    answer = run(environ, "import", tmp_path / "bad.csv")

    assert answer.returncode == 2
    assert says in answer.stderr
    assert answer.stdout == ""
    assert run(environ, "show", "--json").stdout == ""


async def test_a_source_with_a_bad_document_fails_and_says_why(parts: Parts, owner: Reader, world: Web) -> None:
    document, says = BAD[1]
    world.pages["/daily.csv"] = Answer(document)

    report = await visit(parts, owner, world.url("/daily.csv"))

    assert report["outcome"] == "failed"
    assert says in report["error"]
    assert await parts.db.read(market.days_since, START) == []


def test_only_those_who_run_the_instance_decide_where_the_figures_come_from(parts: Parts, owner: Reader) -> None:
    other = parts.db.write_now(another_tenant)
    address = "https://market.example/daily.csv"

    with pytest.raises(Forbidden):
        parts.db.write_now(follow, other, address, parts.now(), kind="market")
    parts.db.write_now(follow, owner, address, parts.now(), kind="market")
    with pytest.raises(Forbidden):
        parts.db.write_now(follow, other, address, parts.now(), kind="rss")

    parts.db.write_now(follow, other, address, parts.now())
    assert [one.kind for one in parts.db.read_now(sources.watched, owner, parts.now())] == ["market"]


def test_the_address_in_the_settings_is_followed(environ: dict[str, str]) -> None:
    parts = wire.open_parts(load({**environ, "HEADWATER_MARKET_URL": "https://market.example/daily.csv"}))
    try:
        owner = wire.prepare_store(parts)
        wire.prepare_store(parts)
        [source] = parts.db.read_now(sources.watched, owner, parts.now())
        assert (source.kind, source.address) == ("market", "https://market.example/daily.csv")
    finally:
        parts.close()


def run(environ: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    return forked.run("-m", "headwater", "market", *map(str, words), env={**os.environ, **environ})


def test_a_file_is_imported_once(parts: Parts, environ: dict[str, str], tmp_path: Path) -> None:  # E8
    days = mined(START, 5)
    (tmp_path / "daily.csv").write_bytes(as_csv(days))

    answers = [json.loads(run(environ, "import", tmp_path / "daily.csv", "--json").stdout) for _ in range(2)]

    assert [(one["days"], one["changed"]) for one in answers] == [(5, 5), (5, 0)]
    assert len(parts.db.read_now(updates)) == 1
    shown = [json.loads(line) for line in run(environ, "show", "--days", 3, "--json").stdout.splitlines()]
    assert [one["day"] for one in shown] == [str(one.day) for one in days[-3:]]
    assert "97" in run(environ, "show").stdout or "USD" in run(environ, "show").stdout


IMPORT_UNTIL_KILLED = """
import sys
from datetime import date
from headwater import wire
from headwater.app import market
from headwater.model import MarketDay
from headwater.settings import load
from headwater.sim.market import mined

parts = wire.open_parts(load())
print("importing", flush=True)
for day in mined(date(2020, 1, 1), 2000)[int(sys.argv[1]):]:
    parts.db.write_now(market.import_days, [MarketDay(*day)], "file", parts.now())
"""


def test_a_killed_import_has_each_day_with_its_event_or_neither(parts: Parts, environ: dict[str, str]) -> None:  # D6
    def counted(conn: Connection) -> tuple[int, int]:
        days = conn.execute(select(func.count()).select_from(market_daily)).scalar_one()
        return days, sum(event["days"] for event in updates(conn))

    for _ in range(4):
        before, _ = parts.db.read_now(counted)
        process = start(environ, IMPORT_UNTIL_KILLED, str(max(before - 3, 0)), says="importing")
        wait_until(lambda least=before + random.randint(2, 20): parts.db.read_now(counted)[0] >= least)  # type: ignore[misc]
        kill(process)
        stored, published = parts.db.read_now(counted)
        assert stored == published
    days = [MarketDay(*one) for one in mined(date(2020, 1, 1), 2000)]
    kept = parts.db.read_now(market.days_since, date(2020, 1, 1))
    assert kept == days[: len(kept)]


def test_the_last_known_day_is_one_with_price_and_difficulty(parts: Parts) -> None:
    days = [MarketDay(*one) for one in mined(START, 3)]
    days[2] = days[2]._replace(price_usd=None)

    parts.db.write_now(market.save_days, days, "file", parts.now())

    latest = parts.db.read_now(market.latest)
    assert latest is not None
    assert latest.day == START + timedelta(days=1)
