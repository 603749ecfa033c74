"""What pages say about times, states and texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.watched import SOURCE
from headwater.web import formatting
from support.posts import NOON


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(seconds=-30), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=5), "5 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=6), "6 days ago"),
        (timedelta(days=30), "3 Oct"),
        (timedelta(days=400), "28 Sep 2025"),
        (timedelta(hours=-2), "in 2 h"),
    ],
)
def test_how_long_ago(passed: timedelta, said: str) -> None:
    assert formatting.ago(NOON - passed, NOON) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "in 12 min"),
        ({"checking": True}, "being checked now"),
        ({"active": False}, "no longer checked"),
        ({"next_check_at": NOON - timedelta(hours=1)}, "due now"),
        ({"next_check_at": NOON + timedelta(seconds=5)}, "in a moment"),
        ({"waits_for": "its turn at news.example"}, "waits for its turn at news.example, in 12 min"),
        ({"waits_for": "news.example asked for a pause"}, "news.example asked for a pause, in 12 min"),
    ],
)
def test_when_a_source_is_checked_next(changes: dict[str, object], said: str) -> None:
    assert formatting.next_check(SOURCE._replace(**changes), NOON) == said  # type: ignore[arg-type]


def test_a_source_settles_when_nothing_is_about_to_happen() -> None:
    assert formatting.is_settled(SOURCE, NOON)
    assert formatting.is_settled(SOURCE._replace(active=False, next_check_at=NOON), NOON)
    assert not formatting.is_settled(SOURCE._replace(checking=True), NOON)
    assert not formatting.is_settled(SOURCE._replace(next_check_at=NOON), NOON)
    assert not formatting.is_settled(SOURCE._replace(status="new"), NOON)


def test_a_state_nobody_foresaw_is_still_shown() -> None:
    assert formatting.state_of(SOURCE._replace(status="asleep")).word == "asleep"


def test_a_source_without_a_title_goes_by_its_address() -> None:
    assert formatting.name_of(SOURCE) == "The News"
    assert formatting.name_of(SOURCE._replace(title=SOURCE.address)) == "news.example/feed"


@pytest.mark.parametrize(
    ("when", "said"),
    [
        (datetime(2026, 11, 2, 1, tzinfo=UTC), "Today"),
        (datetime(2026, 11, 1, 23, tzinfo=UTC), "Yesterday"),
        (datetime(2026, 10, 30, 12, tzinfo=UTC), "Friday, 30 October"),
        (datetime(2025, 10, 30, 12, tzinfo=UTC), "Thursday, 30 October 2025"),
        (datetime(2026, 11, 4, 12, tzinfo=UTC), "Upcoming"),
    ],
)
def test_posts_stand_under_their_day(when: datetime, said: str) -> None:
    assert formatting.day(when, NOON, UTC) == said


def test_the_excerpt_is_text_without_the_title_it_repeats() -> None:
    assert formatting.excerpt("<p>Rivers: they <b>flow</b> &amp; flow.</p>", "Rivers") == "they flow & flow."
    assert formatting.excerpt("<p>Rivers</p>", "Rivers") == ""
    assert formatting.excerpt("word " * 200, "").endswith("word…")


def test_an_excerpt_is_never_cut_inside_a_tag() -> None:
    content = "a" * 3990 + '<img src="https://news.example/picture.png" alt="x">' + "b" * 100
    assert "<img" not in formatting.excerpt(content.replace("a" * 3990, "a " * 1995), "")


@given(st.text(max_size=300), st.text(max_size=20))
def test_an_excerpt_is_short_whatever_the_text(content: str, title: str) -> None:
    assert len(formatting.excerpt(content, title)) <= formatting.EXCERPT_CHARACTERS + 1


def test_sizes_are_short() -> None:
    assert [formatting.size(count) for count in (0, 1023, 2048, 5 * 1024 * 1024)] == ["0 B", "1023 B", "2 KB", "5.0 MB"]
