"""Answers of X and what is read from them: the golden pairs in tests/data/x."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headwater.model import Page, Response, Source, SourceState
from headwater.sources import x
from headwater.text import text_hash

FOLDER = Path(__file__).resolve().parents[1] / "data" / "x"
RECEIVED = datetime(2026, 11, 2, 21, tzinfo=UTC)
SOURCE = Source(1, "x", "https://x.com/hashrate", settings={"user_id": "77", "history": 500})
URL = "https://api.x.com/2/users/77/tweets?max_results=100"


def as_written(page: Page) -> dict[str, Any]:
    """A page as its golden file has it; the fingerprint is checked apart, and none opens a thread by name."""
    return {
        "title": page.facts.title,
        "watermark": page.facts.watermark,
        "next": page.next.url if page.next else None,
        "posts": [
            {
                name: value.isoformat() if isinstance(value, datetime) else value
                for name, value in post._asdict().items()
                if name not in ("text_hash", "opens_thread") and value not in (None, (), {}, "")
            }
            for post in page.posts
        ],
    }


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.in.json")), ids=lambda file: file.name)
def test_an_answer_is_read_as_its_golden_page_says(file: Path) -> None:
    page = x.read(SOURCE, SourceState(), Response(URL, 200, {}, file.read_bytes(), RECEIVED))
    expected = json.loads(file.with_name(file.name.replace(".in.", ".out.")).read_text(encoding="utf-8"))
    assert json.loads(json.dumps(as_written(page))) == expected
    assert all(post.text_hash == text_hash(post.title, post.content) for post in page.posts)
