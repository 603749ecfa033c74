"""The watermark's rule as a property: whatever an account does, no post is missed and none stored twice (A2, B10)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from headwater.crawl.record import record
from headwater.crawl.visit import listing
from headwater.crawl.visit.walk import COMPLETED
from headwater.errors import TimedOut
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import Reader, Request, Response, Visit
from headwater.sim.serving import Faults
from headwater.sim.x import NOT_YET_FOUND, answer
from headwater.sim.x_world import AccountHabits, SimTweet, SimX, XLimits, simulated
from headwater.sources import x
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.store.tables import checkpoints, posts, sources
from headwater.text import plain
from support.living import AtOnce

HOUR = timedelta(hours=1)


class Reaching(AtOnce):
    """Access to X, which asks for nothing that is out of a search's reach."""

    async def fetch(self, request: Request) -> Response:
        return await super().fetch(x.within_reach(request, self.clock.now()))


class Step(NamedTuple):
    """Time passes and the source is visited; perhaps answers fail, perhaps X forgets the pages it gave out."""

    seconds: int
    page_size: int
    failing: float
    forgets: bool


GOOD = Step(60, 100, 0.0, False)
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0, 1, 20, 60, 100, 130, 600, 3600, 10_000]),
        st.sampled_from([10, 30, 100]),
        st.sampled_from([0.0, 0.0, 0.4]),
        st.sampled_from([False, False, True]),
    ),
    min_size=3,
    max_size=10,
)
HABITS = st.builds(
    AccountHabits()._replace,
    posts_per_day=st.sampled_from([5.0, 60.0, 500.0, 1500.0]),
    lang=st.sampled_from(["en", "zh"]),
    late=st.sampled_from([0.0, 0.3, 0.9]),
    edited=st.sampled_from([0.0, 0.5]),
    deleted=st.sampled_from([0.0, 0.3, 0.9]),
    bursts=st.sampled_from([0.0, 0.6]),
)


@settings(
    max_examples=settings().max_examples // 6,  # each takes a second; a search has as many more as elsewhere
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6), habits=HABITS, steps=STEPS, by_search=st.booleans())
def test_whatever_an_account_does_every_post_is_stored_once_and_none_is_missed(
    db: Database, owner: Reader, seed: int, habits: AccountHabits, steps: list[Step], by_search: bool
) -> None:
    name = f"c{uuid7()[-12:]}"
    sim = simulated({name: habits}, seed=seed, lasts=timedelta(days=1), limits=XLimits(requests=0))
    sim.clock.advance(2 * HOUR)
    typed = f"x: from:{name}" if by_search else f"@{name}"
    source_id = db.write_now(follow, owner, typed, sim.clock.now()).source_id
    way = Reaching(sim, answer, f"Bearer {sim.token}")
    begins: int | None = None
    for step in [GOOD, *steps, GOOD, GOOD]:
        sim.clock.advance(timedelta(seconds=step.seconds))
        sim.faults = Faults(broken=step.failing)
        if step.forgets:
            sim.forget_pages()
        before, had = mark_of(db, source_id), stored(db, source_id)
        goes_on = is_unfinished(db, source_id)
        ended = take(db, way, source_id, step)
        after, have = mark_of(db, source_id), stored(db, source_id)
        assert had.keys() <= have.keys()
        assert after >= before
        checkpoint = checkpoint_of(db, source_id)
        if checkpoint.status != COMPLETED:
            assert after == before
        elif not goes_on:  # else the top of the list was seen earlier, and the next visit sees what is new there
            there = numbered(sim, name, by_search)
            begins = begins or min((id for id, post in there.items() if post.id in have), default=None)
            assert_holds_all([post for id, post in there.items() if id >= (begins or 0)], have, sim.clock.now())
    assert (checkpoint.status, ended.outcome) in {(COMPLETED, "ok"), (COMPLETED, "unchanged"), (COMPLETED, "empty")}


class CutOff(Reaching):
    """Access to X that breaks off after so many requests."""

    left = 1

    async def fetch(self, request: Request) -> Response:
        if self.left == 0:
            raise TimedOut("X did not answer in time.")
        self.left -= 1
        return await super().fetch(request)


