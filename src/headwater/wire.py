"""The composition root: reads the settings and puts the parts together. Only entry points import it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

import structlog

from headwater.access.budget import Access, RateLimiter
from headwater.access.reddit import RedditApi, RedditApp, RedditFeeds
from headwater.access.robots import Robots
from headwater.access.x import METER, NO_TOKEN, SECRET, MonthlyMeter, XApi
from headwater.access.x import XState as XState
from headwater.accounts import tokens
from headwater.accounts.vault import Vault, key_in
from headwater.consumers import search, webhooks
from headwater.consumers.fold import Folder
from headwater.crawl import images as pictures
from headwater.crawl import warm_up as warming
from headwater.crawl.crawler import Crawler
from headwater.crawl.monitors import AlertLimits
from headwater.crawl.visit.shared import VisitTools
from headwater.crawl.warm_up import Warmed
from headwater.dedup import warm
from headwater.errors import BadSetting, KeyMissing, SourceFailure, StoreUnavailable
from headwater.events.bell import Bell
from headwater.events.delivery import Consumer
from headwater.fetch.browser import Browser
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.follow import push
from headwater.model import Reader, SavedVisit, Source
from headwater.parse.pool import Parsers
from headwater.settings import Loaded, Settings
from headwater.store import migrate, sources
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox, outbox, wakeups
from headwater.store.people import accounts, deliveries, secrets
from headwater.store.posts import hot
from headwater.store.sources import limits
from headwater.store.sources.limits import Allowance, Budget
from headwater.work import consumers
from headwater.work import images as healing
from headwater.work import images as imaging
from headwater.work import webhooks as delivering
from headwater.work.crawl_loop import CrawlPace
from headwater.work.periodic import PeriodicTools
from headwater.work.waiting import run_until

log = structlog.get_logger()
CLAIM_AHEAD = 3  # visits in hand for each one that may be on the wire, so that no connection waits for the database
HUB_SECONDS = 10.0  # a hub has to answer within


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Parts:
    """What the ways in work with. `now` is the clock; `woken` is set when there may be something due.

    While this process crawls, `parsers` can parse a push as well. Pages of a demonstration say that they are one.
    """

    settings: Settings
    db: Database
    now: Callable[[], datetime] = utc_now
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    bell: Bell = field(default_factory=Bell)
    parsers: Parsers | None = None
    is_demo: bool = False

    @cached_property
    def vault(self) -> Vault:
        """Where passwords of sources are sealed and opened; its key is made the first time one is needed."""
        given = self.settings.secret_key
        return Vault(given.get_secret_value() if given else key_in(self.settings.data_dir))

    @cached_property
    def consumers(self) -> tuple[Consumer, ...]:
        """All that follows the log."""
        return (search.CONSUMER, webhooks.CONSUMER, self.folder.consumer())

    @property
    def follows_table(self) -> bool:
        """Whether consumers follow the outbox by cursors; else they follow Kafka."""
        return self.settings.kafka_bootstrap_servers is None

    @cached_property
    def folder(self) -> Folder:
        """What decides in this process which posts are one story."""
        return Folder(
            window=timedelta(hours=self.settings.fold_window_hours),
            level=self.settings.fold,
            embeddings=self.settings.fold_embeddings,
        )

    def seal(self, secret: str) -> bytes:
        return self.vault.seal(secret)

    def hub_secret(self, callback_id: str) -> str:
        """What a hub signs its pushes to this callback with."""
        return self.vault.derived(f"hub {callback_id}")

    def wake(self) -> None:
        """Tell the crawl loop of this process to look now instead of at its next round."""
        self.woken.set()

    def close(self) -> None:
        self.db.close()


def open_parts(loaded: Loaded) -> Parts:
    settings = loaded.settings
    if settings.lease_seconds <= settings.visit_seconds:
        raise BadSetting(
            "HEADWATER_LEASE_SECONDS must be more than HEADWATER_VISIT_SECONDS, or two visits could overlap."
        )
    parse_allow(settings.allow_private_networks)
    if bool(settings.reddit_client_id) != bool(settings.reddit_client_secret):
        raise BadSetting("HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET go together: set both or none.")
    if settings.kafka_bootstrap_servers and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_KAFKA_BOOTSTRAP_SERVERS needs PostgreSQL: events reach Kafka from its log.")
    parts = Parts(settings, Database(settings.store_url(), idle_seconds=settings.transaction_seconds))
    parts.db.on_events = parts.bell.ring
    return parts


def prepare_store(parts: Parts) -> Reader:
    """Bring the schema up to date and make sure there is an owner."""
    migrate.upgrade(parts.db)
    parts.db.write_now(
        hot.clean, timedelta(hours=parts.settings.hot_cache_ttl_hours), parts.now()
    )  # a new one is filled
    return parts.db.write_now(accounts.make_owner, parts.now())


def login_link(parts: Parts, owner: Reader) -> str:
    """A link that signs the owner in, once."""
    secret = parts.db.write_now(tokens.issue, owner, "login", "login link", parts.now())
    return f"{home(parts.settings)}/login?token={secret}"


def home(settings: Settings) -> str:
    """Where a person on this machine, or under the public address, finds the pages."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return (settings.public_url or f"http://{host}:{settings.port}").rstrip("/")


