"""What runs when: all periodic work, declared once. The embedded loop runs from it, and so can any other scheduler.

Times are those of the clock, UTC: what runs every two hours runs at 00:00, 02:00 and so on, wherever it runs. Each job
does no harm when several processes do it, or when it is done by hand.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headwater.crawl import monitors
from headwater.crawl.monitors import AlertLimits
from headwater.follow import pool
from headwater.store import visits
from headwater.store.db import Database
from headwater.store.people import accounts, deliveries
from headwater.store.posts import hot
from headwater.store.sources import leases, listings
from headwater.store.sources import pool as pooled
from headwater.store.sources.limits import Budget
from headwater.store.visits import metrics

ANALYSIS, MAINTENANCE, CLEANUP, CRAWLER, MONITORING = QUEUES = (
    "analysis_queue",
    "maintenance_queue",
    "cleanup_queue",
    "crawler_queue",
    "monitoring_queue",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class PeriodicTools(NamedTuple):
    """What the jobs work with. The last five are what reaches further than the store."""

    db: Database
    now: Callable[[], datetime]
    lease_for: timedelta
    hot_for: timedelta
    visits_kept: timedelta
    limits: AlertLimits
    budget: Budget
    visit_due: Callable[[], Awaitable[object]]
    warm_up: Callable[[], Awaitable[object]]
    ask_hubs: Callable[[], Awaitable[object]]
    forget_events: Callable[[], Awaitable[object]]
    heal_pictures: Callable[[], Awaitable[object]]


class Job(NamedTuple):
    """Periodic work. A run that could not start within `expires` of its time is left out; None: it is made up for."""

    name: str
    every: timedelta
    queue: str
    task: str
    does: str
    work: Callable[[PeriodicTools], Awaitable[object]]
    expires: timedelta | None = None


async def _incremental(house: PeriodicTools) -> object:
    await house.db.write(pool.apply_pool_tiers)
    return await house.visit_due()


async def _clean_hot(house: PeriodicTools) -> int:
    posts = await house.db.write(hot.clean, house.hot_for, house.now())
    return posts + await house.db.write(listings.remove_expired, house.now())


JOBS = (
    Job(
        "warm-up",
        2 * _HOUR,
        CRAWLER,
        "tasks.crawler.crawl_seed_communities",
        "Caches the listings of the pool's communities, as far as visits leave requests for it.",
        lambda house: house.warm_up(),
    ),
    Job(
        "incremental",
        30 * _MINUTE,
        CRAWLER,
        "tasks.crawler.crawl_seed_communities_incremental",
        "Gives the sources of the pool their tiers, and has visited what is due.",
        _incremental,
        expires=30 * _MINUTE,
    ),
    Job(
        "low-quality",
        4 * _HOUR,
        CRAWLER,
        "tasks.crawler.crawl_low_quality_communities",
        "Makes quiet sources of the pool due that were not seen for eight hours.",
        lambda house: house.db.write(pooled.revisit_quiet, house.now()),
        expires=_HOUR,
    ),
    Job(
        "clean-hot",
        6 * _HOUR,
        CLEANUP,
        "tasks.maintenance.cleanup_expired_posts_hot",
        "Removes what has expired from the hot store and the cached listings.",
        _clean_hot,
    ),
    Job(
        "daily-metrics",
        _DAY,
        MONITORING,
        "tasks.metrics.generate_daily",
        "Sums up the visits of the days that are over.",
        lambda house: house.db.write(metrics.count_days, house.now()),
    ),
    Job(
        "monitor-api-calls",
        _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_api_calls",
        "Notes how many requests to Reddit the last minute held; raises and clears the alert about too many.",
        lambda house: house.db.write(monitors.watch_calls, house.budget, house.limits, house.now()),
        expires=_MINUTE,
    ),
    Job(
        "monitor-cache-health",
        5 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_cache_health",
        "Raises and clears the alert about too few answers that are what we have.",
        lambda house: house.db.write(monitors.watch_cache, house.limits, house.now()),
    ),
    Job(
        "monitor-crawler-health",
        5 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_crawler_health",
        "Raises and clears the alert about sources that wait too long for a visit.",
        lambda house: house.db.write(monitors.watch_crawler, house.limits, house.now()),
    ),
    Job(
        "monitor-warm-up",
        15 * _MINUTE,
        MONITORING,
        "tasks.monitoring.monitor_warmup_metrics",
        "Says how many communities of the pool have a cached listing that is still good.",
        lambda house: house.db.read(listings.warmth, house.now()),
    ),
    Job(
        "count-visits",
        _MINUTE,
        MONITORING,
        "tasks.metrics.count_visits",
        "Counts the visits of the present hour and the one before.",
        lambda house: house.db.write(metrics.count_hours, house.now()),
    ),
    Job(
        "heal-clock",
        5 * _MINUTE,
        MAINTENANCE,
        "tasks.maintenance.heal_clock",
        "Brings back what a wrong clock put too far into the future.",
        lambda house: house.db.write(leases.heal_clock, house.now(), house.lease_for),
    ),
    Job(
        "heal-queues",
        5 * _MINUTE,
        MAINTENANCE,
        "tasks.maintenance.heal_queues",
        "The same for deliveries of webhooks.",
        lambda house: house.db.write(deliveries.heal_clock, house.now()),
    ),
    Job(
        "ask-hubs",
        _MINUTE,
        CRAWLER,
        "tasks.crawler.ask_hubs",
        "Asks the hubs of feeds whose time has come to push.",
        lambda house: house.ask_hubs(),
        expires=_MINUTE,
    ),
    Job(
        "forget-visits",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_visits",
        "Deletes the records of old visits.",
        lambda house: house.db.write(visits.forget_before, house.now() - house.visits_kept),
    ),
    Job(
        "forget-events",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.forget_events",
        "Deletes events that are older than the replay window and that nobody needs.",
        lambda house: house.forget_events(),
    ),
    Job(
        "drop-tokens",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.drop_expired_tokens",
        "Deletes tokens that have expired.",
        lambda house: house.db.write(accounts.drop_expired, house.now()),
    ),
    Job(
        "heal-pictures",
        _HOUR,
        CLEANUP,
        "tasks.maintenance.heal_pictures",
        "Brings records of saved pictures and their files together again.",
        lambda house: house.heal_pictures(),
    ),
)


def named(name: str) -> Job | None:
    """The job of this name, or of this task name."""
    return next((job for job in JOBS if name in (job.name, job.task)), None)


def next_run(job: Job, after: datetime) -> datetime:
    """The first time of the job after this one."""
    return after + job.every - (after - _EPOCH) % job.every


def is_expired(job: Job, due_at: datetime, now: datetime) -> bool:
    return job.expires is not None and now - due_at > job.expires
