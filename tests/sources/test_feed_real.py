"""Real feeds that nobody here wrote: each is read, and as many entries are found as feedparser finds."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import feedparser
import pytest

from headwater.errors import ReadFailed
from headwater.model import Page
from headwater.sources.feeds import read_feed
from headwater.text import cleaned_by_parser, printable
from headwater.text.tidy import tidied

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from fuzz_feeds import wrong_with

RECEIVED = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def pages(real_feeds: dict[str, bytes]) -> dict[str, Page | ReadFailed]:
    found: dict[str, Page | ReadFailed] = {}
    for name, body in real_feeds.items():
        try:
            found[name] = read_feed(body, url="https://a.example/feed", content_type=None, received_at=RECEIVED)
        except ReadFailed as error:
            found[name] = error
    return found


def test_every_real_feed_is_read(pages: dict[str, Page | ReadFailed]) -> None:
    assert len(pages) > 200
    assert {name: page for name, page in pages.items() if isinstance(page, ReadFailed)} == {}


def test_nothing_unsafe_comes_out_of_real_feeds(pages: dict[str, Page | ReadFailed]) -> None:
    wrong = {name: wrong_with(page) for name, page in pages.items() if isinstance(page, Page)}
    assert {name: faults for name, faults in wrong.items() if faults} == {}


def test_the_quick_cleaner_answers_for_most_real_contents_and_as_nh3_does(
    real_feeds: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    contents: list[tuple[str, str | None]] = []

    def noted(html: str, base: str | None) -> str:
        contents.append((html, base))
        return ""

    monkeypatch.setattr("headwater.sources.feeds.posts.clean_html", noted)
    for body in real_feeds.values():
        read_feed(body, url="https://a.example/feed", content_type=None, received_at=RECEIVED)
    answered = [(html, base, clean) for html, base in contents if (clean := tidied(html, base)) is not None]
    assert len(answered) > len(contents) * 0.9
    assert [html for html, base, clean in answered if clean != printable(cleaned_by_parser(html, base))] == []


def test_almost_every_post_of_real_feeds_has_a_date_an_address_and_words(pages: dict[str, Page | ReadFailed]) -> None:
    posts = [post for page in pages.values() if isinstance(page, Page) for post in page.posts]
    assert sum(post.dated for post in posts) / len(posts) > 0.95
    assert sum(post.url is not None for post in posts) / len(posts) > 0.97
    assert sum(bool(post.title or post.content) for post in posts) / len(posts) > 0.99


def test_as_many_entries_are_found_as_feedparser_finds_but_for_entries_that_stand_there_twice(
    real_feeds: dict[str, bytes], pages: dict[str, Page | ReadFailed]
) -> None:
    for name in sorted(real_feeds)[::4]:  # feedparser takes a second for fifteen of them
        page = pages[name]
        assert isinstance(page, Page)
        if page.facts.format.startswith("json"):
            continue
        entries = feedparser.parse(BytesIO(real_feeds[name]), sanitize_html=False, resolve_relative_uris=False).entries
        different = {
            (entry.get("id"), entry.get("link"), entry.get("title"), None if "id" in entry else entry.get("summary"))
            for entry in entries
        }
        assert len(different) <= len(page.posts) <= len(entries), name