def open_client(parts: Parts) -> Client:
    settings = parts.settings
    return Client(
        user_agent=settings.user_agent
        if not settings.public_url
        else f"{settings.user_agent} (+{settings.public_url})",
        guard=AddressGuard(parse_allow(settings.allow_private_networks)),
        timeout=settings.fetch_seconds,
        max_bytes=settings.fetch_max_bytes,
        max_connections=settings.max_concurrency,
        max_connections_per_host=6 if settings.host_gap_seconds else settings.max_concurrency,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )


def open_reddit_client(parts: Parts) -> Client:
    settings = parts.settings
    return Client(
        user_agent=settings.reddit_user_agent or settings.user_agent,
        guard=AddressGuard(parse_allow(settings.allow_private_networks)),
        timeout=settings.reddit_request_timeout_seconds,
        max_bytes=settings.fetch_max_bytes,
        max_connections=settings.reddit_max_concurrency,
        max_connections_per_host=settings.reddit_max_concurrency,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )


def reddit_budget(settings: Settings) -> Budget:
    """How much may be asked of Reddit: of its API with credentials, of its feeds without."""
    if settings.reddit_client_id:
        window = timedelta(seconds=settings.reddit_rate_limit_window_seconds)
        return Budget("reddit api", settings.reddit_rate_limit, window)
    gap = timedelta(seconds=settings.reddit_feed_gap_seconds)
    return Budget("reddit feeds", 1 if gap else 0, gap)


