"""What every way in works with: settings, database, clock, secrets, consumers, and clients for the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any

from headwater.access.budget import Access, RateLimiter
from headwater.access.reddit import RedditApi, RedditApp, RedditFeeds
from headwater.access.x import MonthlyMeter, XApi
from headwater.accounts.access_tokens import AccessTokens, OtherIssuer
from headwater.accounts.callers import Callers
from headwater.accounts.openid import Provider
from headwater.accounts.vault import KeyCommand, KeyFile, Vault
from headwater.app import instance, market
from headwater.app.groups import FoldConfiguration
from headwater.app.people import Welcome
from headwater.consumers import intelligence, mentions, portfolio, search, webhooks
from headwater.consumers.fold import StoryFolding
from headwater.coordination.cache import Cache, Entries, MemoryEntries
from headwater.coordination.locks import Locks
from headwater.coordination.rate_limits import RateLimits, RatePlan
from headwater.errors import BadConfiguration, BadSetting, StatusRefused
from headwater.events.delivery import Consumer
from headwater.fetch.body import unpacked
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.model import Credential, Reader, Request
from headwater.parse.pool import Parsers
from headwater.settings import Loaded
from headwater.settings.table import Settings
from headwater.store.clock import SharedClock
from headwater.store.db import Database
from headwater.store.log.locks import StoreLocks
from headwater.store.sources.limits import Budget
from headwater.waiting import WakeUpSignal
from headwater.wire.checks import (
    check,
    home,
    networks,
    openid_clients,
    plans,
    reddit_budget,
    redis_url,
    welcome,
    x_allowance,
)

if TYPE_CHECKING:
    from headwater.coordination.visit_marks import VisitMarks

MOST_KEY_BYTES = 256 * 1024
OK = 200
PER_HOST = 6  # connections to one host, where requests to it are spaced out


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Parts:
    """What the ways in work with. `now` tells the time. `woken` is set when a source may be due.

    `parsers` and `reddit` are there while this process crawls: a push can be parsed by the same parsers, and a warm-up
    counts with the visits. So are `marks`, if there is a Redis to show visits in. `clock` is what `now` asks on
    PostgreSQL. `is_demo` makes pages say that they belong to a demonstration.
    """

    settings: Settings
    db: Database
    now: Callable[[], datetime] = utc_now
    clock: SharedClock | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    new_events: WakeUpSignal = field(default_factory=WakeUpSignal)
    stale_portfolios: WakeUpSignal = field(default_factory=WakeUpSignal)
    new_subjects: WakeUpSignal = field(default_factory=WakeUpSignal)
    parsers: Parsers | None = None
    marks: VisitMarks | None = None
    reddit: Access | None = None
    is_demo: bool = False

    @cached_property
    def vault(self) -> Vault:
        """Encrypts and decrypts the secrets that are stored. Its key is created when it is first needed."""
        return Vault(load=self._load_keys)

    @cached_property
    def key_file(self) -> KeyFile:
        """The file with the keys, in the data folder."""
        return KeyFile(self.settings.data_dir, partial(instance.check_new_key, self.db))

    @cached_property
    def _key_command(self) -> KeyCommand | None:
        given = self.settings.secret_key_command
        return KeyCommand(given) if given else None

    @property
    def makes_keys(self) -> bool:
        """Whether the key is in the file of the data folder, where Headwater itself makes new ones."""
        return self.settings.secret_key is None and self._key_command is None

    def _load_keys(self, again: bool) -> Sequence[str]:
        """Returns the keys, the one that encrypts first. What is in the file decrypts in any case."""
        listed = self.settings.other_secret_keys
        others = [one.strip() for one in listed.get_secret_value().split(",") if one.strip()] if listed else []
        if self.makes_keys:
            return (*self.key_file(again), *others)
        given = self.settings.secret_key
        first = self._key_command(again) if self._key_command else (given.get_secret_value(),) if given else ()
        return (*first, *others, *self.key_file.present())

    @cached_property
    def consumers(self) -> tuple[Consumer, ...]:
        """Returns everything that follows the log."""
        portfolios = portfolio.consumer(self.stale_portfolios.send)
        signals = mentions.consumer(self.new_subjects.send)
        return (search.CONSUMER, webhooks.CONSUMER, self.folding.consumer(), intelligence.CONSUMER, portfolios, signals)

    @cached_property
    def callers(self) -> Callers:
        """Finds whose tokens these are."""
        found = Callers(self.db, lambda: self.now())
        self.db.on_account_changes = found.forget
        return found

    @cached_property
    def access_tokens(self) -> AccessTokens:
        """Gives out and checks JWTs."""
        settings = self.settings
        other = None
        if settings.jwt_issuer and settings.jwt_keys_url:
            audience = settings.jwt_audience or home(settings)
            other = OtherIssuer(settings.jwt_issuer, audience, partial(fetch_keys, self, settings.jwt_keys_url))
        return AccessTokens(
            self.db, issuer=home(settings), seal=self.seal, unseal=self.unseal, now=lambda: self.now(), other=other
        )

    @cached_property
    def providers(self) -> dict[str, Provider]:
        """The OpenID Connect providers at which people sign in, by key. That of the main one is empty."""
        clients = openid_clients(self.settings, partial(oidc_secret, self))
        return {one.key: Provider(one, partial(ask_provider, self), lambda: self.now()) for one in clients}

    @property
    def issuers(self) -> frozenset[str]:
        """At whom people sign in."""
        return frozenset(one.client.issuer for one in self.providers.values())

    @property
    def welcome(self) -> Welcome:
        """Who may come in from the provider that nobody invited."""
        return welcome(self.settings)

    @cached_property
    def rate_limits(self) -> RateLimits:
        """Counts requests and guesses."""
        return RateLimits(redis_url(self.settings))

    @cached_property
    def cache(self) -> Cache:
        """Keeps what takes long to compute: in Redis, if processes share one, or else in memory."""
        url = redis_url(self.settings)
        if url is None:
            return Cache(MemoryEntries(self.settings.cache_mb * 1024 * 1024))
        return Cache(_redis_entries(url), self.vault.derived("cache").encode())

    @cached_property
    def locks(self) -> Locks:
        """Locks across processes: in Redis, if they share one, or else in the store."""
        url = redis_url(self.settings)
        return _redis_locks(url) if url else StoreLocks(self.db, lambda: self.now())

    @cached_property
    def plans(self) -> dict[str, RatePlan]:
        """How often people may ask, by the plan of their tenant. The default plan is the first."""
        return plans(self.settings)

    @cached_property
    def trusted_proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return networks(self.settings.trusted_proxies)

    @property
    def follows_table(self) -> bool:
        """Whether consumers follow the outbox by cursors. Otherwise they follow Kafka."""
        return self.settings.kafka_bootstrap_servers is None

    @property
    def fold_configuration(self) -> FoldConfiguration:
        """How this server folds, unless a reader or a run says otherwise."""
        settings = self.settings
        return FoldConfiguration(
            settings.fold_threshold,
            settings.fold_exact,
            settings.fold_similar,
            settings.fold_method,
            settings.fold_embeddings,
            settings.fold_embedding_model,
            settings.fold_batch_size,
        )

    @cached_property
    def folding(self) -> StoryFolding:
        """Decides in this process which posts are one story."""
        return self._folding(embeddings=self.settings.fold_embeddings)

    @cached_property
    def _other_folding(self) -> StoryFolding:
        return self._folding(embeddings=not self.settings.fold_embeddings)

    def _folding(self, *, embeddings: bool) -> StoryFolding:
        return StoryFolding(
            window=timedelta(hours=self.settings.fold_window_hours),
            level=self.settings.fold,
            embeddings=embeddings,
            arriving=self.fold_configuration.options(),
            batch=self.settings.fold_batch_size,
        )

    def folding_with(self, *, embeddings: bool, field: str) -> StoryFolding:
        """Returns what folds with embeddings or without them. The one that this server does not use by itself has an
        index of its own, which is built when it is first asked for."""
        if embeddings == self.settings.fold_embeddings:
            return self.folding
        if embeddings and not instance.has_embeddings():
            raise BadConfiguration(
                f"{field}: embeddings are not installed here (pip install headwater[embeddings]).", field=field
            )
        return self._other_folding

    @property
    def follow_terms(self) -> dict[str, Any]:
        """What following a source needs from this instance, whoever asks."""
        return {"seal": self.credential, "most": self.settings.max_sources, "usual": self.usual_interval}

    @property
    def usual_interval(self) -> timedelta:
        """How often a source is visited that has no tier and for which nobody chose an interval."""
        return timedelta(seconds=self.settings.check_interval_seconds)

    def seal(self, secret: str) -> bytes:
        return self.vault.seal(secret)

    def credential(self, secret: str) -> Credential:
        """Encrypts the name and password of a source."""
        return self.vault.credential(secret)

    def unseal(self, sealed: bytes) -> str:
        return self.vault.open(sealed)

    def hub_secret(self, callback_id: str) -> str:
        """Returns the secret with which a hub is to sign its pushes to this callback."""
        return self.vault.derived(f"hub {callback_id}")

    def hub_secrets(self, callback_id: str) -> list[str]:
        """Returns the secrets with which a hub may sign: it learns a new one when it is asked again."""
        return self.vault.all_derived(f"hub {callback_id}")

    @property
    def leaves_visits_to_celery(self) -> bool:
        """Whether visits and periodic work are done by Celery workers, and not by `headwater up`."""
        return self.settings.celery_broker_url is not None

    def wake(self) -> None:
        """Tells the crawl loop of this process to look for due sources now."""
        self.woken.set()

    async def close_shared(self) -> None:
        """Closes connections to Redis, in the event loop that opened them."""
        if "cache" in self.__dict__:
            await self.cache.close()
        if "locks" in self.__dict__:
            await self.locks.close()
        if "rate_limits" in self.__dict__:
            await self.rate_limits.close()

    def close(self) -> None:
        if self.clock:
            self.clock.close()
        self.db.close()


def open_parts(loaded: Loaded) -> Parts:
    settings = loaded.settings
    check(settings)
    parts = Parts(settings, _open_database(settings, settings.store_url()))
    if not parts.db.is_sqlite:
        parts.now = parts.clock = SharedClock(parts.db, utc_now)
    parts.db.on_events = parts.new_events.send
    return parts


def present_keys(parts: Parts) -> list[str]:
    """Returns the names of the keys, the one that encrypts first; none if there is none yet. Asking makes none."""
    there_is_one = not parts.makes_keys or parts.key_file.present() or parts.settings.other_secret_keys
    return list(parts.vault.keys()) if there_is_one else []


def _open_database(settings: Settings, url: str) -> Database:
    return Database(
        url,
        idle_seconds=settings.transaction_seconds,
        lock_seconds=settings.lock_seconds,
        statement_seconds=settings.statement_seconds,
    )


@contextmanager
def opened_by_owner(parts: Parts) -> Iterator[tuple[Database, str | None]]:
    """Opens the store as the role that owns the tables, and names the role that the application has instead, if any."""
    given = parts.settings.migration_database_url
    if given is None:
        yield parts.db, None
        return
    db = _open_database(parts.settings, given.get_secret_value())
    try:
        yield db, parts.db.engine.url.username
    finally:
        db.close()


def upgrade_schema(parts: Parts, revision: str = "head") -> bool:
    """Upgrades the schema to a revision. Returns whether that is the newest one."""
    if revision == "head" and parts.settings.migration_database_url and instance.is_newest(parts.db):
        return True
    with opened_by_owner(parts) as (db, app_role):
        return instance.upgrade_schema(db, revision, app_role)


async def fetch_keys(parts: Parts, url: str) -> bytes:
    """Loads the keys of another issuer. Raises FetchFailed."""
    status, body = await ask_provider(parts, Request(url, (("accept", "application/json"),)))
    if status != OK:
        raise StatusRefused(f"{url} answered {status}.", http_status=status)
    return body


async def ask_provider(parts: Parts, request: Request) -> tuple[int, bytes]:
    """Sends a request to a provider that the settings name, which may well be in a private network. Follows nobody
    elsewhere. Raises FetchFailed."""
    fetching = client(
        parts,
        user_agent=parts.settings.user_agent,
        timeout=10,
        max_bytes=MOST_KEY_BYTES,
        connections=1,
        max_redirects=0,
        allow="true",
    )
    try:
        answer = await fetching.fetch(request)
    finally:
        await fetching.close()
    return answer.status, unpacked(answer, MOST_KEY_BYTES)


async def oidc_secret(parts: Parts, key: str = "") -> str | None:
    """Returns our secret at an OpenID Connect provider: the one in the settings, or the stored one, if any."""
    given = parts.settings.oidc_client_secret
    if given and not key:
        return given.get_secret_value()
    sealed = await parts.db.read(instance.stored_oidc_secret, key)
    return parts.unseal(sealed) if sealed is not None else None


def prepare_store(parts: Parts) -> Reader:
    """Upgrades the schema and returns the owner, who is created the first time."""
    upgrade_schema(parts)
    owner = instance.prepare(parts.db, timedelta(hours=parts.settings.hot_cache_ttl_hours), parts.now())
    instance.key_credentials(parts.db, parts.unseal, parts.credential)
    if parts.settings.market_url:
        parts.db.write_now(market.watch, owner, parts.settings.market_url, parts.now(), parts.credential)
    return owner


def open_client(parts: Parts) -> Client:
    """Opens a client for fetching sources."""
    settings = parts.settings
    agent, most = settings.user_agent, settings.max_concurrency
    return client(
        parts,
        user_agent=f"{agent} (+{settings.public_url})" if settings.public_url else agent,
        timeout=settings.fetch_seconds,
        max_bytes=settings.fetch_max_bytes,
        connections=most,
        per_host=PER_HOST if settings.host_gap_seconds else most,
    )


def open_reddit_client(parts: Parts) -> Client:
    settings = parts.settings
    return client(
        parts,
        user_agent=settings.reddit_user_agent or settings.user_agent,
        timeout=settings.reddit_request_timeout_seconds,
        max_bytes=settings.fetch_max_bytes,
        connections=settings.reddit_max_concurrency,
    )


def client(
    parts: Parts,
    *,
    user_agent: str,
    timeout: float,
    max_bytes: int,
    connections: int,
    per_host: int | None = None,
    max_redirects: int = 10,
    allow: str | None = None,
) -> Client:
    """Opens a client with the guard, the proxy and the clock that all clients share. `allow` says which private
    networks it may reach, where that differs."""
    settings = parts.settings
    return Client(
        user_agent=user_agent,
        guard=AddressGuard(parse_allow(allow or settings.allow_private_networks)),
        timeout=timeout,
        max_bytes=max_bytes,
        max_redirects=max_redirects,
        max_connections=connections,
        max_connections_per_host=per_host or connections,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )


def open_parsers(parts: Parts) -> Parsers:
    settings = parts.settings
    return Parsers(
        settings.parser_processes,
        cpu_seconds=settings.parser_seconds,
        memory_mb=settings.parser_memory_mb,
        max_bytes=settings.fetch_max_bytes,
    )


def open_marks(parts: Parts) -> VisitMarks | None:
    """Opens what shows visits in Redis, if there is one."""
    url = redis_url(parts.settings)
    if url is None:
        return None
    with extra():
        from headwater.coordination.visit_marks import VisitMarks
    return VisitMarks(url, timedelta(seconds=parts.settings.host_gap_seconds), parts.now)


def _redis_entries(url: str) -> Entries:
    with extra():
        from headwater.coordination.redis_cache import RedisEntries
    return RedisEntries(url)


def _redis_locks(url: str) -> Locks:
    with extra():
        from headwater.coordination.redis_locks import RedisLocks
    return RedisLocks(url)


@contextmanager
def extra(name: str = "redis") -> Iterator[None]:
    """Says which extra is missing, if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise BadSetting(f"Redis needs packages: install headwater[{name}], or unset its address.") from error


