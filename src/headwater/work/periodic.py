"""What runs every minute, hour or day: all periodic jobs, and the loop that runs them.

Times are UTC clock times: what runs every two hours runs at 00:00, 02:00 and so on, in every process. It does no harm
if several processes run a job, or if somebody runs it by hand. Any other scheduler can run the jobs from this list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.app.fleet import telemetry
from headwater.crawl import monitors, warm_up
from headwater.crawl.monitors import AlertLimits
from headwater.errors import HeadwaterError
from headwater.follow import pool
from headwater.store import posts, visits
from headwater.store.db import Database
from headwater.store.people import audit, deliveries, tokens
from headwater.store.posts import hot
from headwater.store.sources import leases, schedule
from headwater.store.sources import pool as pooled
from headwater.store.sources.limits import Budget
from headwater.store.visits import metrics
from headwater.waiting import run_until, wait

ANALYSIS, MAINTENANCE, CLEANUP, CRAWLER, MONITORING = QUEUES = (
    "analysis_queue",
    "maintenance_queue",
    "cleanup_queue",
    "crawler_queue",
    "monitoring_queue",
)
HIGH, DEFAULT = FEED_QUEUES = ("high", "default")  # what a person asked for, and what is due
BATCH = "tasks.crawler.crawl_seed_communities"  # two jobs run it; it takes `force_refresh`
log = structlog.get_logger()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class JobTools(NamedTuple):
    """What the jobs need. The last five do more than work on the store."""

    db: Database
    now: Callable[[], datetime]
    lease_for: timedelta
    hot_for: timedelta
    visits_kept: timedelta
    audit_kept: timedelta
    versions_kept: int
    readings_kept: timedelta
    hours_kept: timedelta
    limits: AlertLimits
    budget: Budget
    visit_due: Callable[[], Awaitable[object]]
    warm_up: Callable[[], Awaitable[object]]
    ask_hubs: Callable[[], Awaitable[object]]
    forget_events: Callable[[], Awaitable[object]]
    heal_images: Callable[[], Awaitable[object]]


class Job(NamedTuple):
    """Periodic work. A run that cannot start within `expires` of its time is skipped (None: it runs late)."""

    name: str
    every: timedelta
    queue: str
    task: str
    does: str
    work: Callable[[JobTools], Awaitable[object]]
    expires: timedelta | None = None


class SentTask(NamedTuple):
    """Work that has no time of its own: workers do it when somebody sends it."""

    name: str
    queues: tuple[str, ...]
    does: str


REFRESH_FEED, REFRESH_FEEDS = "tasks.feeds.refresh_feed", "tasks.feeds.refresh_feeds"
CRAWL_COMMUNITY = "tasks.crawler.crawl_community"
TASKS = (
    SentTask(
        REFRESH_FEED,
        FEED_QUEUES,
        "Visits a source, given its id, if it is due or was requested. `force_immediate` requests it. Visits that a "
        "person requested are in `high`.",
    ),
    SentTask(
        REFRESH_FEEDS,
        (DEFAULT,),
        "Visits those of the given sources that are due, and then other due sources. The dispatcher sends it.",
    ),
    SentTask(CRAWL_COMMUNITY, (CRAWLER,), "Visits a source now, given its name (`r/python`), address or id."),
)


async def _incremental(tools: JobTools) -> object:
    await tools.db.write(pool.apply_pool_tiers)
    return await tools.visit_due()


async def _clean_hot(tools: JobTools) -> int:
    posts = await tools.db.write(hot.clean, tools.hot_for, tools.now())
    return posts + await tools.db.write(pooled.remove_expired_listings, tools.now())


async def _forget_visits(tools: JobTools) -> int:
    await tools.db.write(schedule.forget_tasks, tools.now())
    return await tools.db.write(visits.forget_before, tools.now() - tools.visits_kept)


async def _thin_versions(tools: JobTools) -> int:
    """Returns how many posts had too many texts."""
    posts_thinned = 0
    while tools.versions_kept and (count := await tools.db.write(posts.thin_versions, tools.versions_kept)):
        posts_thinned += count
    return posts_thinned


async def _forget_telemetry(tools: JobTools) -> int:
    return await tools.db.write(telemetry.forget_old, tools.readings_kept, tools.hours_kept, tools.now())


async def _forget_gone_machines(tools: JobTools) -> int:
    """Returns how many rows were deleted. Others write in between: a machine may have had millions of readings."""
    deleted = 0
    while (count := await tools.db.write(telemetry.forget_gone)) is not None:
        deleted += count
    return deleted


# Jobs by the names that they have in schedules of the crawler's document.
ENTRIES = {
    "warmup-crawl-seed-communities": "warm-up",
    "auto-crawl-incremental": "incremental",
    "crawl-low-quality-communities": "low-quality",
    "cleanup-expired-posts": "clean-hot",
    "generate-daily-metrics": "daily-metrics",
    "monitor-warmup-metrics": "monitor-warm-up",
}

JOBS = (
    Job(
        "warm-up",
        2 * _HOUR,
        CRAWLER,
        BATCH,
        "Caches the listings of the pool's communities, with the requests that visits leave in the budget.",
        lambda tools: tools.warm_up(),
    ),
    Job(
        "crawl-seed-communities",
        30 * _MINUTE,
        CRAWLER,
        BATCH,
        "Caches the listings that `warm-up` had no requests for, and those that are older than two hours.",
        lambda tools: tools.warm_up(),
    ),
    Job(
        "incremental",
        30 * _MINUTE,
        CRAWLER,
        "tasks.crawler.crawl_seed_communities_incremental",
        "Assigns tiers to the sources of the pool, and visits what is due.",
        _incremental,
        expires=30 * _MINUTE,
    ),
    Job(
        "low-quality",
        4 * _HOUR,
        CRAWLER,
        "tasks.crawler.crawl_low_quality_communities",
        "Makes quiet sources of the pool due if they were not visited for eight hours.",
        lambda tools: tools.db.write(pooled.revisit_quiet, tools.now()),
        expires=_HOUR,
    ),
    Job(
        "clean-hot",
        6 * _HOUR,
        CLEANUP,
        "tasks.maintenance.cleanup_expired_posts_hot",
        "Removes expired posts from the hot store, and expired listings from the cache.",
        _clean_hot,
    ),
    Job(
        "daily-metrics",
        _DAY,
        MONITORING,
        "tasks.metrics.generate_daily",
        "Sums up the visits of past days.",
        lambda tools: tools.db.write(metrics.count_days, tools.now()),
    ),
    Job(
        "monitor-api-calls",
        _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_api_calls",
        "Counts the requests to Reddit in the last window. Raises and clears the alert about too many.",
        lambda tools: tools.db.write(monitors.watch_calls, tools.budget, tools.limits, tools.now()),
        expires=_MINUTE,
    ),
    Job(
        "monitor-cache-health",
        5 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_cache_health",
        "Raises and clears the alert about a low cache hit rate.",
        lambda tools: tools.db.write(monitors.watch_cache, tools.limits, tools.now()),
    ),
    Job(
        "monitor-crawler-health",
        5 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_crawler_health",
        "Raises and clears the alert about sources that wait too long for a visit.",
        lambda tools: tools.db.write(monitors.watch_crawler, tools.limits, tools.now()),
    ),
    Job(
        "monitor-warm-up",
        15 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_warmup_metrics",
        "Reports how many communities of the pool have a fresh cached listing.",
        lambda tools: tools.db.read(warm_up.warmth, tools.now()),
    ),
    Job(
        "count-visits",
        _MINUTE,
        MONITORING,
        "tasks.metrics.count_visits",
        "Counts the visits of this hour and the last.",
        lambda tools: tools.db.write(metrics.count_hours, tools.now()),
    ),
    Job(
        "heal-clock",
        5 * _MINUTE,
        MAINTENANCE,
        "tasks.maintenance.heal_clock",
        "Makes sources due now if a wrong clock put them too far into the future.",
        lambda tools: tools.db.write(leases.heal_clock, tools.now(), tools.lease_for),
    ),
    Job(
        "heal-queues",
        5 * _MINUTE,
        MAINTENANCE,
        "tasks.maintenance.heal_queues",
        "Does the same for webhook deliveries.",
        lambda tools: tools.db.write(deliveries.heal_clock, tools.now()),
    ),
    Job(
        "ask-hubs",
        _MINUTE,
        CRAWLER,
        "tasks.crawler.ask_hubs",
        "Asks WebSub hubs for pushes if a subscription is due.",
        lambda tools: tools.ask_hubs(),
        expires=_MINUTE,
    ),
    Job(
        "forget-visits",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_visits",
        "Deletes old visit records, and results of tasks after a day.",
        _forget_visits,
    ),
    Job(
        "thin-versions",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.thin_versions",
        "Deletes earlier texts of posts that have too many (HEADWATER_POST_VERSIONS).",
        _thin_versions,
    ),
    Job(
        "forget-events",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_events",
        "Deletes events that are older than the replay window and that no consumer needs.",
        lambda tools: tools.forget_events(),
    ),
    Job(
        "forget-audit",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_audit",
        "Deletes rows of the audit log that are older than HEADWATER_AUDIT_DAYS.",
        lambda tools: tools.db.write(audit.forget_before, tools.now() - tools.audit_kept),
    ),
    Job(
        "drop-tokens",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.drop_expired_tokens",
        "Deletes expired tokens.",
        lambda tools: tools.db.write(tokens.drop_expired, tools.now()),
    ),
    Job(
        "watch-miners",
        _MINUTE,
        MONITORING,
        "tasks.monitoring.watch_miners",
        "Publishes which machines went silent or fell below their rate, and which recovered.",
        lambda tools: tools.db.write(telemetry.look, tools.now()),
        expires=_MINUTE,
    ),
    Job(
        "forget-gone-machines",
        5 * _MINUTE,
        CLEANUP,
        "tasks.maintenance.forget_gone_machines",
        "Deletes the readings of removed machines and of removed people's machines, a few at a time.",
        _forget_gone_machines,
        expires=5 * _MINUTE,
    ),
    Job(
        "forget-telemetry",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_telemetry",
        "Deletes old readings of machines (HEADWATER_TELEMETRY_DAYS), and makes partitions for the coming months.",
        _forget_telemetry,
    ),
    Job(
        "heal-images",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.heal_images",
        "Deletes image files without a record, and downloads missing ones again.",
        lambda tools: tools.heal_images(),
    ),
)


def named(name: str) -> Job | None:
    """Returns the job with this name, task name, or name in the document's schedule."""
    name = ENTRIES.get(name, name)
    return next((job for job in JOBS if name in (job.name, job.task)), None)


