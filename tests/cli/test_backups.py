"""`headwater backup`, `restore` and `export` as a person types them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.web import Answer, Web, rss

Headwater = Callable[..., Any]


@pytest.fixture
def followed(headwater: Headwater, world: Web) -> str:
    world.pages["/a"] = Answer(rss("Lithium is found", "Quiet rivers"))
    assert headwater("add", world.url("/a")).code == 0
    return world.url("/a")


def test_a_store_moves_to_another_place(headwater: Headwater, followed: str, tmp_path: Path, postgres_url: str) -> None:
    file = str(tmp_path / "b.backup")
    made = headwater("backup", file, "--json").lines[0]
    assert (made["sources"], made["posts"], made["secrets"]) == (1, 2, 0)
    assert os.stat(file).st_mode & 0o077 == 0
    assert "is there already" in headwater("backup", file).err
    for place in ({"HEADWATER_DATA_DIR": str(tmp_path / "new")}, {"HEADWATER_DATABASE_URL": postgres_url}):
        assert "1 sources, 2 posts" in headwater("restore", file, **place).out
        assert [one["title"] for one in headwater("search", "lithium", "--json", **place).lines] == ["Lithium is found"]
        assert headwater("crawl", followed, "--json", **place).code == 0
        again = headwater("restore", file, "--json", **place)
        assert (again.code, json.loads(again.err)["error"]) == (1, "already_there")


def test_a_lost_database_comes_back(
    headwater: Headwater, environ: dict[str, str], followed: str, tmp_path: Path
) -> None:
    data = Path(environ["HEADWATER_DATA_DIR"])
    headwater("backup", str(tmp_path / "b.backup"))
    for file in data.glob("headwater.db*"):
        if not file.name.endswith(".marker"):
            file.unlink()
    assert "is gone, and Headwater has stored data in it before" in headwater("stream").err
    assert headwater("restore", str(tmp_path / "b.backup")).code == 0
    assert len(headwater("stream", "--json").lines) == 2


def test_bad_files_are_named(headwater: Headwater, followed: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a backup")
    new = {"HEADWATER_DATA_DIR": str(tmp_path / "new")}
    for file, words in (("text", "not a backup"), ("missing", "cannot be read"), (".", "cannot be read")):
        ran = headwater("restore", str(tmp_path / file), **new)
        assert ran.code == 2
        assert words in ran.err
    assert not (tmp_path / "new").exists()
    assert "cannot be written" in headwater("backup", str(tmp_path / "no" / "b.backup")).err


def test_posts_and_stories_leave_as_json_lines(headwater: Headwater, followed: str, tmp_path: Path) -> None:  # F12
    posts = headwater("export", "--what", "posts").lines
    assert {one["title"] for one in posts} == {"Lithium is found", "Quiet rivers"}
    assert all(not one["read"] and one["content"] is not None for one in posts)
    wrote = headwater("export", str(tmp_path / "s.jsonl"), "--what", "stories", "--json").lines
    assert wrote == [{"file": str(tmp_path / "s.jsonl"), "stories": 2}]
    lines = (tmp_path / "s.jsonl").read_text().splitlines()
    assert {json.loads(line)["title"] for line in lines} == {"Lithium is found", "Quiet rivers"}
