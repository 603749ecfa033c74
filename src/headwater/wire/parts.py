"""What every way in works with: settings, database, clock, secrets, consumers, and clients for the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.access.budget import Access, RateLimiter
from headwater.access.reddit import RedditApi, RedditApp, RedditFeeds
from headwater.access.x import MonthlyMeter, XApi
from headwater.accounts.access_tokens import AccessTokens, OtherIssuer
from headwater.accounts.callers import Callers
from headwater.accounts.scopes import SCOPES
from headwater.accounts.vault import Vault, has_key_in, key_in
from headwater.app import instance
from headwater.app.groups import FoldConfiguration
from headwater.consumers import search, webhooks
from headwater.consumers.fold import Folding
from headwater.coordination.rate_limits import Limit, RateLimits
from headwater.errors import BadConfiguration, BadSetting, StatusRefused
from headwater.events.delivery import Consumer
from headwater.fetch.body import unpacked
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.model import Credential, Reader, Request
from headwater.parse.pool import Parsers
from headwater.settings import Loaded, Settings
from headwater.store.db import Database
from headwater.store.sources.limits import Budget, MonthlyAllowance
from headwater.waiting import WakeUpSignal

if TYPE_CHECKING:
    from headwater.coordination.visit_marks import VisitMarks

MOST_KEY_BYTES = 256 * 1024
OK = 200
PER_HOST = 6  # connections to one host, where requests to it are spaced out


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Parts:
    """What the ways in work with. `now` is the clock. `woken` is set when a source may be due.

    `parsers` and `reddit` are there while this process crawls: a push can be parsed by the same parsers, and a warm-up
    counts with the visits. So are `marks`, if there is a Redis to show visits in. `is_demo` makes pages say that they
    belong to a demonstration.
    """

    settings: Settings
    db: Database
    now: Callable[[], datetime] = utc_now
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    new_events: WakeUpSignal = field(default_factory=WakeUpSignal)
    parsers: Parsers | None = None
    marks: VisitMarks | None = None
    reddit: Access | None = None
    is_demo: bool = False

    @cached_property
    def vault(self) -> Vault:
        """Encrypts and decrypts the secrets that are stored. Its key is created when it is first needed."""
        given = self.settings.secret_key
        return Vault(given.get_secret_value() if given else key_in(self.settings.data_dir))

    @cached_property
    def consumers(self) -> tuple[Consumer, ...]:
        """Returns everything that follows the log."""
        return (search.CONSUMER, webhooks.CONSUMER, self.folding.consumer())

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
            self.db,
            issuer=home(settings),
            seal=self.seal,
            unseal=self.unseal,
            now=lambda: self.now(),
            other=other,
        )

    @cached_property
    def rate_limits(self) -> RateLimits:
        """Counts requests and guesses."""
        url = self.settings.redis_url
        return RateLimits(url.get_secret_value() if url else None)

    @cached_property
    def scope_limits(self) -> dict[str, Limit]:
        """How often one person may do what needs a scope, where that is limited by itself."""
        return scope_limits(self.settings.rate_limits)

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
    def folding(self) -> Folding:
        """Decides in this process which posts are one story."""
        return self._folding(embeddings=self.settings.fold_embeddings)

    @cached_property
    def _other_folding(self) -> Folding:
        return self._folding(embeddings=not self.settings.fold_embeddings)

    def _folding(self, *, embeddings: bool) -> Folding:
        return Folding(
            window=timedelta(hours=self.settings.fold_window_hours),
            level=self.settings.fold,
            embeddings=embeddings,
            arriving=self.fold_configuration.options(),
            batch=self.settings.fold_batch_size,
        )

    def folding_with(self, *, embeddings: bool, field: str) -> Folding:
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
        """Returns the secret with which a hub signs its pushes to this callback."""
        return self.vault.derived(f"hub {callback_id}")

    @property
    def leaves_visits_to_celery(self) -> bool:
        """Whether visits and periodic work are done by Celery workers, and not by `headwater up`."""
        return self.settings.celery_broker_url is not None

    def wake(self) -> None:
        """Tells the crawl loop of this process to look for due sources now."""
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
    networks(settings.trusted_proxies)
    scope_limits(settings.rate_limits)
    if bool(settings.jwt_issuer) != bool(settings.jwt_keys_url):
        raise BadSetting("HEADWATER_JWT_ISSUER and HEADWATER_JWT_KEYS_URL go together: set both or none.")
    if bool(settings.reddit_client_id) != bool(settings.reddit_client_secret):
        raise BadSetting("HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET go together: set both or none.")
    if settings.kafka_bootstrap_servers and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_KAFKA_BOOTSTRAP_SERVERS needs PostgreSQL: events reach Kafka from its log.")
    if settings.migration_database_url and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_MIGRATION_DATABASE_URL is for PostgreSQL: the store is a SQLite file.")
    parts = Parts(settings, _open_database(settings, settings.store_url()))
    parts.db.on_events = parts.new_events.send
    return parts


def present_key(parts: Parts) -> str | None:
    """Returns the name of the key, or None if there is none yet. Asking makes none."""
    has_key = parts.settings.secret_key is not None or has_key_in(parts.settings.data_dir)
    return parts.vault.key_id if has_key else None


def scope_limits(text: str) -> dict[str, Limit]:
    """Reads limits such as `stories:write=60`, in a minute. Raises BadSetting."""
    found = {}
    for pair in filter(None, (one.strip() for one in text.split(","))):
        scope, _, times = pair.partition("=")
        if scope not in SCOPES or not times.isdecimal() or not int(times):
            raise BadSetting(f"HEADWATER_RATE_LIMITS: {pair[:50]!r} is not like stories:write=60.")
        found[scope] = Limit(scope, int(times), 60)
    return found


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Reads addresses of proxies. Raises BadSetting."""
    try:
        return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError as error:
        raise BadSetting(f"HEADWATER_TRUSTED_PROXIES: {error}. Write networks such as 10.0.0.0/8.") from None


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
    fetching = client(parts, user_agent=parts.settings.user_agent, timeout=10, max_bytes=MOST_KEY_BYTES, connections=1)
    try:
        answer = await fetching.fetch(Request(url, (("accept", "application/json"),)))
    finally:
        await fetching.close()
    if answer.status != OK:
        raise StatusRefused(f"{url} answered {answer.status}.", http_status=answer.status)
    return unpacked(answer, MOST_KEY_BYTES)


