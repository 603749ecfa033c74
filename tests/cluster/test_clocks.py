"""Machines whose clocks are wrong, or are set while they work. What they agree on is the time of the database."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from headwater.model import Reader
from headwater.store.tables import crawls, sources
from headwater.wire import Parts
from support.clocks import ProcessClock
from support.cluster import Cluster, add_feeds, count_of, lease, make_due
from support.processes import wait_until
from support.web import Web

DAY = timedelta(days=1)


@pytest.fixture
def clock(tmp_path: Path) -> ProcessClock:
    return ProcessClock(tmp_path / "clock")


def test_a_worker_whose_clock_is_a_day_ahead_visits_nothing_that_another_one_visits(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster, clock: ProcessClock
) -> None:  # H93 D5
    held, free = add_feeds(parts, owner, world, 2)
    lease(parts, held)
    clock.set_ahead(DAY)
    cluster.environ |= clock.environ
    worker = cluster.worker()
    cluster.send("tasks.feeds.refresh_feed", held)
    wait_until(lambda: "reject requeue=False" in worker.text())
    assert cluster.result(cluster.send("tasks.feeds.refresh_feed", free).id)["success"]
    assert world.paths() == ["/1"]
    visited_at, next_check_at = parts.db.read_now(
        lambda conn: conn.execute(
            select(sources.c.last_crawled_at, sources.c.next_check_at).where(sources.c.id == free)
        ).one()
    )
    assert visited_at <= parts.now()
    assert next_check_at < parts.now() + DAY


def test_clocks_that_are_set_by_a_day_neither_stop_visits_nor_make_a_storm_of_them(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster, clock: ProcessClock
) -> None:  # H93
    add_feeds(parts, owner, world, 5)
    cluster.environ |= clock.environ
    cluster.worker()
    cluster.beat()
    wait_until(lambda: count_of(parts, crawls) == 5)
    for rounds, ahead in enumerate((-DAY, DAY), start=2):
        clock.set_ahead(ahead)
        make_due(parts)
        wait_until(lambda rounds=rounds: count_of(parts, crawls) == 5 * rounds)  # type: ignore[misc]
    lately = select(func.count()).select_from(sources).where(sources.c.next_check_at <= parts.now())
    assert parts.db.read_now(lambda conn: conn.scalar(lately)) == 0
    assert len(world.asked) == 15


def test_a_beat_whose_clock_is_set_back_sends_its_jobs_at_their_times(
    cluster: Cluster, clock: ProcessClock
) -> None:  # H93
    cluster.environ |= clock.environ
    clock.set_ahead(DAY + before_a_minute())
    beat = cluster.beat("--max-interval", "1")
    sent = "Sending due task count-visits"
    wait_until(lambda: beat.text().count(sent) == 1)
    clock.set_ahead(before_a_minute())
    wait_until(lambda: beat.text().count(sent) == 2)


def before_a_minute() -> timedelta:
    """Returns by how much a clock has to be ahead, so that a minute begins in some seconds."""
    return timedelta(seconds=55 - time.time() % 60)
