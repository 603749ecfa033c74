"""What every way in works with: settings, database, clock, secrets and consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any

from headwater.access.budget import Access
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
from headwater.errors import BadConfiguration, BadSetting
from headwater.events.delivery import Consumer
from headwater.model import Credential, Reader
from headwater.parse.pool import Parsers
from headwater.settings import Loaded
from headwater.settings.table import Settings
from headwater.store.clock import SharedClock
from headwater.store.db import Database
from headwater.store.log.locks import StoreLocks
from headwater.waiting import WakeUpSignal
from headwater.wire.checks import (
    check,
    home,
    networks,
    openid_clients,
    plans,
    redis_url,
    welcome,
)
from headwater.wire.clients import ask_provider, fetch_keys, oidc_secret

if TYPE_CHECKING:
    from headwater.coordination.visit_marks import VisitMarks


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


def prepare_store(parts: Parts) -> Reader:
    """Upgrades the schema and returns the owner, who is created the first time."""
    upgrade_schema(parts)
    owner = instance.prepare(parts.db, timedelta(hours=parts.settings.hot_cache_ttl_hours), parts.now())
    instance.key_credentials(parts.db, parts.unseal, parts.credential)
    if parts.settings.market_url:
        parts.db.write_now(market.watch, owner, parts.settings.market_url, parts.now(), parts.credential)
    return owner


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
