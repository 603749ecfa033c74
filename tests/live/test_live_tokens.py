"""Marks and audiences: the pure part of live updates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headwater.events.live import SLACK, Audience, Mark, is_forgotten, read_mark
from headwater.model import Reader
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.log.tail import Followed
from support.posts import NOON

ME = Reader(1, 10, "me", "reader")
WEEK = timedelta(days=7)
ids = st.integers(0, 2**59)
times = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds + 0.123, UTC))


def an_event(key: str = "source:7", tenant_id: int | None = None, user_id: int | None = None) -> LoggedEvent:
    return LoggedEvent(LogPosition(0, 1), "id", "post.stored", 1, key, tenant_id, user_id, None, NOON, "{}")


@given(ids, ids, times)
def test_a_mark_comes_back_as_it_was_made_to_the_millisecond(xid: int, id: int, at: datetime) -> None:
    mark = read_mark(str(Mark(LogPosition(xid, id), at)))
    assert mark.position == LogPosition(xid, id)
    assert abs(mark.at - at) <= timedelta(milliseconds=1)


def test_a_mark_is_forgotten_when_what_came_after_it_may_have_been_deleted() -> None:
    mark = Mark(LogPosition(0, 1), NOON)
    assert not is_forgotten(mark, NOON + WEEK - SLACK, WEEK)
    assert is_forgotten(mark, NOON + WEEK - SLACK + timedelta(seconds=1), WEEK)


def test_events_of_a_source_are_for_its_followers_and_those_of_a_reader_for_that_reader() -> None:
    audience, mine, others = Audience(ME), {Followed(1, 10, 7)}, {Followed(1, 11, 7), Followed(2, 10, 7)}
    assert audience.may_see(an_event(), mine)
    assert not audience.may_see(an_event(), others)
    assert not audience.may_see(an_event("source:8"), mine)
    assert not audience.may_see(an_event("story:7"), mine), "what nobody thought of is nobody's"
    assert not audience.may_see(an_event("source:x"), mine)
    assert audience.may_see(an_event("user:10", 1, 10), set())
    assert not audience.may_see(an_event("user:10", 2, 10), mine)
    assert not audience.may_see(an_event("source:7", 1, 11), mine), "an event about another reader"


def test_kinds_narrow_what_is_told() -> None:
    followed = {Followed(1, 10, 7)}
    assert Audience(ME, frozenset({"post.stored"})).may_see(an_event(), followed)
    assert not Audience(ME, frozenset({"post.changed"})).may_see(an_event(), followed)
