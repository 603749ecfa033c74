"""What every way in works with: settings, database, clock, secrets, and the consumers of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from headwater.accounts.vault import Vault, key_in
from headwater.app import instance
from headwater.consumers import search, webhooks
from headwater.consumers.fold import Folding
from headwater.errors import BadSetting
from headwater.events.delivery import Consumer
from headwater.fetch.guard import parse_allow
from headwater.model import Reader
from headwater.parse.pool import Parsers
from headwater.settings import Loaded, Settings
from headwater.store.db import Database
from headwater.waiting import WakeUpSignal


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Parts:
    """What the ways in work with. `now` is the clock. `woken` is set when a source may be due.

    `parsers` are there while this process crawls; a push can be parsed by them as well. `is_demo` makes pages say that
    they belong to a demonstration.
    """

    settings: Settings
    db: Database
    now: Callable[[], datetime] = utc_now
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    new_events: WakeUpSignal = field(default_factory=WakeUpSignal)
    parsers: Parsers | None = None
    is_demo: bool = False

    @cached_property
    def vault(self) -> Vault:
        """Encrypts and decrypts the secrets that are stored. Its key is created when it is first needed."""
        given = self.settings.secret_key
        return Vault(given.get_secret_value() if given else key_in(self.settings.data_dir))

    @cached_property
    def consumers(self) -> tuple[Consumer, ...]:
        """Everything that follows the log."""
        return (search.CONSUMER, webhooks.CONSUMER, self.folding.consumer())

    @property
    def follows_table(self) -> bool:
        """Whether consumers follow the outbox by cursors. Otherwise they follow Kafka."""
        return self.settings.kafka_bootstrap_servers is None

    @cached_property
    def folding(self) -> Folding:
        """Decides in this process which posts are one story."""
        return Folding(
            window=timedelta(hours=self.settings.fold_window_hours),
            level=self.settings.fold,
            embeddings=self.settings.fold_embeddings,
        )

    def seal(self, secret: str) -> bytes:
        return self.vault.seal(secret)

    def unseal(self, sealed: bytes) -> str:
        return self.vault.open(sealed)

    def hub_secret(self, callback_id: str) -> str:
        """Returns the secret with which a hub signs its pushes to this callback."""
        return self.vault.derived(f"hub {callback_id}")

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
    if bool(settings.reddit_client_id) != bool(settings.reddit_client_secret):
        raise BadSetting("HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET go together: set both or none.")
    if settings.kafka_bootstrap_servers and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_KAFKA_BOOTSTRAP_SERVERS needs PostgreSQL: events reach Kafka from its log.")
    parts = Parts(settings, Database(settings.store_url(), idle_seconds=settings.transaction_seconds))
    parts.db.on_events = parts.new_events.send
    return parts


def prepare_store(parts: Parts) -> Reader:
    """Upgrades the schema and returns the owner, who is created the first time."""
    return instance.prepare(parts.db, timedelta(hours=parts.settings.hot_cache_ttl_hours), parts.now())


def home(settings: Settings) -> str:
    """Returns the address of the pages: the public one, or the one on this machine."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return (settings.public_url or f"http://{host}:{settings.port}").rstrip("/")


def instance_name(settings: Settings) -> str:
    """Returns the name of this instance in the events that it sends."""
    return settings.public_url.rstrip("/") if settings.public_url else "headwater"


def image_folder(settings: Settings) -> Path:
    return settings.data_dir / "images"
