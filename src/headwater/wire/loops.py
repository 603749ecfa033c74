"""What runs for good: the crawler, the consumers, webhooks, images and the periodic work, each with its tools."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from headwater.access.robots import Robots
from headwater.app import cluster, instance
from headwater.app import log as event_log
from headwater.app.cluster import Finding
from headwater.crawl import warm_up as warming
from headwater.crawl.crawler import Crawler
from headwater.crawl.images import ImageTools
from headwater.crawl.monitors import AlertLimits
from headwater.crawl.visit.steps import VisitTools
from headwater.errors import StoreUnavailable
from headwater.events.delivery import Consumer
from headwater.fetch.browser import Browser
from headwater.follow import push
from headwater.model import SavedVisit, Source
from headwater.settings.table import Settings
from headwater.sources import reddit, x
from headwater.store.log import outbox
from headwater.waiting import run_until
from headwater.wire.checks import image_folder, instance_name, reddit_budget, redis_url
from headwater.wire.clients import client as open_any
from headwater.wire.clients import open_client, open_reddit_client, reddit_access, x_access
from headwater.wire.parts import Parts, extra, open_marks, open_parsers, utc_now
from headwater.work import consumers, crawl_loop, images, mentions, periodic, portfolios, upkeep, webhooks
from headwater.work.crawl_loop import CrawlPace
from headwater.work.periodic import JobTools
from headwater.work.portfolios import CalculationTools

log = structlog.get_logger()
CLAIM_AHEAD = 3  # visits in hand for each one that may be on the wire, so that no connection waits for the database
HUB_SECONDS = 10.0  # a hub has to answer within


@asynccontextmanager
async def all_loops(
    parts: Parts, on_saved: Callable[[SavedVisit], None], stop: asyncio.Event
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Starts everything that `headwater up` runs beside the web server. On leaving, waits until all of it has ended."""
    async with crawling(parts, on_saved) as crawler:
        loops = [
            asyncio.create_task(loop)
            for loop in (
                *_crawl_loops(parts, crawler, stop),
                follow_log(parts, stop),
                deliver_webhooks(parts, stop),
                save_images(parts, stop),
                upkeep.keep_trimmed(parts.db, stop),
            )
        ]
        try:
            yield loops
        finally:
            await asyncio.gather(*loops)


