"""The audit log: who changed what, when, and in which request. Rows are added and, when they are old, deleted.

A way in says who acts (`current_actor`); the use cases say what they did (`record`), in the transaction that did it. So
a write that fails or is refused leaves no row. What the instance does by itself leaves none either: events and visits
are its record. On PostgreSQL the application may not change rows, and can delete them only by a function that keeps the
younger ones.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.people import accounts
from headwater.store.sql import Prepared, columns, insert_into, portable

# Everything that can be done, as the page says it. The part before the dot is the resource, whose id is recorded.
ACTIONS = {
    "backup.restore": "restored a backup",
    "dead_letter.replay": "replayed a dead letter",
    "dead_letter.skip": "skipped a dead letter",
    "events.rebuild": "had a consumer read the whole log again",
    "events.replay": "delivered events again",
    "folding.choose": "chose how posts are folded",
    "images.retry": "had failed images tried again",
    "invitation.create": "invited somebody",
    "invitation.withdraw": "withdrew an invitation",
    "job.run": "ran a periodic job",
    "kafka.set_up": "set up Kafka",
    "keys.drop": "dropped the keys of access tokens",
    "login_link.create": "made a link for signing in",
    "market.import": "imported figures of the market",
    "miner.add": "added machines",
    "miner.change": "changed machines",
    "miner.models": "imported models of machines",
    "miner.remove": "removed machines",
    "oidc_secret.forget": "deleted the secret for the OpenID Connect provider",
    "oidc_secret.store": "stored a secret for the OpenID Connect provider",
    "person.change": "changed their name, time zone, language or theme",
    "person.email": "set an e-mail address",
    "person.identity": "linked somebody to an identity at a provider",
    "person.join": "joined",
    "person.password": "set a password",
    "person.remove": "removed somebody",
    "person.role": "gave somebody a role",
    "person.unlink": "unlinked their identity at a provider",
    "post.mark": "marked posts",
    "refresh_token.create": "made a refresh token",
    "refresh_token.end": "used a refresh token twice, which ended it",
    "refresh_token.exchange": "exchanged a refresh token",
    "schema.change": "changed the schema of the database",
    "schema.role": "set up a role of the database",
    "secret_key.create": "made a new key where the old one was lost",
    "secret_key.forget": "took out an old key",
    "secret_key.rotate": "had everything encrypted with the present key",
    "session.end": "signed out",
    "session.fail": "came from a provider and was not let in",
    "session.refuse": "gave a wrong password",
    "session.start": "signed in",
    "source.change": "changed how a source is followed",
    "source.comments": "chose whether the comments of a community are read",
    "source.follow": "followed a source",
    "source.import": "followed the sources of a list",
    "source.reread": "had a list read again from its start",
    "source.tier": "chose the tier of a source",
    "source.unfollow": "unfollowed a source",
    "source.visit": "asked for a visit",
    "story.fold": "folded posts",
    "story.part": "took a post out of its story",
    "story.undo": "undid a story",
    "tenant.create": "added a tenant",
    "tenant.plan": "gave a tenant a plan",
    "tiers.apply": "gave every source its tier",
    "token.create": "made an API token",
    "token.revoke": "revoked an API token",
    "trade.cancel": "cancelled a trade",
    "trade.correct": "corrected a trade",
    "trade.enter": "entered a trade",
    "webhook.add": "added a webhook",
    "webhook.change": "changed a webhook",
    "webhook.ping": "tested a webhook",
    "webhook.remove": "removed a webhook",
    "webhook.replay": "had an event sent again",
    "x_token.forget": "deleted the token for X",
    "x_token.store": "stored a token for X",
}
AUDITED = tuple(dict.fromkeys(action.partition(".")[0] for action in ACTIONS))
MOST_CHARACTERS = 300


class Actor(NamedTuple):
    """Who acts, and in which request. `reader` is None before somebody has signed in."""

    reader: Reader | None
    address: str | None
    agent: str | None
    request_id: str
    now: Callable[[], datetime]


class AuditRow(NamedTuple):
    """Something that was done. `user_id` is None if whoever did it runs the instance and is not of this tenant, or is
    not known."""

    id: int
    at: datetime
    user_id: int | None
    user_name: str | None
    action: str
    resource: str
    resource_id: str | None
    detail: str | None
    address: str | None
    agent: str | None
    request_id: str


current_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)

_add = portable(insert_into("audit_log", ("tenant_id", *AuditRow._fields[1:])))
_forget = Prepared(sqlite="DELETE FROM audit_log WHERE at < ?", postgresql="SELECT headwater_forget_audit(?)")


@cache
def _page(*, of_user: bool, of_resource: bool) -> Prepared[AuditRow]:
    conditions = " AND user_id = :user_id" * of_user + " AND resource = :resource" * of_resource
    return portable(
        f"""SELECT {columns(AuditRow)} FROM audit_log WHERE tenant_id = :tenant_id AND id < :before{conditions}
        ORDER BY id DESC LIMIT :limit""",
        row=AuditRow,
    )


def record(
    conn: Connection,
    reader: Reader | None,
    action: str,
    resource_id: int | str | None = None,
    detail: str = "",
    *,
    by_stranger: bool = False,
) -> None:
    """Adds a row for what this transaction did. `reader` is whoever did it or, where that is somebody else, whose
    tenant it concerns; None: whoever acts. `by_stranger`: nobody knows who did it. Neither an id nor a detail may be a
    secret."""
    assert action in ACTIONS, f"{action} is not among the actions of the audit log"
    actor = current_actor.get()
    if actor is None:
        return
    concerned = reader or actor.reader or accounts.owner(conn)
    if concerned is None:
        return  # a store without anybody in it
    acting: Reader | None = None if by_stranger else actor.reader or concerned
    if acting and acting.tenant_id != concerned.tenant_id:
        acting = None
    _add.once(
        conn,
        tenant_id=concerned.tenant_id,
        at=actor.now(),
        user_id=acting and acting.user_id,
        user_name=acting and acting.name,
        action=action,
        resource=action.partition(".")[0],
        resource_id=None if resource_id is None else str(resource_id),
        detail=detail[:MOST_CHARACTERS] or None,
        address=actor.address,
        agent=actor.agent and actor.agent[:MOST_CHARACTERS],
        request_id=actor.request_id,
    )


def page(
    conn: Connection,
    reader: Reader,
    *,
    before: int | None = None,
    limit: int,
    user_id: int | None = None,
    resource: str | None = None,
) -> list[AuditRow]:
    """Returns what was done in the reader's tenant, the newest first: all of it, or that of a person or a resource."""
    if resource is not None and resource not in AUDITED:
        raise BadInput(f"There is no resource {resource[:50]!r} in the audit log. There are: {', '.join(AUDITED)}.")
    return _page(of_user=user_id is not None, of_resource=resource is not None).all(
        conn,
        tenant_id=reader.tenant_id,
        before=2**62 if before is None else before,
        limit=limit,
        user_id=user_id,
        resource=resource,
    )


def forget_before(conn: Connection, moment: datetime) -> int:
    """Deletes rows that are older. Returns how many."""
    if conn.dialect.name == "postgresql":
        return int(_forget.value(conn, moment))
    return _forget.once(conn, moment)
