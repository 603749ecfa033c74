"""The feedparser project's own test feeds, as far as they concern what we read from feeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import expectations as expected
import pytest

from headwater.errors import ReadFailed
from headwater.sources.feeds import read_feed

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "feeds.md"
RECEIVED = datetime(2026, 1, 1, tzinfo=UTC)


class Result(NamedTuple):
    name: str
    path: str
    wanted: object
    got: object
    holds: bool


def deliberate_differences() -> set[str]:
    """The test feeds that the document lists, each with a reason."""
    section = DOCUMENT.read_text().partition("## Differences from feedparser")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def results(feeds: dict[str, bytes]) -> Iterator[Result]:
    for name, document in sorted(feeds.items()):
        headers = expected.headers_of(document)
        wanted = [
            (expectation, known)
            for expectation in expected.expectations_of(document)
            if (known := expected.field_of(expectation))
        ]
        if not wanted:
            continue
        try:
            page = read_feed(
                document,
                url=expected.address_of(name, headers),
                content_type=headers.get("content-type"),
                received_at=RECEIVED,
                language=headers.get("content-language"),
            )
        except ReadFailed as error:
            yield from (Result(name, one.path, one.wanted, error, False) for one, _ in wanted)
            continue
        post = page.posts[0] if page.posts else None
        for one, (field, found) in wanted:
            got = field.read(page, post, found)
            yield Result(name, one.path, one.wanted, got, field.same(got, one.wanted))


@pytest.fixture(scope="module")
def checked(conformance_feeds: dict[str, bytes]) -> list[Result]:
    return list(results(conformance_feeds))


def test_what_feedparser_expects_of_the_fields_of_our_model_holds_or_is_a_listed_difference(
    checked: list[Result],
) -> None:
    listed = deliberate_differences()
    surprising = [result for result in checked if not result.holds and result.name not in listed]
    assert not surprising, "\n".join(f"{one.name} {one.path}: {one.wanted!r}, not {one.got!r}" for one in surprising)


def test_at_least_ninety_eight_in_a_hundred_hold_even_if_the_listed_differences_count_against_us(
    checked: list[Result],
) -> None:
    assert len(checked) > 500
    assert sum(result.holds for result in checked) / len(checked) >= 0.98


def test_every_listed_difference_is_one(checked: list[Result]) -> None:
    differing = {result.name for result in checked if not result.holds}
    assert deliberate_differences() <= differing


def test_every_conformance_feed_is_read_or_refused_by_name(conformance_feeds: dict[str, bytes]) -> None:
    refused = []
    for name, document in conformance_feeds.items():
        try:
            read_feed(document, url="http://a.example/feed", content_type=None, received_at=RECEIVED)
        except ReadFailed:
            refused.append(name)
    assert len(refused) <= 5, refused