def _crawl_loops(parts: Parts, crawler: Crawler, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
    """Returns what a Celery deployment has workers for: visits and periodic work."""
    if parts.leaves_visits_to_celery:
        log.info("visits.left_to_celery", start="celery -A headwater.work.celery_app worker, and beat")
        return []
    return [
        crawl_loop.run(parts.db, crawler, pace(parts.settings), parts.now, parts.woken, stop),
        periodic.run_periodic(periodic_tools(parts), stop),
    ]


@asynccontextmanager
async def crawling(parts: Parts, on_saved: Callable[[SavedVisit], None]) -> AsyncIterator[Crawler]:
    """Opens a crawler with its clients and parsers. On leaving, visits under way finish or are given back."""
    settings = parts.settings
    client, reddit_client, parsers = open_client(parts), open_reddit_client(parts), open_parsers(parts)
    browser = Browser(
        client,
        sandbox=settings.browser_sandbox == "on",
        memory_mb=settings.browser_memory_mb,
        max_bytes=settings.fetch_max_bytes,
        clock=parts.now,
    )
    parts.reddit = reddit_access(parts, reddit_client)
    tools = VisitTools(
        fetch=client.fetch,
        fetch_first=partial(client.fetch, first=True),
        parsers=parsers,
        now=parts.now,
        chance=random.random,
        interval=timedelta(seconds=settings.check_interval_seconds),
        visit_seconds=settings.visit_seconds,
        gap=settings.host_gap_seconds,
        paused_until={},
        unseal=parts.unseal,
        access={reddit.KIND.name: parts.reddit, x.KIND.name: x_access(parts, client)},
        robots=Robots(parts.db, client.fetch, parsers, settings.user_agent, parts.now),
        browser=browser.fetch,
        listing=chosen_listing(settings),
    )
    marks = parts.marks = open_marks(parts)

    def on_ended(saved: SavedVisit) -> None:
        if marks:
            marks.ended(saved.visit.source_id)
        on_saved(saved)

    crawler = Crawler(parts.db, tools, on_ended, marks.started if marks else lambda _: None)
    parts.parsers = parsers
    try:
        yield crawler
    finally:
        parts.parsers = parts.reddit = None
        await crawler.stop(timedelta(seconds=settings.shutdown_seconds))
        if marks:
            await marks.close()
        await browser.close()
        await client.close()
        await reddit_client.close()
        await parsers.close()


def pace(settings: Settings) -> CrawlPace:
    return CrawlPace(
        most_in_hand=settings.max_concurrency * CLAIM_AHEAD,
        lease_for=timedelta(seconds=settings.lease_seconds),
        gap=timedelta(seconds=settings.host_gap_seconds),
    )


async def follow_log(parts: Parts, stop: asyncio.Event) -> None:
    """Runs the consumers until `stop` is set. They follow Kafka if it is configured, and the table otherwise."""
    async with asyncio.TaskGroup() as group:
        for consumer in parts.consumers:
            group.create_task(_follow(parts, consumer, stop))
        group.create_task(portfolios.keep_calculated(calculation_tools(parts), parts.stale_portfolios, stop))
        group.create_task(mentions.keep_searched(parts.db, lambda: parts.now(), parts.new_subjects, stop))


async def _follow(parts: Parts, consumer: Consumer, stop: asyncio.Event) -> None:
    if consumer.name == "fold":
        await run_until(stop, prepare_folding(parts))
    brokers = parts.settings.kafka_bootstrap_servers
    if brokers is None:
        await consumers.consume(parts.db, [consumer], parts.new_events, parts.now, stop)
    else:
        from headwater.events.kafka import follow  # an extra

        await follow.follow(parts.db, consumer, brokers, parts.now, stop)


def calculation_tools(parts: Parts) -> CalculationTools:
    return CalculationTools(parts.db, parts.locks, parts.cache, lambda: parts.now())


async def catch_up(parts: Parts) -> None:
    """Brings the consumers to the end of the log, and does what they have asked for."""
    await consumers.catch_up(parts.db, parts.consumers, parts.now)
    await mentions.catch_up(parts.db, parts.now)
    await portfolios.catch_up(calculation_tools(parts))


async def hear_of_events(parts: Parts, stop: asyncio.Event) -> None:
    """Wakes this process when another one appends events. Processes that share an SQLite file look once a second."""
    if not parts.db.is_sqlite:
        await outbox.listen(parts.db, parts.new_events.send, stop)


async def watch_store(parts: Parts, stop: asyncio.Event) -> None:
    """Logs what is wrong with the store until `stop` is set."""
    await upkeep.watch_store(parts.db, stop)


async def prepare_folding(parts: Parts) -> None:
    """Builds the index of stories before there is anything to decide. The other consumers do not wait for it."""
    if parts.settings.fold == "off":
        return
    if not instance.compiled_parts()["folding"]:
        log.warning("folding.slow", why="it is not compiled: install a C compiler, then Headwater again")
    try:
        await parts.db.read(parts.folding.prepare, parts.now())
    except StoreUnavailable as error:
        log.warning("folding.waits", error=error.detail)  # it is built when there is something to decide


async def deliver_webhooks(parts: Parts, stop: asyncio.Event) -> None:
    """Sends what waits for webhooks until `stop` is set."""
    settings = parts.settings
    client = open_any(
        parts,
        user_agent=settings.user_agent,
        timeout=webhooks.ANSWER_SECONDS,
        max_bytes=webhooks.ANSWER_BYTES,
        connections=webhooks.CONCURRENCY,
        max_redirects=0,
    )
    tools = webhooks.DeliveryTools(client.fetch, parts.unseal, instance_name(settings), parts.now, random.random)
    try:
        patience = timedelta(seconds=settings.shutdown_seconds)
        await webhooks.deliver(parts.db, tools, parts.new_events, patience, stop)
    finally:
        await client.close()


async def save_images(parts: Parts, stop: asyncio.Event) -> None:
    """Downloads the images of posts until `stop` is set, if that is switched on."""
    settings = parts.settings
    if settings.images == "off":
        await stop.wait()
        return
    client = open_client(parts)
    tools = ImageTools(
        partial(client.fetch, max_bytes=settings.image_max_bytes), image_folder(settings), settings.image_max_bytes
    )
    pace = images.ImagePace(timedelta(seconds=settings.host_gap_seconds), settings.images_total_mb * 1024 * 1024)
    clock = images.ImageClock(parts.now, random.random)
    try:
        patience = timedelta(seconds=settings.shutdown_seconds)
        await images.save_images(parts.db, tools, pace, clock, patience, stop)
    finally:
        await client.close()


async def heal_images(parts: Parts) -> int:
    if parts.settings.images == "off":
        return 0
    return await images.heal(parts.db, image_folder(parts.settings), parts.now)


async def ask_hubs(parts: Parts) -> int:
    """Asks the hubs that are due to push to this instance. Returns how many were asked."""
    if not parts.settings.public_url:
        return 0
    client = open_client(parts)
    try:
        ask = partial(client.fetch, timeout=HUB_SECONDS)
        return await push.ask_hubs(parts.db, ask, parts.settings.public_url, parts.hub_secret, parts.now)
    finally:
        await client.close()


async def warm_up(parts: Parts, communities: Sequence[Source] | None = None, **how: Any) -> int:
    """Caches listings of these communities, or of the pool's. Returns how many were cached.

    `how` are the options of `warm_up` in `crawl/warm_up.py`.
    """
    settings = parts.settings
    plan = warming.WarmUpPlan(
        **(warming.LISTING | chosen_listing(settings)),
        batch=settings.crawler_batch_size,
        kept=timedelta(hours=settings.hot_cache_ttl_hours),
    )
    client, parsers = open_reddit_client(parts), parts.parsers or open_parsers(parts)
    try:
        tools = warming.WarmUpTools(parts.db, parts.reddit or reddit_access(parts, client), parsers, parts.now)
        return await warming.warm_up(tools, plan, communities, **how)
    finally:
        await client.close()
        if parsers is not parts.parsers:
            await parsers.close()


def chosen_listing(settings: Settings) -> dict[str, Any]:
    """Returns what the settings say about the listing of every community; the rest is up to its tier."""
    chosen = {
        "sort": settings.crawler_sort,
        "time_filter": settings.crawler_time_filter,
        "limit": settings.crawler_post_limit,
    }
    return {name: value for name, value in chosen.items() if value is not None}


async def _wake_crawl_loop(parts: Parts) -> None:
    parts.wake()


def periodic_tools(
    parts: Parts,
    visit_due: Callable[[Parts], Awaitable[object]] = _wake_crawl_loop,
    *,
    force_refresh: bool = False,
) -> JobTools:
    """Returns what the periodic work needs. Where no crawl loop runs, `visit_due` says who visits what is due.

    With `force_refresh`, the batch crawl (`periodic.BATCH`) caches every listing of the pool again.
    """
    settings = parts.settings
    kept_for = timedelta(days=settings.event_history_days)
    return JobTools(
        db=parts.db,
        now=parts.now,
        lease_for=timedelta(seconds=settings.lease_seconds),
        hot_for=timedelta(hours=settings.hot_cache_ttl_hours),
        visits_kept=timedelta(days=settings.visit_history_days),
        audit_kept=timedelta(days=settings.audit_days),
        versions_kept=settings.post_versions,
        readings_kept=timedelta(days=settings.telemetry_days),
        hours_kept=timedelta(days=settings.telemetry_hours_days),
        limits=AlertLimits(
            settings.monitor_api_threshold,
            settings.monitor_cache_hit_threshold,
            timedelta(minutes=settings.monitor_crawl_stale_minutes),
        ),
        budget=reddit_budget(settings),
        visit_due=lambda: visit_due(parts),
        warm_up=lambda: warm_up(parts, force_refresh=force_refresh),
        ask_hubs=lambda: ask_hubs(parts),
        forget_events=lambda: event_log.forget_old(parts.db, parts.now(), kept_for, has_cursors=parts.follows_table),
        heal_images=lambda: heal_images(parts),
    )


def examine_cluster(parts: Parts) -> AsyncIterator[Finding]:
    """Checks the broker, the workers, Redis, and what PostgreSQL does for a cluster, as far as they are in use."""
    settings, celery = parts.settings, None
    if settings.celery_broker_url is not None:
        with extra("cluster"):
            from headwater.work.celery_app import sender as celery  # reads the settings when it is imported
    url = redis_url(settings)
    broker = settings.celery_broker_url.get_secret_value() if settings.celery_broker_url else None
    return cluster.examine(
        parts.db,
        utc_now,  # what this machine believes, and not what it is told
        celery=celery,
        queues=(*periodic.FEED_QUEUES, *periodic.QUEUES),
        redis_url=url,
        is_broker=url is not None and url == broker,
    )
