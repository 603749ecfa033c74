"""Golden pairs: a listing as the API or the feed writes it, and the page that it is. Both are ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headwater.model import Page, Response, Source, SourceState
from headwater.sources import reddit
from headwater.text import text_hash

FOLDER = Path(__file__).resolve().parents[1] / "data" / "reddit"
RECEIVED = datetime(2026, 11, 2, 12, tzinfo=UTC)
SOURCE = Source(1, "reddit", "https://www.reddit.com/r/gardening")


def as_written(page: Page) -> dict[str, Any]:
    """A page as its golden file has it; the fingerprint is checked apart, and none opens a thread by name."""
    return {
        "title": page.facts.title,
        "note": page.facts.note[:26],
        "posts": [
            {
                name: value.isoformat() if isinstance(value, datetime) else value
                for name, value in post._asdict().items()
                if name not in ("text_hash", "opens_thread") and value not in (None, (), {})
            }
            for post in page.posts
        ],
    }


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.in.*")), ids=lambda file: file.name)
def test_a_listing_is_read_as_its_golden_page_says(file: Path) -> None:
    url = "https://oauth.reddit.com/r/gardening/new?limit=100"
    page = reddit.read(SOURCE, SourceState(), Response(url, 200, {}, file.read_bytes(), RECEIVED))
    expected = json.loads(file.with_name(file.name.split(".in.")[0] + ".out.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(as_written(page))) == expected
    assert all(post.text_hash == text_hash(post.title, post.content) for post in page.posts)


def test_the_api_and_the_feed_tell_the_same_of_a_post() -> None:
    def read(name: str) -> Page:
        url = "https://oauth.reddit.com/r/gardening/new"
        return reddit.read(SOURCE, SourceState(), Response(url, 200, {}, (FOLDER / name).read_bytes(), RECEIVED))

    def told(page: Page) -> dict[str, tuple[object, ...]]:
        return {p.source_post_id: (p.url, p.title, p.author, p.created_at, p.text_hash) for p in page.posts}

    by_api, by_feed = told(read("listing.in.json")), told(read("feed.in.xml"))
    assert by_feed
    assert all(by_api[id] == by_feed[id] for id in by_feed)
