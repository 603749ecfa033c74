"""The last reader in the chain: whatever feedparser makes of a document, ours does not stumble over it."""

from __future__ import annotations

import pytest

from headwater.sources.feeds.repair import read_loose

NAMES = (
    "links",
    "tags",
    "authors",
    "content",
    "contents",
    "media_content",
    "title_detail",
    "id",
    "updated",
    "published",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_element_with_the_name_of_one_of_feedparsers_own_keys_does_no_harm(name: str) -> None:
    """Found by fuzzing: `<links version="2.0">` is put where feedparser keeps its list of links."""
    broken = (
        f'<rss><channel><title>x</title><{name} version="2.0">a<b/></{name}><item><title>kept</title><{name} a="1">'
    )
    draft = read_loose(f"{broken}c</{name}></item>".encode(), "not well-formed")
    assert [entry.title.value for entry in draft.entries] == ["kept"]
