"""Following and unfollowing sources. Each change is written together with its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.errors import BadAddress, BadInput, NotFound
from headwater.events import catalogue
from headwater.events.catalogue import SourceFacts, SubscriptionEnd
from headwater.follow.opml import Outline
from headwater.model import Reader
from headwater.sources import DEFAULT, KINDS
from headwater.store import sources
from headwater.store.log import outbox
from headwater.store.sources import Added

Seal = Callable[[str], bytes]


class Imported(NamedTuple):
    """What an import of a list did; `refused` has the reason for each address."""

    added: int
    already: int
    refused: dict[str, str]


def kind_and_address(typed: str) -> tuple[str, str]:
    """Returns the kind and address that a person means.

    What no kind knows by its spelling is the address of a feed or site.
    """
    for kind in KINDS.values():
        address = kind.address_of(typed) if kind.address_of else None
        if address:
            return kind.name, address
    return DEFAULT.name, urls.canonical(urls.with_scheme(typed))


def chosen(typed: str, kind: str | None, settings: Mapping[str, Any]) -> tuple[str, str]:
    """Returns kind and address. A person may have chosen the kind; raises BadInput if it does not fit the address."""
    meant, address = kind_and_address(typed)
    kind = kind or meant
    if kind not in KINDS:
        raise BadInput(f"There is no kind {kind!r} of source. The kinds are: {', '.join(KINDS)}.")
    if kind != meant and not (KINDS[kind].at_address and KINDS[meant].at_address):
        raise BadInput(f"What is at this address cannot be read as {kind!r}, only as {meant!r}.")
    check = KINDS[kind].check
    if check:
        check(settings)
    elif settings:
        raise BadInput(f"A source of kind {kind!r} has no settings. Name the kind that they are for.")
    return kind, address


def follow(
    conn: Connection,
    reader: Reader,
    address: str,
    now: datetime,
    *,
    folder: str | None = None,
    title: str | None = None,
    seal: Seal | None = None,
    kind: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Added:
    """Follows what is at this address. Asks nobody: the first visit finds the feed of a site, and the posts.

    A user name and password in the address are taken out of it and stored encrypted. If `kind` or `settings` say how to
    read the source, they also apply to a source that exists already, from its next visit on.
    """
    said = kind is not None or bool(settings)
    kind, address = chosen(address, kind, settings or {})
    address, credential = urls.without_credential(address)
    if credential and seal is None:
        raise BadAddress("An address with a password cannot be added this way.")
    added = sources.add(
        conn,
        reader,
        kind=kind,
        address=address,
        host=urls.host_of(urls.split(address)),
        now=now,
        folder=folder,
        custom_title=title,
        credential=seal(credential) if credential and seal else None,
        settings=settings,
    )
    if said and not added.new_source:
        changed = sources.read_as(conn, added.source_id, kind, settings or {}, now)
        added = added._replace(changed=changed)
    facts = SourceFacts(source_id=added.source_id, address=address)
    events = []
    if added.new_source:
        events.append(catalogue.SOURCE_ADDED(facts, once=str(added.source_id)))
    if added.new_subscription:
        once = f"{reader.user_id}:{added.source_id}:{now.isoformat()}"
        events.append(catalogue.SUBSCRIBED(facts, once=once, reader=reader))
    outbox.append(conn, events, now)
    return added


def follow_all(
    conn: Connection, reader: Reader, outlines: Iterable[Outline], now: datetime, seal: Seal | None = None
) -> Imported:
    """Follows everything in a list. An address that cannot be used is reported and does not stop the others."""
    added = already = 0
    refused = {}
    for outline in outlines:
        try:
            done = follow(conn, reader, outline.address, now, folder=outline.folder, title=outline.title, seal=seal)
        except BadAddress as error:
            refused[urls.without_secrets(outline.address)] = error.detail
            continue
        added += done.new_subscription
        already += not done.new_subscription
    return Imported(added, already, refused)


def unfollow(conn: Connection, reader: Reader, source_id: int, now: datetime) -> None:
    if not sources.remove(conn, reader, source_id):
        raise NotFound(f"You do not follow a source {source_id}.")
    once = f"{reader.user_id}:{source_id}:{now.isoformat()}"
    end = SubscriptionEnd(source_id=source_id)
    outbox.append(conn, [catalogue.UNSUBSCRIBED(end, once=once, reader=reader)], now)
