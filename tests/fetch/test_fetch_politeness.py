"""When to come back: Retry-After, Cache-Control and Expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fetch.statuses import LONGEST, cache_lifetime, retry_after
from headwater.model import Response

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def answer(headers: dict[str, str]) -> Response:
    return Response("https://news.example/feed", 429, headers, b"", NOW)


@pytest.mark.parametrize(
    ("value", "wait"),
    [  # H31
        ("120", 120 * SECOND),
        (" 120 ", 120 * SECOND),
        ("120.5", 120.5 * SECOND),
        ("Thu, 15 Jan 2026 12:02:00 GMT", 120 * SECOND),
        ("Thu, 15 Jan 2026 13:02:00 +0100", 120 * SECOND),
        ("Thursday, 15-Jan-26 12:02:00 GMT", 120 * SECOND),
        ("Thu, 15 Jan 2026 12:02:00", 120 * SECOND),
        ("0", None),
        ("-5", None),
        ("-1000000", None),
        ("Thu, 15 Jan 2026 11:00:00 GMT", None),
        ("86400", LONGEST),
        ("86401", LONGEST),
        ("9" * 19, LONGEST),
        ("9" * 500, None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
        ("Fri, 31 Dec 9999 23:59:59 -1200", LONGEST),
        ("soon", None),
        ("", None),
        ("１２０", None),
        ("Thu, 99 Jan 2026 12:02:00 GMT", None),
    ],
)
def test_retry_after_is_obeyed_within_reason(value: str, wait: timedelta | None) -> None:
    assert retry_after(answer({"retry-after": value})) == wait


def test_no_retry_after_asks_for_nothing() -> None:
    assert retry_after(answer({})) is None


@pytest.mark.parametrize(
    ("headers", "lifetime"),
    [
        ({"cache-control": "max-age=600"}, 600 * SECOND),
        ({"cache-control": 'public, Max-Age="600"'}, 600 * SECOND),
        ({"cache-control": "max-age=600", "age": "100"}, 500 * SECOND),
        ({"cache-control": "max-age=600", "age": "900"}, None),
        ({"cache-control": "max-age=600", "age": "x"}, 600 * SECOND),
        ({"cache-control": "max-age=0"}, None),
        ({"cache-control": "max-age=-1"}, None),
        ({"cache-control": "max-age=99999999999999999999999"}, None),
        ({"cache-control": "max-age=31536000"}, LONGEST),
        ({"cache-control": "no-store, max-age=600"}, None),
        ({"cache-control": "no-cache"}, None),
        ({"cache-control": "max-age=600, no-cache"}, None),
        ({"cache-control": "s-maxage=600"}, None),
        ({"cache-control": "private"}, None),
        ({"cache-control": "max-age=60", "expires": "Thu, 15 Jan 2026 13:00:00 GMT"}, 60 * SECOND),
        ({"expires": "Thu, 15 Jan 2026 12:10:00 GMT"}, 600 * SECOND),
        ({"expires": "Thu, 15 Jan 2026 20:10:00 GMT", "date": "Thu, 15 Jan 2026 20:00:00 GMT"}, 600 * SECOND),
        ({"expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"expires": "0"}, None),
        ({"expires": "-1"}, None),
        ({"cache-control": "no-store", "expires": "Thu, 15 Jan 2026 13:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_what_an_answer_says_about_its_lifetime(headers: dict[str, str], lifetime: timedelta | None) -> None:
    assert cache_lifetime(answer(headers)) == lifetime


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_gives_a_time_within_reason_or_none(one: str, two: str) -> None:
    for wait in (
        retry_after(answer({"retry-after": one})),
        cache_lifetime(answer({"cache-control": one, "expires": two, "age": two, "date": one})),
    ):
        assert wait is None or timedelta() < wait <= LONGEST
