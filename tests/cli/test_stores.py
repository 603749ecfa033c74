"""Which commands make a store, what the others say where there is none, and what is asked before one is deleted."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.web import Answer, Web, rss

Headwater = Callable[..., Any]
READERS = [
    "login",
    "token",
    "sources",
    "stream",
    "search x",
    "crawl",
    "run clean-hot",
    "x status",
    "dlq list",
    "export",
    "export --what posts",
    "backup nowhere.backup",
]


@pytest.mark.parametrize("words", READERS)
def test_where_there_is_no_store_a_command_says_so_and_makes_none(
    headwater: Headwater, environ: dict[str, str], words: str
) -> None:
    folder = Path(environ["HEADWATER_DATA_DIR"])
    ran = headwater(*words.split())
    assert (ran.code, ran.out) == (1, "")
    assert f"There is no store here. Headwater looked for {folder / 'headwater.db'}." in ran.err
    for advice in ("HEADWATER_DATA_DIR", "`headwater up`", "`add`", "`import`", "`db upgrade`"):
        assert advice in ran.err
    assert not folder.exists()


def test_checking_and_trying_make_no_store(headwater: Headwater, environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text(rss("one"))
    assert headwater("try", str(tmp_path / "feed.xml")).code == 0
    assert "empty; the first start fills it" in headwater("doctor").out
    assert not Path(environ["HEADWATER_DATA_DIR"]).exists()


def test_an_empty_database_of_a_server_is_named_without_its_password(headwater: Headwater, postgres_url: str) -> None:
    ran = headwater("login", HEADWATER_DATABASE_URL=postgres_url)
    assert ran.code == 1
    assert f"the tables of the database {postgres_url.rpartition('/')[2].partition('?')[0]} at " in ran.err
    assert "://" not in ran.err


def test_whoever_follows_something_gets_a_store(headwater: Headwater, world: Web, tmp_path: Path) -> None:
    world.pages["/a"] = Answer(rss("a"))
    (tmp_path / "in.opml").write_text(f'<opml><body><outline xmlUrl="{world.url("/a")}"/></body></opml>')
    for number, words in enumerate(
        (["add", world.url("/a")], ["import", str(tmp_path / "in.opml")], ["db", "upgrade"])
    ):
        folder = {"HEADWATER_DATA_DIR": str(tmp_path / str(number))}
        assert headwater(*words, **folder).code == 0
        assert headwater("login", **folder).code == 0


def test_a_downgrade_says_what_it_would_delete_and_needs_a_yes(
    headwater: Headwater, world: Web, empty_url: str
) -> None:
    world.pages["/a"] = Answer(rss("one", "two"))
    there = {"HEADWATER_DATABASE_URL": empty_url}
    headwater("add", world.url("/a"), **there)
    refused = headwater("db", "downgrade", "base", "--json", **there)
    assert (refused.code, refused.out) == (2, "")
    said = json.loads(refused.err)["detail"]
    assert "This deletes everything: 1 sources, 2 posts, 0 images" in said
    assert "Add --yes" in said
    partly = headwater("db", "downgrade", "0012", **there)
    assert partly.code == 2
    assert "secrets that a person gave are stored encrypted" in partly.err
    assert len(headwater("stream", "--json", **there).lines) == 2
    assert headwater("db", "downgrade", "base", "--yes", "--json", **there).lines == [{"revision": None}]
    assert json.loads(headwater("stream", "--json", **there).err)["error"] == "store_missing"


@pytest.mark.parametrize(("answer", "left"), [("n", 1), ("y", 0)])
def test_on_a_terminal_a_downgrade_asks(
    headwater: Headwater, environ: dict[str, str], world: Web, answer: str, left: int
) -> None:
    world.pages["/a"] = Answer(rss("one"))
    headwater("add", world.url("/a"))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", "db", "downgrade", "base"],
        env=environ, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(ours, f"{answer}\n".encode())
    out, err = process.communicate(timeout=200)
    os.close(ours)
    os.close(theirs)
    assert "This deletes everything: 1 sources, 1 posts" in err
    assert (process.returncode, "Nothing was changed." in out) == ((1, True) if left else (0, False))
    assert len(headwater("sources", "--json").lines) == left
