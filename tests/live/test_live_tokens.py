"""Resume tokens and filters: the pure part of live updates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headwater.events.live import SLACK, EventFilter, ResumeToken, is_expired, read_resume_token
from headwater.model import Reader
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.sources import Followed
from support.posts import NOON

ME = Reader(1, 10, "me", "reader")
WEEK = timedelta(days=7)
ids = st.integers(0, 2**59)
times = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds + 0.123, UTC))


def an_event(key: str = "source:7", tenant_id: int | None = None, user_id: int | None = None) -> LoggedEvent:
    return LoggedEvent(LogPosition(0, 1), "id", "post.stored", 1, key, tenant_id, user_id, None, NOON, "{}")


@given(ids, ids, times)
def test_a_resume_token_comes_back_as_it_was_made_to_the_millisecond(xid: int, id: int, at: datetime) -> None:
    token = read_resume_token(str(ResumeToken(LogPosition(xid, id), at)))
    assert token.position == LogPosition(xid, id)
    assert abs(token.at - at) <= timedelta(milliseconds=1)


def test_a_resume_token_expires_when_what_came_after_it_may_have_been_deleted() -> None:
    token = ResumeToken(LogPosition(0, 1), NOON)
    assert not is_expired(token, NOON + WEEK - SLACK, WEEK)
    assert is_expired(token, NOON + WEEK - SLACK + timedelta(seconds=1), WEEK)


def test_events_of_a_source_are_for_its_followers_and_those_of_a_reader_for_that_reader() -> None:
    wanted, mine, others = EventFilter(ME), {Followed(1, 10, 7)}, {Followed(1, 11, 7), Followed(2, 10, 7)}
    assert wanted.admits(an_event(), mine)
    assert not wanted.admits(an_event(), others)
    assert not wanted.admits(an_event("source:8"), mine)
    assert not wanted.admits(an_event("story:7"), mine), "what nobody thought of is nobody's"
    assert not wanted.admits(an_event("source:x"), mine)
    assert wanted.admits(an_event("user:10", 1, 10), set())
    assert not wanted.admits(an_event("user:10", 2, 10), mine)
    assert not wanted.admits(an_event("source:7", 1, 11), mine), "an event about another reader"


def test_kinds_narrow_what_is_told() -> None:
    followed = {Followed(1, 10, 7)}
    assert EventFilter(ME, frozenset({"post.stored"})).admits(an_event(), followed)
    assert not EventFilter(ME, frozenset({"post.changed"})).admits(an_event(), followed)
