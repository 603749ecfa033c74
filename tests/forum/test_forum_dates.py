"""Dates as forums write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sources.dates import parse_forum_date
from support.posts import NOON

MONDAY_NOON = NOON  # Monday, 2 November 2026, 12:00


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-3-5 12:30", (2024, 3, 5, 12, 30)),
        ("发表于 2024-3-5 12:30:15", (2024, 3, 5, 12, 30, 15)),
        ("2024年3月5日 12:30", (2024, 3, 5, 12, 30)),
        ("昨天 08:15", (2026, 11, 1, 8, 15)),
        ("前天 23:05", (2026, 10, 31, 23, 5)),
        ("今天 07:00", (2026, 11, 2, 7, 0)),
        ("半小时前", (2026, 11, 2, 11, 30)),
        ("3 小时前", (2026, 11, 2, 9, 0)),
        ("1 小时 30 分钟前", (2026, 11, 2, 10, 30)),
        ("5 分钟前", (2026, 11, 2, 11, 55)),
        ("2 天前", (2026, 10, 31, 12, 0)),
        ("刚刚", (2026, 11, 2, 12, 0)),
        ("10-30 09:10", (2026, 10, 30, 9, 10)),
        ("12-24 09:10", (2025, 12, 24, 9, 10)),
        ("5 minutes ago", (2026, 11, 2, 11, 55)),
        ("5m", (2026, 11, 2, 11, 55)),
        ("3h", (2026, 11, 2, 9, 0)),
        ("an hour ago", (2026, 11, 2, 11, 0)),
        ("Yesterday, 11:04 PM", (2026, 11, 1, 23, 4)),
        ("Today at 12:04 AM", (2026, 11, 2, 0, 4)),
        ("Friday at 4:05 PM", (2026, 10, 30, 16, 5)),
        ("Gestern, 18:20", (2026, 11, 1, 18, 20)),
        ("vor 2 Stunden", (2026, 11, 2, 10, 0)),
        ("il y a 3 heures", (2026, 11, 2, 9, 0)),
        ("вчера, 10:11", (2026, 11, 1, 10, 11)),
        ("« Reply #3 on: March 05, 2024, 01:30:00 pm »", (2024, 3, 5, 13, 30)),
        ("Post by alder » Tue Mar 05, 2024 1:30 pm", (2024, 3, 5, 13, 30)),
        ("Posted 5 March 2024 - 01:30 PM", (2024, 3, 5, 13, 30)),
        ("03-05-2024, 01:30 PM", (2024, 3, 5, 13, 30)),
        ("1709645400", (2024, 3, 5, 13, 30)),
        ("1709645400000", (2024, 3, 5, 13, 30)),
        ("2024-03-05T13:30:00+0000", (2024, 3, 5, 13, 30)),
        ("Mar 5, 2024 at 1:30 PM", (2024, 3, 5, 13, 30)),
    ],
)
def test_a_date_is_read_however_it_is_written(text: str, expected: tuple[int, ...]) -> None:
    assert parse_forum_date(text, MONDAY_NOON) == datetime(*expected[:3], *expected[3:], tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "alder", "Joined: some time", "1970-01-01", "9999-12-31", "13-45 99:99", "#501", "5M", "3yd", "12"]
)
def test_what_names_no_moment_or_an_impossible_one_is_none(text: str) -> None:  # H45
    assert parse_forum_date(text, MONDAY_NOON) is None


def test_the_forums_own_zone_counts_for_dates_without_one_alone() -> None:
    eight = datetime(2024, 3, 5, 8, 0, tzinfo=UTC)
    assert parse_forum_date("2024-3-5 16:00", MONDAY_NOON, 480) == eight
    assert parse_forum_date("2024-03-05T08:00:00Z", MONDAY_NOON, 480) == eight
    assert parse_forum_date("2024-03-05 16:00:00 +08:00", MONDAY_NOON, 0) == eight
    assert parse_forum_date("昨天 01:00", MONDAY_NOON, 480) == datetime(2026, 10, 31, 17, 0, tzinfo=UTC)


@given(st.text(max_size=120), st.integers(-900, 900))
def test_any_text_is_a_moment_that_can_be_true_or_none(text: str, zone: int) -> None:  # H45 H47
    moment = parse_forum_date(text, MONDAY_NOON, zone)
    assert moment is None or datetime(1990, 1, 1, tzinfo=UTC) <= moment <= MONDAY_NOON + timedelta(days=2)


@given(st.from_regex(r"[0-9]{1,6} ?(分钟|小时|天|months|years|hours) ?(前|ago)", fullmatch=True))
def test_any_distance_lies_in_the_past(text: str) -> None:
    moment = parse_forum_date(text, MONDAY_NOON)
    assert moment is None or moment <= MONDAY_NOON