def next_run(job: Job, after: datetime) -> datetime:
    """Returns the first scheduled time of the job after this time."""
    return after + job.every - (after - _EPOCH) % job.every


def is_expired(job: Job, due_at: datetime, now: datetime) -> bool:
    return job.expires is not None and now - due_at > job.expires


async def run_periodic(tools: JobTools, stop: asyncio.Event) -> None:
    """Runs the jobs until `stop` is set: the queues side by side, the jobs of a queue one after the other."""
    async with asyncio.TaskGroup() as group:
        for queue in QUEUES:
            group.create_task(_run_queue([job for job in JOBS if job.queue == queue], tools, stop))


async def _run_queue(jobs: Sequence[Job], tools: JobTools, stop: asyncio.Event) -> None:
    """Runs each job at the start and then at its times. Cancels a running job at the end: it can be run again."""
    due = dict.fromkeys(jobs, tools.now())
    while jobs and not stop.is_set():
        for job in jobs:
            now = tools.now()
            due_at, due[job] = due[job], min(due[job], next_run(job, now))  # sooner if the clock was set back
            if now >= due_at and not stop.is_set():
                due[job] = next_run(job, now)
                await run_until(stop, _run(job, due_at, tools))
        await wait((min(due.values()) - tools.now()).total_seconds(), stop=stop)


async def _run(job: Job, due_at: datetime, tools: JobTools) -> None:
    """Logs a failure. The job is tried again at its next time."""
    if is_expired(job, due_at, tools.now()):
        log.info("job.expired", job=job.name, due_at=due_at.isoformat())
        return
    try:
        result = await job.work(tools)
        log.debug("job.done", job=job.name, result=result)
    except HeadwaterError as error:
        log.warning("job.failed", job=job.name, error=error.detail)