def prepare_store(parts: Parts) -> Reader:
    """Upgrades the schema and returns the owner, who is created the first time."""
    upgrade_schema(parts)
    owner = instance.prepare(parts.db, timedelta(hours=parts.settings.hot_cache_ttl_hours), parts.now())
    instance.key_credentials(parts.db, parts.unseal, parts.credential)
    return owner


def home(settings: Settings) -> str:
    """Returns the address of the pages: the public one, or the one on this machine."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return (settings.public_url or f"http://{host}:{settings.port}").rstrip("/")


def instance_name(settings: Settings) -> str:
    """Returns the name of this instance in the events that it sends."""
    return settings.public_url.rstrip("/") if settings.public_url else "headwater"


def image_folder(settings: Settings) -> Path:
    return settings.data_dir / "images"


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
) -> Client:
    """Opens a client with the guard, the proxy and the clock that all clients share."""
    settings = parts.settings
    return Client(
        user_agent=user_agent,
        guard=AddressGuard(parse_allow(settings.allow_private_networks)),
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
        settings.reader_processes,
        cpu_seconds=settings.reader_seconds,
        memory_mb=settings.reader_memory_mb,
        max_bytes=settings.fetch_max_bytes,
    )


def redis_url(settings: Settings) -> str | None:
    """Returns the address of the Redis that processes share: the one in the settings, or the broker if that is one."""
    for given in (settings.redis_url, settings.celery_broker_url):
        if given and given.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            return given.get_secret_value()
    return None


def open_marks(parts: Parts) -> VisitMarks | None:
    """Opens what shows visits in Redis, if there is one."""
    url = redis_url(parts.settings)
    if url is None:
        return None
    try:
        from headwater.coordination.visit_marks import VisitMarks  # an extra
    except ImportError as error:
        raise BadSetting("Redis needs a package: pip install 'headwater[redis]', or unset its address.") from error
    return VisitMarks(url, timedelta(seconds=parts.settings.host_gap_seconds), parts.now)


def reddit_budget(settings: Settings) -> Budget:
    """Returns how much may be asked of Reddit: of its API with credentials, of its feeds without."""
    if settings.reddit_client_id:
        window = timedelta(seconds=settings.reddit_rate_limit_window_seconds)
        return Budget("reddit api", settings.reddit_rate_limit, window)
    gap = timedelta(seconds=settings.reddit_feed_gap_seconds)
    return Budget("reddit feeds", 1 if gap else 0, gap)


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


def x_allowance(settings: Settings) -> MonthlyAllowance:
    """Returns how much may be asked of X in a month."""
    return MonthlyAllowance(settings.x_monthly_requests, settings.x_monthly_posts)


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
