"""How a list comes to be followed: a person says its kind, or its page is recognised where it has no feed."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from headwater.cli.session import source_settings
from headwater.errors import BadInput
from headwater.follow.add import chosen, follow
from headwater.model import Reader
from headwater.store import sources
from headwater.store.tables import sources as table
from headwater.wire import Parts
from support import forked
from support.boards import Board, visit_board
from support.web import Answer, Web, rss

BOARD = '{"title": "this is a board", "items": [], "posts": [{"id": "1/1", "text": "x"}], "next": null}'


def kind_and_settings(parts: Parts, source_id: int) -> tuple[str, dict[str, object]]:
    query = select(table.c.kind, table.c.settings).where(table.c.id == source_id)
    row = parts.db.read_now(lambda conn: conn.execute(query).one())
    return row.kind, row.settings


async def test_a_site_without_a_feed_becomes_what_can_read_its_pages_and_says_so(
    parts: Parts, owner: Reader, world: Web
) -> None:
    world.pages["/site"] = Answer(BOARD)
    source_id = parts.db.write_now(follow, owner, world.url("/site"), parts.now()).source_id
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["unfinished"]) == ("ok", True)
    assert kind_and_settings(parts, source_id) == ("board", {"max_pages": 3})
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"]) == ("ok", 1)
    [source] = parts.db.read_now(sources.watched, owner, parts.now())
    assert source.note == "This site has no feed, so its pages are read, as a board."
    assert (source.title, source.status) == ("this is a board", "ok")


async def test_a_site_with_a_feed_is_not_read_page_by_page(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/"] = Answer('<html><link rel="alternate" type="application/rss+xml" href="/feed">this is a board')
    world.pages["/feed"] = Answer(rss("first"))
    source_id = parts.db.write_now(follow, owner, world.url("/"), parts.now()).source_id
    await visit_board(parts, source_id)
    assert kind_and_settings(parts, source_id)[0] == "rss"


@pytest.mark.parametrize(
    ("address", "kind", "settings", "says"),
    [
        ("https://site.example/", "gopher", {}, "no kind"),
        ("https://site.example/", "rss", {"max_pages": 3}, "no settings"),
        ("https://site.example/", None, {"max_pages": 3}, "no settings"),
        ("https://site.example/", "reddit", {}, "cannot be read as 'reddit'"),
        ("https://www.reddit.com/r/python", "rss", {}, "only as 'reddit'"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused_in_words(
    address: str, kind: str | None, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        chosen(address, kind, settings)


def test_a_source_that_is_there_is_read_in_the_way_that_is_said_from_now_on(
    parts: Parts, owner: Reader, board: Board, source_id: int
) -> None:
    def again(kind: str) -> sources.Added:
        return parts.db.write_now(follow, owner, board.address, parts.now(), kind=kind)

    changed = again("rss")
    assert (changed.source_id, changed.new_source, changed.changed) == (source_id, False, True)
    assert kind_and_settings(parts, source_id) == ("rss", {})
    assert not again("rss").changed


def test_settings_are_typed_as_pairs() -> None:
    assert source_settings(["max_pages=3", "render=true", "profile=phpbb", 'items={"a": 1}', "empty="]) == {
        "max_pages": 3,
        "render": True,
        "profile": "phpbb",
        "items": {"a": 1},
        "empty": "",
    }
    with pytest.raises(BadInput, match="NAME=VALUE"):
        source_settings(["max_pages"])


def test_a_wrong_kind_on_the_command_line_is_bad_usage(environ: dict[str, str]) -> None:
    words = ("add", "https://site.example/", "--kind", "gopher")
    done = forked.run("-m", "headwater", *words, env={**os.environ, **environ})
    assert (done.returncode, "The kinds are: rss, reddit" in done.stderr) == (2, True)
