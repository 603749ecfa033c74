"""Politeness over all processes on one database (D7, A10, H31, H94)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, func, select

from headwater import wire
from headwater.cli.crawl import visit_now
from headwater.crawl.visit.steps import next_check
from headwater.follow.add import follow
from headwater.model import Reader, SavedVisit
from headwater.settings import load
from headwater.store.sources import leases
from headwater.store.tables import crawls, sources
from headwater.wire import Parts
from support.posts import NOON
from support.processes import kill, start, wait_until
from support.web import Answer, Asked, Web, rss

MINUTE = timedelta(minutes=1)


def visits(parts: Parts) -> int:
    return parts.db.read_now(lambda conn: conn.scalar(select(func.count()).select_from(crawls))) or 0


def test_two_processes_together_keep_the_gap_between_requests_to_one_host(environ: dict[str, str], world: Web) -> None:
    environ |= {"HEADWATER_HOST_GAP_SECONDS": "1"}  # D7, and so at most 60 in 60 s: A10
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    for number in range(8):
        world.pages[f"/{number}"] = Answer(rss(f"{number}"))
        parts.db.write_now(follow, owner, world.url(f"/{number}"), parts.now())
    began = parts.now()
    both = [start(environ), start(environ)]
    wait_until(lambda: visits(parts) >= 8)
    for process in both:
        kill(process)
    assert sorted(world.paths()) == [f"/{number}" for number in range(8)]
    starts = sorted(parts.db.read_now(lambda conn: conn.execute(select(crawls.c.started_at)).scalars().all()))
    # A busy machine may start one late, and the next on time; but none before its slot, and never two on one slot.
    assert all(at > began + timedelta(seconds=place - 0.1) for place, at in enumerate(starts))
    failures = parts.db.read_now(lambda conn: conn.scalar(select(func.sum(sources.c.failure_hit))))
    assert failures == 0, "waiting for a turn is no failure"
    parts.close()


def test_a_pause_that_one_process_was_asked_for_holds_for_the_other(environ: dict[str, str], world: Web) -> None:  # H31
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)

    def busy(asked: Asked) -> Answer:
        return Answer(status=429, headers={"Retry-After": "600"})

    world.pages["/first"] = busy
    parts.db.write_now(follow, owner, world.url("/first"), parts.now())
    first = start(environ)
    wait_until(lambda: visits(parts) >= 1)
    kill(first)
    world.pages["/second"] = Answer(rss("second"))
    parts.db.write_now(follow, owner, world.url("/second"), parts.now())
    second = start(environ)
    wait_until(
        lambda: parts.db.read_now(lambda conn: conn.scalar(select(sources.c.waits_for).order_by(sources.c.id.desc())))
    )
    kill(second)
    assert world.paths() == ["/first"]
    parts.close()


def test_ten_thousand_sources_due_at_once_spread_out_by_host(parts: Parts, owner: Reader) -> None:  # H94
    def fill(conn: Connection) -> None:
        rows = [
            {"kind": "rss", "address": f"https://h{n % 50}.example/{n}", "host": f"h{n % 50}.example"}
            for n in range(10_000)
        ]
        conn.execute(
            sources.insert(), [{**row, "created_at": NOON, "next_check_at": NOON, "settings": {}} for row in rows]
        )

    parts.db.write_now(fill)
    second = timedelta(seconds=1)
    granted = parts.db.write_now(
        leases.claim_due, now=NOON, lease="a", lease_for=timedelta(minutes=3), gap=second, limit=20_000
    )
    assert len(granted) == 50 * 3
    turns = parts.db.read_now(
        lambda conn: conn.execute(select(sources.c.host, sources.c.turn_at).where(sources.c.turn_at.is_not(None))).all()
    )
    assert len(turns) == len(set(turns)) == 10_000 - len(granted)
    assert max(turn.turn_at for turn in turns) == NOON + timedelta(seconds=199)


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_the_next_visit_is_the_latest_of_all_wishes_with_a_little_jitter(chance: float) -> None:
    assert NOON + 30 * MINUTE <= next_check(NOON, 30 * MINUTE, chance=chance) < NOON + 33 * MINUTE
    wished = next_check(NOON, 30 * MINUTE, chance=chance, wishes=(None, 120 * MINUTE, 5 * MINUTE))
    assert NOON + 120 * MINUTE <= wished < NOON + 132 * MINUTE
    absurd = next_check(NOON, 30 * MINUTE, chance=chance, wishes=(timedelta(days=900),))
    assert absurd <= NOON + timedelta(days=1.1)


def test_back_off_grows_with_failures_is_capped_and_never_stops_for_good() -> None:
    waits = [next_check(NOON, 30 * MINUTE, chance=0.0, failures=failures) - NOON for failures in range(1, 40)]
    assert waits[:4] == [30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE]
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(days=1)


def test_retry_after_is_obeyed_even_where_it_is_longer_than_the_back_off() -> None:  # H31
    asked = timedelta(hours=20)
    assert next_check(NOON, 30 * MINUTE, chance=0.0, failures=1, retry_after=asked) == NOON + asked


async def test_the_delay_is_what_remains_of_the_interval(parts: Parts, owner: Reader, world: Web) -> None:  # D4
    parts.settings = parts.settings.model_copy(update={"check_interval_seconds": 30 * 60})
    parts.now = lambda: NOON
    world.pages["/feed"] = Answer(rss("first"))
    source_id = (await parts.db.write(follow, owner, world.url("/feed"), NOON)).source_id

    async def claimed(after: timedelta) -> bool:
        lease = {"lease": "a", "lease_for": 3 * MINUTE, "gap": timedelta(0), "limit": 10}
        return bool(await parts.db.write(leases.claim_due, now=NOON + after, **lease))

    assert await parts.db.read(leases.next_due) == NOON  # it was never visited: nothing remains
    await visit_now(parts, [source_id])
    due_at = await parts.db.read(leases.next_due)
    assert due_at is not None
    assert 20 * MINUTE <= due_at - (NOON + 10 * MINUTE) < 23 * MINUTE  # 10 minutes later, and up to 10 % of jitter
    assert not await claimed(10 * MINUTE)
    assert not await claimed(29 * MINUTE)
    assert await claimed(90 * MINUTE)  # nothing remains


async def test_a_slot_that_was_missed_while_the_process_was_stopped_is_given_back(
    environ: dict[str, str], world: Web
) -> None:  # D7, H85
    parts = wire.open_parts(load({**environ, "HEADWATER_HOST_GAP_SECONDS": "1"}))
    owner = wire.prepare_store(parts)
    world.pages["/feed"] = Answer(rss("one"))
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    pace = wire.pace(parts.settings)
    claim = {"now": parts.now(), "lease": "ours", "lease_for": pace.lease_for, "gap": pace.gap, "limit": 1}
    [due] = parts.db.write_now(leases.claim_due, **claim)  # type: ignore[arg-type]
    saved: list[SavedVisit] = []
    async with wire.crawling(parts, saved.append) as crawler:
        crawler.start([due._replace(start_at=due.start_at - timedelta(seconds=30))])
        await crawler.settle()
    assert [(one.visit.outcome, one.accepted) for one in saved] == [("deferred", True)]
    assert world.asked == []
    assert parts.db.read_now(leases.due_ids, parts.now()) == [due.source.id]
    parts.close()
