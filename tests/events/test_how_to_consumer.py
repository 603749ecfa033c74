"""The page that says how to add a consumer is followed to the letter, in a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.events.delivery import Consumer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "consumer.md"
TESTS = Path(__file__).resolve().parents[1]
PACKAGE = Path(headwater.__file__).parent
COUNT = """
import json, sys
from datetime import timedelta

from sqlalchemy import text

from headwater.consumers.tallies import CONSUMER
from headwater.events import replay
from headwater.events.catalogue import POST_STORED
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.log.outbox import Window
from support.log import consume_all
from support.posts import NOON, a_post, a_source, visited

db = Database(sys.argv[1])
migrate.upgrade(db)
seen = []

def note():
    rows = db.read_now(lambda conn: conn.execute(text("SELECT source_id, posts FROM tallies")).all())
    seen.append([(row.source_id - source_id, row.posts) for row in rows])

source_id = db.write_now(a_source, db.write_now(accounts.make_owner, NOON))
db.write_now(visited, source_id, [a_post("1"), a_post("2")], NOON)
consume_all(db, CONSUMER)
db.write_now(visited, source_id, [a_post("3")], NOON)
consume_all(db, CONSUMER)
note()
window = Window(NOON, NOON + timedelta(hours=1), frozenset({POST_STORED.name}))
assert replay.replay_window(db, CONSUMER, window, lambda: NOON).handled == 3
note()
db.write_now(replay.rebuild, CONSUMER, NOON)
note()
assert sum(replay.catch_up(db, CONSUMER, lambda: NOON)) >= 3
note()
print(json.dumps(seen))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package in which everything was done that the page says."""
    copy = tmp_path / "headwater"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    newest = max(file.name[:4] for file in (copy / "store" / "migrations" / "versions").glob("0*.py"))
    for name, code in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        file = copy / name
        if name == "wire/parts.py":
            _add_to(file, code)
        elif "migrations" in name:
            number = f"{int(newest) + 1:04}"
            next_one = re.sub(r'^down_revision = "\d+"', f'down_revision = "{newest}"', code, flags=re.MULTILINE)
            next_one = re.sub(r'^revision = "\d+"', f'revision = "{number}"', next_one, flags=re.MULTILINE)
            file.with_name(number + file.name[4:]).write_text(next_one)
        else:
            file.write_text((file.read_text() if file.exists() else "") + "\n\n" + code)
    return copy


def _add_to(file: Path, line: str) -> None:
    """A line that the page shows with the new consumer in it stands in the file without it."""
    text, without = file.read_text(encoding="utf-8"), re.sub(r"tallies(\.CONSUMER)?, ", "", line)
    assert text.count(without) == 1, f"{file.name} does not have the line that {PAGE.name} changes: {without}"
    file.write_text(text.replace(without, line), encoding="utf-8")


def _run(package: Path, url: str, *words: str) -> str:
    environ = os.environ | {
        "PYTHONPATH": f"{package.parent}{os.pathsep}{TESTS}",
        "HEADWATER_DATABASE_URL": url,
        "HEADWATER_DATA_DIR": str(package.parent / "data"),
    }
    answer = subprocess.run([sys.executable, *words], env=environ, cwd=package.parent, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.timeout(300)
def test_the_page_makes_a_consumer_that_counts_once_and_can_be_rebuilt(package: Path, empty_url: str) -> None:
    seen = json.loads(_run(package, empty_url, "-c", COUNT, empty_url))
    assert seen == [[[0, 3]], [[0, 3]], [], [[0, 3]]]
    commands = re.findall(r"^headwater (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        _run(package, empty_url, "-m", "headwater", *shlex.split(command, comments=True))


def test_the_page_names_every_field_that_a_consumer_can_declare() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for field in Consumer._fields:
        assert f"`{field}`" in text or field in ("name", "kinds"), field
