"""Periodic work is declared once, runs at its times, not when it is too late, and can be done by hand (A9, A13)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select
from typer.testing import CliRunner

from api.running import Running
from headwater import wire
from headwater.cli.commands import program
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.tables import crawl_hours as hours_table
from headwater.store.tables import hot_posts, sources
from headwater.store.visits import metrics
from headwater.work import periodic
from headwater.work.periodic import JOBS, QUEUES, Job, is_expired, next_run
from support.posts import NOON, a_post, a_source, visited

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
PROMISED = {
    "tasks.crawler.crawl_seed_communities_incremental": (30 * MINUTE, 30 * MINUTE, "crawler_queue"),
    "tasks.crawler.crawl_low_quality_communities": (4 * HOUR, HOUR, "crawler_queue"),
    "tasks.maintenance.cleanup_expired_posts_hot": (6 * HOUR, None, "cleanup_queue"),
    "tasks.metrics.generate_daily": (24 * HOUR, None, "monitoring_queue"),
    "tasks.monitoring.monitor_api_calls": (MINUTE, MINUTE, "monitoring_queue"),
    "tasks.monitoring.monitor_cache_health": (5 * MINUTE, None, "monitoring_queue"),
    "tasks.monitoring.monitor_warmup_metrics": (15 * MINUTE, None, "monitoring_queue"),
}


def job_named(name: str) -> Job:
    job = periodic.named(name)
    assert job is not None
    return job


def test_all_that_is_promised_runs_as_often_as_promised() -> None:  # A9
    once = {job.task: (job.every, job.expires, job.queue) for job in JOBS if job.task != periodic.BATCH}
    assert once == once | PROMISED
    assert "tasks.monitoring.monitor_crawler_health" in once
    assert len({job.name for job in JOBS}) == len(once) + 2 == len(JOBS)
    assert {job.queue for job in JOBS} <= set(QUEUES)


def test_the_batch_crawl_is_scheduled_twice() -> None:  # A9, A15
    batches = {job.name: (job.task, job.every, job.queue) for job in JOBS if job.task == periodic.BATCH}
    assert batches == {
        "warm-up": ("tasks.crawler.crawl_seed_communities", 2 * HOUR, "crawler_queue"),
        "crawl-seed-communities": ("tasks.crawler.crawl_seed_communities", 30 * MINUTE, "crawler_queue"),
    }


def test_the_entries_of_the_documents_schedule_are_jobs_here() -> None:  # A9, A13
    entries = {
        "warmup-crawl-seed-communities": "tasks.crawler.crawl_seed_communities",
        "crawl-seed-communities": "tasks.crawler.crawl_seed_communities",
        "auto-crawl-incremental": "tasks.crawler.crawl_seed_communities_incremental",
        "crawl-low-quality-communities": "tasks.crawler.crawl_low_quality_communities",
        "monitor-warmup-metrics": "tasks.monitoring.monitor_warmup_metrics",
        "generate-daily-metrics": "tasks.metrics.generate_daily",
        "monitor-api-calls": "tasks.monitoring.monitor_api_calls",
        "monitor-cache-health": "tasks.monitoring.monitor_cache_health",
        "cleanup-expired-posts": "tasks.maintenance.cleanup_expired_posts_hot",
    }
    assert {name: job_named(name).task for name in entries} == entries


@given(st.sampled_from(JOBS), st.datetimes(max_value=NOON.replace(tzinfo=None), timezones=st.just(UTC)))
def test_times_are_those_of_the_clock(job: Job, now: datetime) -> None:  # A9
    at = next_run(job, now)
    assert now < at <= now + job.every
    assert next_run(job, at) == at + job.every
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    assert (at - midnight) % job.every == timedelta(0)


def test_a_run_that_could_not_start_in_time_is_left_out() -> None:  # A9
    low, warm = job_named("low-quality"), job_named("warm-up")
    assert not is_expired(low, NOON, NOON + HOUR)
    assert is_expired(low, NOON, NOON + HOUR + MINUTE)
    assert not is_expired(warm, NOON, NOON + 20 * HOUR)


async def test_the_loop_does_all_work_at_the_start_and_ends_when_told(on_both: Running) -> None:  # A9
    parts, done = on_both.parts, list[str]()
    stop = asyncio.Event()

    async def note(name: str) -> None:
        done.append(name)
        if len(done) == 5:
            stop.set()

    tools = wire.periodic_tools(parts)._replace(
        visit_due=lambda: note("visit"),
        warm_up=lambda: note("warm up"),
        ask_hubs=lambda: note("hubs"),
        forget_events=lambda: note("events"),
    )
    async with asyncio.timeout(30):
        await periodic.run_periodic(tools, stop)
    assert sorted(done) == ["events", "hubs", "visit", "warm up", "warm up"]


def an_hour(conn: Connection, hour: datetime, new: int, sources_total: int | None) -> None:
    counts = dict.fromkeys(("visits_ok", "visits_unchanged", "visits_empty", "visits_failed", "posts_updated"), 1)
    values = {**counts, "seconds": 2.0, "posts_new": new, "posts_duplicate": 0, "sources_total": sources_total}
    conn.execute(insert(hours_table).values(hour=hour, **values))


def test_the_days_that_are_over_are_summed_up_once(db: Database, owner: Reader) -> None:  # A8, A9
    yesterday, today = NOON - 12 * HOUR - 24 * HOUR, NOON - 12 * HOUR

    def work(conn: Connection) -> None:
        for hour, new, total in ((0, 5, 7), (23, 6, 8), (24, 100, 9)):
            an_hour(conn, yesterday + HOUR * hour, new, total)
        assert metrics.count_days(conn, today - MINUTE) == 0
        assert metrics.count_days(conn, today) == 1
        assert metrics.count_days(conn, today + HOUR) == 0
        [day] = metrics.recent_days(conn, today, 14)
        assert (day.hour, day.posts_new, day.visits, day.sources_total) == (yesterday, 11, 8, 8)
        assert day.cache_hit_rate == pytest.approx(1 / 3)

    db.write_now(work)


def run(*words: str) -> list[dict[str, Any]]:
    ran = CliRunner().invoke(program(), [*words, "--json"], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return [json.loads(line) for line in ran.output.splitlines()]


def test_everything_can_be_done_by_hand(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # A13
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    assert [one["name"] for one in run("run")] == [job.name for job in JOBS]
    for job in JOBS:
        [said] = run("run", job.name)
        assert said["job"] == job.name
    [said] = run("run", "tasks.maintenance.cleanup_expired_posts_hot")
    assert said == {"job": "clean-hot", "result": 0}
    assert CliRunner().invoke(program(), ["run", "nothing"]).exit_code != 0
    assert "incremental" in CliRunner().invoke(program(), ["run"]).output
    assert "0 visited, 0 failed" in CliRunner().invoke(program(), ["run", "incremental"], catch_exceptions=False).output


async def test_expired_posts_are_removed_by_the_job(on_both: Running) -> None:  # A4, A13
    parts, now = on_both.parts, on_both.parts.now()

    def publish(conn: Connection) -> None:
        source_id = a_source(conn, on_both.owner, now=now)
        visited(conn, source_id, [a_post("new", created_at=now), a_post("old", created_at=now - 2 * HOUR)], now)

    def left(conn: Connection) -> list[str]:
        return list(conn.execute(select(hot_posts.c.source_post_id)).scalars())

    await parts.db.write(publish)
    assert await parts.db.read(left) == ["new", "old"]
    assert await job_named("clean-hot").work(wire.periodic_tools(parts)._replace(hot_for=HOUR)) == 1
    assert await parts.db.read(left) == ["new"]


async def test_the_incremental_job_gives_tiers_and_wakes_the_loop(on_both: Running) -> None:  # A7, A9
    parts = on_both.parts
    source_id = on_both.source()
    average = sources.update().values(pooled_at=parts.now(), avg_valid_posts=25)
    await parts.db.write(lambda conn: conn.execute(average))
    parts.woken.clear()
    await job_named("incremental").work(wire.periodic_tools(parts))
    assert parts.woken.is_set()
    tier = await parts.db.read(lambda conn: conn.execute(select(sources.c.id, sources.c.tier)).all())
    assert tier == [(source_id, "high")]
