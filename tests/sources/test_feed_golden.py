"""Golden pairs: a feed, and beside it what it says. `GOLDEN=write` writes the second anew, to be read by eye."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from feeds_by_hand import NOON

from headwater.model import Facts, Page
from headwater.sources.feeds import read_feed

FOLDER = Path(__file__).resolve().parents[1] / "data" / "feeds"
FEEDS = sorted(path for path in FOLDER.iterdir() if not path.name.endswith(".expected.json"))


def written(page: Page) -> Any:
    """A page as JSON has it, without what is at its default."""
    posts = []
    for post in page.posts:
        fields = post._asdict() | {
            "text_hash": post.text_hash.hex(),
            "reference": post.reference and post.reference._asdict(),
            "enclosures": [enclosure._asdict() for enclosure in post.enclosures],
            "images": [image._asdict() for image in post.images],
        }
        posts.append({name: value for name, value in fields.items() if value or name == "dated"})
    facts = {name: value for name, value in page.facts._asdict().items() if value != Facts._field_defaults[name]}
    return orjson.loads(orjson.dumps({"facts": facts, "posts": posts}))


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.name)
def test_a_feed_says_what_stands_beside_it(path: Path) -> None:
    page = read_feed(path.read_bytes(), url=f"https://golden.example/{path.name}", content_type=None, received_at=NOON)
    expected = path.with_name(path.name.removesuffix(path.suffix) + ".expected.json")
    if os.environ.get("GOLDEN") == "write":
        expected.write_bytes(orjson.dumps(written(page), option=orjson.OPT_INDENT_2) + b"\n")
    assert written(page) == orjson.loads(expected.read_bytes())