def reddit_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    limiter = RateLimiter(parts.db, reddit_budget(settings), parts.now, rest)
    at_once = min(settings.reddit_max_concurrency, settings.crawler_max_concurrency or settings.reddit_max_concurrency)
    site = settings.reddit_url.rstrip("/")
    if not settings.reddit_client_id or not settings.reddit_client_secret:
        return RedditFeeds(client.fetch, limiter, site, at_once)
    secret = settings.reddit_client_secret.get_secret_value()
    app = RedditApp(settings.reddit_client_id, secret, site, settings.reddit_api_url.rstrip("/"))
    return RedditApi(app, client.fetch, limiter, parts.now, at_once)


async def x_token(parts: Parts) -> str:
    """Returns the token for X: the one in the settings, or the stored one. Raises KeyMissing if there is neither."""
    if parts.settings.x_bearer_token:
        return parts.settings.x_bearer_token.get_secret_value()
    return await instance.stored_x_token(parts.db, parts.unseal)


def x_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    window = timedelta(seconds=settings.x_rate_limit_window_seconds)
    limiter = RateLimiter(parts.db, Budget("x api", settings.x_rate_limit, window), parts.now, rest)
    meter = MonthlyMeter(parts.db, x_allowance(settings), parts.now)
    return XApi(settings.x_api_url.rstrip("/"), partial(x_token, parts), client.fetch, limiter, meter, parts.now)
