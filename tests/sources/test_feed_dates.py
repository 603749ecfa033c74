"""Dates in the forms that feeds have them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sources.dates import parse_date


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        # RFC 822 and what is made of it
        ("Thu, 01 Jan 2004 19:48:21 GMT", at(2004, 1, 1, 19, 48, 21)),
        ("Thu, 1 Jan 2004 19:48:21 +0130", at(2004, 1, 1, 18, 18, 21)),
        ("01 Jan 2004 19:48 -0500", at(2004, 1, 2, 0, 48)),
        ("Thu,  1 Jan 04 19:48:21 EST", at(2004, 1, 2, 0, 48, 21)),
        ("Thu, 01 Jan 95 19:48:21 GMT", at(1995, 1, 1, 19, 48, 21)),
        ("Thursday, 01-Jan-2004 19:48:21 UTC", at(2004, 1, 1, 19, 48, 21)),
        ("Thu, 01 January 2004 19:48:21 CEST", at(2004, 1, 1, 17, 48, 21)),
        ("Thu, 01 Jan 2004 24:00:00 GMT", at(2004, 1, 2)),
        ("Thu, 01 Jan 2004 23:59:60 GMT", at(2004, 1, 1, 23, 59, 59)),
        ("Thu, 01 Jan 2004 19:48:21", at(2004, 1, 1, 19, 48, 21)),
        ("Thu, 01 Jan 2004", at(2004, 1, 1)),
        ("Thu, 01 Jan 2004 19:48:21 GMT+0200 (CEST)", at(2004, 1, 1, 17, 48, 21)),
        ("Thu, 01 Jan 2004 19:48:21 +01:00", at(2004, 1, 1, 18, 48, 21)),
        ("Thu, 01 Jan 2004 19:48:21 +-0300", at(2004, 1, 1, 22, 48, 21)),
        ("Thu, 01 Jan 2004 19:48:21 Etc/GMT", at(2004, 1, 1, 19, 48, 21)),
        ("Thu, 01 Jan 2004 19:48:21 +9900", at(2004, 1, 1, 19, 48, 21)),
        ("Thu, 01 Jan 2004 07:48:21 PM GMT", at(2004, 1, 1, 19, 48, 21)),
        # ISO 8601 and what is made of it
        ("2003-12-31T10:14:55Z", at(2003, 12, 31, 10, 14, 55)),
        ("2003-12-31T10:14:55+02:00", at(2003, 12, 31, 8, 14, 55)),
        ("2003-12-31T10:14:55-0800", at(2003, 12, 31, 18, 14, 55)),
        ("2003-12-31 10:14:55 +0100", at(2003, 12, 31, 9, 14, 55)),
        ("2003-12-31 10:14:55", at(2003, 12, 31, 10, 14, 55)),
        ("2003-12-31T10:14Z", at(2003, 12, 31, 10, 14)),
        ("2003-12-31T24:00:00Z", at(2004, 1, 1)),
        ("2003-12-31", at(2003, 12, 31)),
        ("2003-12", at(2003, 12, 1)),
        ("2003", at(2003, 1, 1)),
        ("20031231", at(2003, 12, 31)),
        ("20031231T101455Z", at(2003, 12, 31, 10, 14, 55)),
        ("2003-365", at(2003, 12, 31)),
        ("2024-W10-2", at(2024, 3, 5)),
        ("2003/12/31 10:14:55", at(2003, 12, 31, 10, 14, 55)),
        # Other programs' and people's
        ("Sun Jan  4 16:29:06 2004", at(2004, 1, 4, 16, 29, 6)),
        ("Sun Jan  4 16:29:06 PST 2004", at(2004, 1, 5, 0, 29, 6)),
        ("Sat Oct 06 2018 00:00:00 GMT+0200 (Central European Summer Time)", at(2018, 10, 5, 22)),
        ("January 4, 2004", at(2004, 1, 4)),
        ("Jan. 4th, 2004 at 5:03 PM", at(2004, 1, 4, 17, 3)),
        ("12/31/2003 10:14:55 AM", at(2003, 12, 31, 10, 14, 55)),
        ("31/12/2003", at(2003, 12, 31)),
        ("31.12.2003 10:14", at(2003, 12, 31, 10, 14)),
        ("05.06.2003", at(2003, 6, 5)),
        ("1072915200", at(2004, 1, 1)),
        ("1072915200000", at(2004, 1, 1)),
        # Other languages
        ("Κυρ, 11 Ιούλ 2004 12:00:00 EST", at(2004, 7, 11, 17)),
        ("2004-július-13T9:15-05:00", at(2004, 7, 13, 14, 15)),
        ("2004년 05월 28일  01:31:15", at(2004, 5, 28, 1, 31, 15)),
        ("2004-05-25 오후 11:23:17", at(2004, 5, 25, 23, 23, 17)),
        ("2004年5月25日 11:23", at(2004, 5, 25, 11, 23)),
        ("Seg, 24 Set 2018 19:42:40 -0300", at(2018, 9, 24, 22, 42, 40)),
        ("Lun, 05 Fév 2018 10:00:00 +0100", at(2018, 2, 5, 9)),
        ("Di, 06 März 2018 10:00:00 +0100", at(2018, 3, 6, 9)),
        ("4 de enero de 2004", at(2004, 1, 4)),
        ("6 марта 2018 10:00", at(2018, 3, 6, 10)),
    ],
)
def test_a_date_is_read_whatever_its_form(text: str, moment: datetime) -> None:
    assert parse_date(text) == moment
    assert parse_date(f" {text}\n") == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Thu, 31 Jun 2004 19:48:21 GMT",
        "Thu, 01 Foo 2004 19:48:21 GMT",
        "Thu, 01 Jan 2004 29:48:21 GMT",
        "2004-02-30",
        "2004-13-01",
        "0001-01-01T00:00:00+12:00",
        "--12-31",
        "99:99",
        "1" * 50,
        "x" * 200,
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None


@given(st.integers(0, 7_000_000_000), st.timezones())
def test_every_moment_can_be_written_and_read_in_iso_form(seconds: int, zone: tzinfo) -> None:
    moment = datetime.fromtimestamp(seconds, UTC)
    assert parse_date(moment.astimezone(zone).isoformat()) == moment


@given(st.text(max_size=60) | st.text(alphabet="0123456789-:/.TZ+ JanFebWedGMT,", max_size=40))
def test_any_text_is_a_date_in_utc_or_none(text: str) -> None:
    moment = parse_date(text)
    assert moment is None or moment.utcoffset() is not None
