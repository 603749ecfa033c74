"""A Headwater that sends: its store, a clock to turn, and the loops that queue and send."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, insert

from headwater import wire
from headwater.app import webhooks as asked
from headwater.app.webhooks import Created
from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.model import Reader
from headwater.store.log import outbox
from headwater.store.people import webhooks
from headwater.store.people.webhooks import Delivery, Webhook
from headwater.store.tables import tenants, users
from support.living import Ahead, opened_ahead, running_loops
from support.posts import NOON

T = TypeVar("T")


def a_reader(conn: Connection, name: str) -> Reader:
    """The one user of a tenant of its own."""
    tenant_id = conn.execute(insert(tenants).values(name=name, created_at=NOON).returning(tenants.c.id)).scalar_one()
    user = {"tenant_id": tenant_id, "name": name, "role": "member", "created_at": NOON}
    return Reader(
        tenant_id, conn.execute(insert(users).values(**user).returning(users.c.id)).scalar_one(), name, "member"
    )


class Sending(Ahead):
    def webhook(self, address: str, *kinds: str, reader: Reader | None = None) -> Created:
        given = (address, kinds, self.parts.seal, self.parts.now())
        return self.parts.db.write_now(asked.add, reader or self.owner, *given)

    def publish(self, *numbers: int, source_id: int | None = None) -> None:
        """Events of a source that the owner follows, told apart by a number."""
        source = source_id or self.source_id
        events = [
            SOURCE_RETIRED(SourceFacts(source_id=source, address=f"https://news.example/{number}"), once=str(number))
            for number in numbers
        ]
        self.parts.db.write_now(outbox.append, events, self.parts.now())

    def look(self, webhook: Webhook) -> Webhook:
        return self.parts.db.read_now(asked.find, self.owner, webhook.id)

    def log(self, webhook: Webhook) -> list[Delivery]:
        """The oldest first."""
        return self.parts.db.read_now(webhooks.log_of, webhook, before=None, limit=1000)[::-1]

    async def ask(self, what: Callable[..., T], *given: Any, **named: Any) -> T:
        """Do what a person asks for, as the API does it."""
        done = await self.parts.db.write(what, self.owner, *given, **named)
        self.parts.new_events.send()
        return done

    def running(self) -> AbstractAsyncContextManager[None]:
        """What `headwater up` runs of this."""
        return running_loops(partial(wire.follow_log, self.parts), partial(wire.deliver_webhooks, self.parts))


def opened(environ: dict[str, str]) -> AbstractContextManager[Sending]:
    return opened_ahead(Sending, environ, "https://news.example/feed")
