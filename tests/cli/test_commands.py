"""The commands as a person or a script uses them: words, JSON lines, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.web import Answer, Web, rss

Headwater = Callable[..., Any]


def test_from_an_address_to_a_stream(headwater: Headwater, world: Web) -> None:  # D1
    world.pages["/"] = Answer(
        '<html><link rel="alternate" type="application/rss+xml" href="/feed.xml"><body>x</body></html>',
        headers={"Content-Type": "text/html"},
    )
    world.pages["/feed.xml"] = Answer(rss("first", "second"))
    added = headwater("add", world.url("/"))
    assert (added.code, added.out) == (0, f"Following The News ({world.url('/feed.xml')}): 2 posts.\n")
    again = headwater("add", world.url("/"))
    assert (again.code, again.out.split(" (")[0]) == (0, "Already following The News")
    stories = headwater("stream", "--json").lines
    assert [story["title"] for story in stories] == ["second", "first"]
    story = {"story_id", "title", "excerpt", "url", "source", "published_at", "members"}
    assert stories[0].keys() == story | {"updated_at", "state", "news", "tellings", "as_of", "thread", "signals"}
    place = {"post_id", "source_id", "source", "url", "title", "published_at", "read"}
    assert stories[0]["members"][0].keys() == place | {"rule", "score", "why", "repeat_of"}
    assert "second" in headwater("stream").out


def test_a_crawl_prints_one_line_per_visit(headwater: Headwater, world: Web) -> None:
    world.pages["/a"], world.pages["/b"] = Answer(rss("a")), Answer(rss())
    headwater("add", world.url("/a"), world.url("/b"), world.url("/c"))
    ran = headwater("crawl", "--all", "--json")
    assert ran.code == 1
    reports = {report["source"].removeprefix(world.address): report for report in ran.lines}
    assert {path: report["outcome"] for path, report in reports.items()} == {
        "/a": "unchanged",
        "/b": "unchanged",
        "/c": "failed",
    }
    wanted = {"source", "outcome", "new", "updated", "duplicates", "watermark_updated", "seconds", "error"}
    assert all(wanted <= report.keys() for report in reports.values())
    assert "HTTP 404" in reports["/c"]["error"]
    nothing = headwater("crawl", "--json")
    assert (nothing.code, nothing.out) == (0, "")


def test_sources_tell_how_they_are_doing_and_can_be_removed(headwater: Headwater, world: Web) -> None:
    world.pages["/a"] = Answer(rss("a"))
    headwater("add", world.url("/a"), world.url("/gone"))
    listed = headwater("sources", "--json").lines
    assert {one["address"]: one["status"] for one in listed} == {world.url("/a"): "ok", world.url("/gone"): "failing"}
    assert headwater("remove", world.url("/gone")).code == 0
    assert len(headwater("sources", "--json").lines) == 1
    missing = headwater("remove", world.url("/gone"))
    assert missing.code == 1
    assert "headwater sources" in missing.err


def test_opml_goes_in_and_out(headwater: Headwater, world: Web, tmp_path: Path) -> None:  # F3
    document = f"""<opml version="2.0"><body>
        <outline text="News"><outline type="rss" text="A" xmlUrl="{world.url("/a")}"/></outline><outline type="rss" xmlUrl="file:///etc/passwd"/></body></opml>"""
    (tmp_path / "in.opml").write_text(document)
    first = headwater("import", str(tmp_path / "in.opml"), "--json").lines[0]
    assert (first["added"], first["already_there"], list(first["refused"])) == (1, 0, ["file:///etc/passwd"])
    second = headwater("import", "-", "--json", given=document.encode()).lines[0]
    assert (second["added"], second["already_there"]) == (0, 1)
    exported = headwater("export").out
    assert world.url("/a") in exported
    assert 'text="News"' in exported
    assert headwater("import", "-", given=b"no opml at all").code == 2


def test_the_tree_of_folders_and_categories_come_back_out(headwater: Headwater, world: Web, tmp_path: Path) -> None:
    document = f"""<opml><body><outline text="Tech"><outline text="Inner">
        <outline text="A" xmlUrl="{world.url("/a")}"/></outline></outline>
        <outline text="B" xmlUrl="{world.url("/b")}" category="/World/Europe"/></body></opml>"""
    headwater("import", "-", given=document.encode())
    exported = headwater("export").out
    for folder in ("Tech", "Inner", "World", "Europe"):
        assert exported.count(f'<outline text="{folder}"') == 1
    assert 'category="/World/Europe"' in exported
    headwater("import", "-", given=exported.encode(), HEADWATER_DATA_DIR=str(tmp_path / "elsewhere"))
    assert headwater("export", HEADWATER_DATA_DIR=str(tmp_path / "elsewhere")).out == exported


def test_posts_without_a_title_show_their_first_words(headwater: Headwater, world: Web, empty_url: str) -> None:
    item = (
        "<item><guid>1</guid><link>https://x.example/1</link><description>Difficulty rose by 4 %.</description></item>"
    )
    world.pages["/a"] = Answer(f'<rss version="2.0"><channel><title>Account</title>{item}</channel></rss>')
    there = {"HEADWATER_DATABASE_URL": empty_url}
    headwater("add", world.url("/a"), **there)
    assert "Difficulty rose by 4 %." in headwater("stream", **there).out
    assert "Difficulty rose by 4 %." in headwater("search", "difficulty", **there).out
    assert [one["excerpt"] for one in headwater("stream", "--json", **there).lines] == ["Difficulty rose by 4 %."]


def test_search_shows_what_was_published_last_first(headwater: Headwater, world: Web, empty_url: str) -> None:
    there = {"HEADWATER_DATABASE_URL": empty_url}
    world.pages["/new"], world.pages["/old"] = (
        Answer(rss("lithium new")),
        Answer(rss("lithium old").replace("02 Nov 2026", "02 Nov 2020")),
    )
    headwater("add", world.url("/new"), **there)
    headwater("add", world.url("/old"), **there)
    found = headwater("search", "lithium", "--json", **there).lines
    assert [one["title"] for one in found] == ["lithium new", "lithium old"]


def test_a_visit_that_waits_for_our_own_budget_says_so_and_alerts_are_objects(
    headwater: Headwater, environ: dict[str, str], world: Web, empty_url: str
) -> None:
    an_hour = {"HEADWATER_REDDIT_FEED_GAP_SECONDS": "3600"}  # longer than a busy machine takes for this test
    there = {"HEADWATER_DATABASE_URL": empty_url, "HEADWATER_REDDIT_URL": world.address, **an_hour}
    world.fallback = Answer(rss("one"))
    assert headwater("add", "r/first", **there).err == ""
    for place, name in enumerate(("second", "third"), 2):
        command = [sys.executable, "-m", "headwater", "add", f"r/{name}"]
        with subprocess.Popen(command, env={**environ, **there}, stderr=subprocess.PIPE, text=True) as waiting:
            assert waiting.stderr
            said = waiting.stderr.readline()
            waiting.kill()
        assert re.match(r"Waiting \d+ s: our request budget for www\.reddit\.com\. Ctrl-C leaves the visit to", said)
        listed = headwater("sources", "--json", **there).lines
        assert len(listed) == place
    reasons = {one["waits_for"] for one in listed}
    assert reasons <= {None, "our request budget for www.reddit.com"}
    assert "our request budget for www.reddit.com" in reasons
    [line] = headwater("run", "monitor-api-calls", "--json", **there, HEADWATER_MONITOR_API_THRESHOLD="1").lines
    [alert] = line["result"]["raised"]
    assert alert.keys() == {"name", "detail", "raised_at", "cleared_at"}
    assert line["result"]["cleared"] == []


def test_posts_are_found_by_their_words_after_a_crawl(headwater: Headwater, world: Web) -> None:
    world.pages["/a"] = Answer(rss("lithium", "copper"))
    headwater("add", world.url("/a"))
    assert [post["title"] for post in headwater("search", "lithium", "--json").lines] == ["lithium"]
    assert headwater("search", "?!").code == 2


def test_try_shows_what_is_read_without_following(headwater: Headwater, world: Web, tmp_path: Path) -> None:
    file = tmp_path / "feed.xml"
    file.write_text(rss("one"))
    world.pages["/feed"] = Answer(rss("one"))
    for what in (str(file), world.url("/feed")):
        [document] = headwater("try", what, "--json").lines
        assert (document["format"], document["title"]) == ("rss20", "The News")
        wanted = {"id", "url", "title", "published", "updated", "author", "content", "enclosures", "language"}
        assert document["entries"][0].keys() == wanted
        assert document["entries"][0]["published"] == "2026-11-02T10:00:00+00:00"
    assert headwater("sources", "--json").lines == []
    assert headwater("try", "no such thing").code == 2


def test_config_says_where_each_value_comes_from_and_hides_secrets(headwater: Headwater) -> None:
    lines = headwater("config", "--json", HEADWATER_PORT="9999", HEADWATER_PROXY_URL="http://me:hunter2@proxy").lines
    by_name = {line["name"]: line for line in lines}
    assert (by_name["HEADWATER_PORT"]["value"], by_name["HEADWATER_PORT"]["from"]) == (9999, "HEADWATER_PORT")
    assert by_name["HEADWATER_HOST"]["from"] == "default"
    assert "hunter2" not in json.dumps(lines)


def test_a_table_in_a_pipe_is_neither_wrapped_nor_cut(headwater: Headwater) -> None:
    names = {line["name"] for line in headwater("config", "--json").lines}
    heading, *rows = headwater("config").out.splitlines()
    assert heading.split() == ["setting", "value", "from", "meaning"]
    assert {row.split()[0] for row in rows} == names


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["config"], {"HEADWATER_PROT": "1"}),
        (["add", "ftp://files.example/"], {}),
        (["add", "https://news.example/\nHost: evil"], {}),  # H18
        (["add", "https://news.example/" + "x" * 100_000], {}),  # H19
        (["add", "file:///etc/passwd"], {}),  # H13
        (["frobnicate"], {}),
        (["stream", "--limit", "none"], {}),
        (["db", "downgrade", "nowhere"], {}),
    ],
)
def test_bad_usage_exits_with_2_and_a_clear_word(headwater: Headwater, words: list[str], more: dict[str, str]) -> None:
    ran = headwater(*words, **more)
    assert ran.code == 2
    assert ran.err.strip()
    assert "Traceback" not in ran.err


def test_errors_are_json_where_json_was_asked_for(headwater: Headwater) -> None:
    ran = headwater("add", "ftp://files.example/", "--json")
    assert json.loads(ran.err)["error"] == "bad_address"


def test_the_schema_goes_up_and_down(headwater: Headwater) -> None:  # C11
    assert headwater("db", "upgrade", "--json").lines[0]["revision"] is not None
    assert headwater("db", "downgrade", "base", "--yes", "--json").lines == [{"revision": None}]
    assert json.loads(headwater("sources", "--json").err)["error"] == "store_missing"
    assert headwater("db", "upgrade").code == 0
    assert headwater("sources").code == 0


def test_the_doctor_finds_a_healthy_machine_and_a_taken_port(headwater: Headwater, world: Web) -> None:
    port = world.address.rpartition(":")[2]
    sick = headwater("doctor", "--json", HEADWATER_PORT=port)
    assert sick.code == 1
    assert {line["what"]: line["ok"] for line in sick.lines} == {
        "python": True,
        "sqlite": True,
        "settings": True,
        "data folder": True,
        "keys": True,
        "database": True,
        "database file": True,
        "tenants": True,
        "X": True,
        "parsing process": True,
        "compiled parts": True,
        "port": False,
    }


def test_a_token_and_a_login_link_are_made(headwater: Headwater) -> None:
    headwater("db", "upgrade")
    assert headwater("token").out.startswith("hw_api_")
    assert "/login?token=hw_login_" in headwater("login").out