def reddit_access(parts: Parts, client: Client, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    limiter = RateLimiter(parts.db, reddit_budget(settings), parts.now, sleep)
    site = settings.reddit_url.rstrip("/")
    if not settings.reddit_client_id or not settings.reddit_client_secret:
        return RedditFeeds(client.fetch, limiter, site, settings.reddit_max_concurrency)
    secret = settings.reddit_client_secret.get_secret_value()
    app = RedditApp(settings.reddit_client_id, secret, site, settings.reddit_api_url.rstrip("/"))
    return RedditApi(app, client.fetch, limiter, parts.now, settings.reddit_max_concurrency)


def x_allowance(settings: Settings) -> Allowance:
    """How much may be asked of X in a month."""
    return Allowance(settings.x_monthly_requests, settings.x_monthly_posts)


async def x_token(parts: Parts) -> str:
    """The token for X: that of the settings, or the one that a person has given; raises KeyMissing for neither."""
    if parts.settings.x_bearer_token:
        return parts.settings.x_bearer_token.get_secret_value()
    sealed = await parts.db.read(secrets.find, SECRET)
    if sealed is None:
        raise KeyMissing(NO_TOKEN)
    try:
        return parts.vault.open(sealed)
    except SourceFailure as error:
        raise KeyMissing(
            "The token for X cannot be read with the present HEADWATER_SECRET_KEY. Give it again: `headwater x token`."
        ) from error


async def x_state(parts: Parts) -> XState:
    """How X can be asked at the moment."""
    now, problem = parts.now(), ""
    try:
        await x_token(parts)
    except KeyMissing as error:
        problem = error.detail
    used = await parts.db.read(limits.used_this_month, METER, now)
    followed = len(await parts.db.read(sources.visited_of_kind, "x"))
    return XState(problem, used, x_allowance(parts.settings), limits.month_ends(now), followed)


def x_access(parts: Parts, client: Client, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    window = timedelta(seconds=settings.x_rate_limit_window_seconds)
    limiter = RateLimiter(parts.db, Budget("x api", settings.x_rate_limit, window), parts.now, sleep)
    meter = MonthlyMeter(parts.db, x_allowance(settings), parts.now)
    return XApi(settings.x_api_url.rstrip("/"), partial(x_token, parts), client.fetch, limiter, meter, parts.now)


def open_parsers(parts: Parts) -> Parsers:
    settings = parts.settings
    return Parsers(
        settings.reader_processes,
        cpu_seconds=settings.reader_seconds,
        memory_mb=settings.reader_memory_mb,
        max_bytes=settings.fetch_max_bytes,
    )


@asynccontextmanager
async def crawling(parts: Parts, on_saved: Callable[[SavedVisit], None]) -> AsyncIterator[Crawler]:
    """A crawler with its client and parser processes; on leaving, visits under way finish or are given back."""
    settings = parts.settings
    client, reddit, parsers = open_client(parts), open_reddit_client(parts), open_parsers(parts)
    browser = Browser(client, max_bytes=settings.fetch_max_bytes, clock=parts.now)
    tools = VisitTools(
        fetch=client.fetch,
        parsers=parsers,
        now=parts.now,
        chance=random.random,
        interval=timedelta(seconds=settings.check_interval_seconds),
        visit_seconds=settings.visit_seconds,
        gap=settings.host_gap_seconds,
        paused_until={},
        unseal=lambda sealed: parts.vault.open(sealed),
        access={"reddit": reddit_access(parts, reddit), "x": x_access(parts, client)},
        robots=Robots(parts.db, client.fetch, parsers, settings.user_agent, parts.now),
        browser=browser.fetch,
    )
    crawler = Crawler(parts.db, tools, on_saved)
    parts.parsers = parsers
    try:
        yield crawler
    finally:
        parts.parsers = None
        await crawler.stop(timedelta(seconds=settings.shutdown_seconds))
        await browser.close()
        await client.close()
        await reddit.close()
        await parsers.close()


async def ask_hubs(parts: Parts) -> int:
    """Ask the hubs whose time has come to push to this instance; returns how many were asked."""
    if not parts.settings.public_url:
        return 0
    client = open_client(parts)
    try:
        ask = partial(client.fetch, timeout=HUB_SECONDS)
        return await push.ask_hubs(parts.db, ask, parts.settings.public_url, parts.hub_secret, parts.now)
    finally:
        await client.close()


async def follow_log(parts: Parts, stop: asyncio.Event) -> None:
    """Let the consumers follow the log until `stop` is set: by Kafka if there is one, else the table itself."""
    async with asyncio.TaskGroup() as group:
        for consumer in parts.consumers:
            group.create_task(_follow(parts, consumer, stop))


async def _follow(parts: Parts, consumer: Consumer, stop: asyncio.Event) -> None:
    if consumer.name == "fold":
        await run_until(stop, prepare_folding(parts))
    brokers = parts.settings.kafka_bootstrap_servers
    if brokers is None:
        await consumers.consume(parts.db, [consumer], parts.bell, parts.now, stop)
    else:
        from headwater.events import kafka  # an extra

        await kafka.follow(parts.db, consumer, brokers, parts.now, stop)


def consumers_at_hand(parts: Parts) -> list[Consumer]:
    """Those that work at once: a command does not wait until folding is compiled, which is done by `headwater up`."""
    return [one for one in parts.consumers if one.name != "fold" or warm.is_compiled()]


async def hear_of_events(parts: Parts, stop: asyncio.Event) -> None:
    """Ring the bell of this process for what others append. Processes on one SQLite file look once a second."""
    if not parts.db.is_sqlite:
        await wakeups.listen(parts.db, parts.bell.ring, stop)


async def prepare_folding(parts: Parts) -> None:
    """Have the index of stories ready before there is anything to decide. The others do not wait for it."""
    if parts.settings.fold == "off":
        return
    await warm.compile_all()
    try:
        await parts.db.read(parts.folder.prepare, parts.now())
    except StoreUnavailable as error:
        log.warning("folding.waits", error=error.detail)  # it is read when there is something to decide
    warm.let_go_of_compiler()


async def deliver_webhooks(parts: Parts, stop: asyncio.Event) -> None:
    """Send what waits for webhooks until `stop` is set."""
    settings = parts.settings
    client = Client(
        user_agent=settings.user_agent,
        guard=AddressGuard(parse_allow(settings.allow_private_networks)),
        timeout=delivering.ANSWER_SECONDS,
        max_bytes=delivering.ANSWER_BYTES,
        max_redirects=0,
        max_connections=delivering.PLACES,
        max_connections_per_host=delivering.PLACES,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )
    tools = delivering.DeliveryTools(
        client.fetch, lambda sealed: parts.vault.open(sealed), instance_name(settings), parts.now, random.random
    )
    try:
        patience = timedelta(seconds=settings.shutdown_seconds)
        await delivering.deliver(parts.db, tools, parts.bell, patience, stop)
    finally:
        await client.close()


def image_folder(settings: Settings) -> Path:
    return settings.data_dir / "images"


async def save_pictures(parts: Parts, stop: asyncio.Event) -> None:
    """Download the pictures that posts show until `stop` is set, if that is wanted."""
    settings = parts.settings
    if settings.images == "off":
        await stop.wait()
        return
    client = open_client(parts)
    tools = pictures.ImageTools(
        partial(client.fetch, max_bytes=settings.image_max_bytes), image_folder(settings), settings.image_max_bytes
    )
    pace = imaging.ImagePace(timedelta(seconds=settings.host_gap_seconds), settings.images_total_mb * 1024 * 1024)
    clock = imaging.ImageClock(parts.now, random.random)
    try:
        patience = timedelta(seconds=settings.shutdown_seconds)
        await imaging.save_pictures(parts.db, tools, pace, clock, patience, stop)
    finally:
        await client.close()


async def heal_pictures(parts: Parts) -> int:
    if parts.settings.images == "off":
        return 0
    return await healing.heal(parts.db, image_folder(parts.settings), parts.now)


def instance_name(settings: Settings) -> str:
    """How this instance names itself in the events that it sends."""
    return settings.public_url.rstrip("/") if settings.public_url else "headwater"


async def forget_events(parts: Parts) -> int:
    """Delete events, and the record of their effects, that are older than the replay window and that nobody needs."""
    before = parts.now() - timedelta(days=parts.settings.event_history_days)
    forgotten = 0
    while batch := await parts.db.write(outbox.forget_before, before, followed=parts.follows_table):
        forgotten += batch
    await parts.db.write(inbox.forget_before, before - timedelta(days=1))
    await parts.db.write(dead_letters.forget_before, before)
    await parts.db.write(deliveries.forget_before, before, parts.now())
    return forgotten


def pace(settings: Settings) -> CrawlPace:
    return CrawlPace(
        most_in_hand=settings.max_concurrency * CLAIM_AHEAD,
        lease_for=timedelta(seconds=settings.lease_seconds),
        gap=timedelta(seconds=settings.host_gap_seconds),
    )


async def warm_up(
    parts: Parts,
    communities: Sequence[Source] | None = None,
    *,
    patient: bool = False,
    on_warmed: Callable[[Warmed], None] = lambda _: None,
) -> int:
    """Cache listings: of these communities, or of the pool's."""
    settings = parts.settings
    plan = warming.Plan(
        settings.warm_up_sort,
        settings.warm_up_time_filter,
        settings.warm_up_limit,
        settings.warm_up_batch,
        timedelta(hours=settings.hot_cache_ttl_hours),
    )
    client, parsers = open_reddit_client(parts), parts.parsers or open_parsers(parts)
    try:
        tools = warming.WarmUpTools(parts.db, reddit_access(parts, client), parsers, parts.now)
        return await warming.warm_up(tools, plan, communities, patient=patient, on_warmed=on_warmed)
    finally:
        await client.close()
        if parsers is not parts.parsers:
            await parsers.close()


async def _wake_loop(parts: Parts) -> None:
    parts.wake()


def house(parts: Parts, visit_due: Callable[[Parts], Awaitable[object]] = _wake_loop) -> PeriodicTools:
    """What periodic work is done with. Where a crawl loop runs, that visits what is due; others say who does."""
    settings = parts.settings
    return PeriodicTools(
        db=parts.db,
        now=parts.now,
        lease_for=timedelta(seconds=settings.lease_seconds),
        hot_for=timedelta(hours=settings.hot_cache_ttl_hours),
        visits_kept=timedelta(days=settings.visit_history_days),
        limits=AlertLimits(
            settings.monitor_api_threshold,
            settings.monitor_cache_hit_threshold,
            timedelta(minutes=settings.monitor_crawl_stale_minutes),
        ),
        budget=reddit_budget(settings),
        visit_due=lambda: visit_due(parts),
        warm_up=lambda: warm_up(parts),
        ask_hubs=lambda: ask_hubs(parts),
        forget_events=lambda: forget_events(parts),
        heal_pictures=lambda: heal_pictures(parts),
    )