@pytest.mark.parametrize("by_search", [False, True])
def test_what_appears_while_a_crawl_stands_still_is_found_by_the_visit_after_it(
    db: Database, owner: Reader, by_search: bool
) -> None:
    name = f"c{uuid7()[-12:]}"
    busy = AccountHabits()._replace(posts_per_day=1500.0, edited=0.5, deleted=0.3)
    sim = simulated({name: busy}, seed=1, limits=XLimits(requests=0))
    sim.clock.advance(2 * HOUR)
    typed = f"x: from:{name}" if by_search else f"@{name}"
    source_id = db.write_now(follow, owner, typed, sim.clock.now()).source_id
    way, cut_off = Reaching(sim, answer, f"Bearer {sim.token}"), CutOff(sim, answer, f"Bearer {sim.token}")
    take(db, way, source_id, GOOD)
    begins = min(id for id, post in numbered(sim, name, by_search).items() if post.id in stored(db, source_id))
    sim.clock.advance(HOUR / 6)
    assert take(db, cut_off, source_id, GOOD._replace(page_size=10)).outcome == "failed"
    before = mark_of(db, source_id)
    sim.clock.advance(HOUR / 6)
    take(db, way, source_id, GOOD)  # goes on below what the first page had
    assert checkpoint_of(db, source_id).status == COMPLETED
    there = numbered(sim, name, by_search)
    have = stored(db, source_id)
    missing = [id for id, post in there.items() if id >= begins and post.id not in have]
    assert before < mark_of(db, source_id) < min(missing)  # they appeared above the first page in the meantime
    take(db, way, source_id, GOOD)
    assert_holds_all([there[id] for id in there if id >= begins], stored(db, source_id), sim.clock.now())


def take(db: Database, way: AtOnce, source_id: int, step: Step) -> Visit:
    now = way.clock.now
    [due] = db.write_now(leases.claim_named, [source_id], now=now(), lease=uuid7(), lease_for=HOUR, gap=timedelta(0))
    wanted = {**due.source.settings, "page_size": step.page_size, "max_pages": 0}
    due = due._replace(source=due.source._replace(settings=wanted))
    ended = asyncio.run(listing.visit(due, way.tools("x"), db))
    [saved] = db.write_now(record, [ended], now())
    assert saved.accepted
    return ended


def numbered(sim: SimX, name: str, by_search: bool) -> dict[int, SimTweet]:
    """What is listed now, by the id that it has now: an edit gives a post a new one."""
    now = sim.clock.now()
    there = [post for post in sim.posts[name] if post.is_listed(now)]
    found = [post for post in there if not by_search or post.version_at(now).since <= now - NOT_YET_FOUND]
    return {post.version_at(now).id: post for post in found}


def assert_holds_all(due: list[SimTweet], have: dict[int, str], now: datetime) -> None:
    """What is listed, from where the first visit ended on, is stored, and says what it says now."""
    assert {post.id for post in due} <= have.keys()
    for post in due:
        assert " ".join(post.version_at(now).text.split()) in have[post.id]


def stored(db: Database, source_id: int) -> dict[int, str]:
    def work(conn: Connection) -> dict[int, str]:
        query = select(posts.c.source_post_id, posts.c.content).where(posts.c.source_id == source_id)
        found = [(int(id), plain(content)) for id, content in conn.execute(query).all()]
        assert len(dict(found)) == len(found)
        return dict(found)

    return db.read_now(work)


def mark_of(db: Database, source_id: int) -> int:
    query = select(sources.c.last_seen_post_id).where(sources.c.id == source_id)
    return int(db.read_now(lambda conn: conn.execute(query).scalar_one()) or 0)


def checkpoint_of(db: Database, source_id: int) -> Any:
    query = select(checkpoints).where(checkpoints.c.source_id == source_id)
    return db.read_now(lambda conn: conn.execute(query).one_or_none())


def is_unfinished(db: Database, source_id: int) -> bool:
    """Whether the next visit goes on with a crawl that an earlier one began."""
    checkpoint = checkpoint_of(db, source_id)
    return checkpoint is not None and checkpoint.status != COMPLETED
