"""Following and unfollowing sources. Each change is written together with its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.errors import BadAddress, BadInput, Forbidden, NotFound, TooManySources
from headwater.events import catalogue
from headwater.events.catalogue import SourceFacts, SubscriptionEnd
from headwater.model import Credential, Event, Reader
from headwater.sources import DEFAULT, KINDS
from headwater.store import sources
from headwater.store.log import outbox
from headwater.store.people import audit
from headwater.store.sources import Added, WantedSource

AT_ONCE = 1000  # sources in one transaction
Seal = Callable[[str], Credential]


class Outline(NamedTuple):
    """One source of a list such as OPML. `folder` is the path of outlines above it, or else its first category."""

    address: str
    title: str | None = None
    folder: str | None = None


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
    most: int = 0,
) -> Added:
    """Follows what is at this address. Asks nobody: the first visit finds the feed of a site, and the posts.

    A user name and password in the address are taken out of it and stored encrypted; they are a part of what the source
    is. If `kind` or `settings` say how to read the source, they also apply to a source that exists already, from its
    next visit on. A retired source is visited again. Raises TooManySources if the reader has `most` sources already.
    """
    said = kind is not None or bool(settings)
    kind, address = chosen(address, kind, settings or {})
    _check_operator(reader, kind)
    wanted = _new_source(kind, address, seal)
    added = sources.add(
        conn,
        reader,
        kind=kind,
        address=wanted.address,
        host=wanted.host,
        now=now,
        folder=folder,
        custom_title=title,
        credential=wanted.credential,
        settings=settings,
    )
    if added.new_subscription and most and (have := sources.count_followed(conn, reader) - 1) >= most:
        raise _too_many(have, 1, most)
    if said and not added.new_source:
        _check_operator(reader, sources.kind_of(conn, added.source_id))
        changed = sources.read_as(conn, added.source_id, kind, settings or {}, now)
        added = added._replace(changed=changed)
    outbox.append(conn, list(_events(reader, wanted, added, now)), now)
    if added.new_subscription or added.changed or added.revived:
        audit.record(conn, reader, "source.follow", added.source_id, wanted.host)
    return added


def _check_operator(reader: Reader, kind: str) -> None:
    if kind in KINDS and KINDS[kind].for_operators and not reader.runs_instance:
        raise Forbidden(
            f"Only those who run this instance may follow a {KINDS[kind].label}, because it affects everybody."
        )


def _new_source(kind: str, address: str, seal: Seal | None) -> WantedSource:
    address, credential = urls.without_credential(address)
    if credential and seal is None:
        raise BadAddress("An address with a password cannot be added this way.")
    host = urls.host_of(urls.split(address))
    return WantedSource(kind, address, host, seal(credential) if credential and seal else None)


def _events(reader: Reader, wanted: WantedSource, added: Added, now: datetime) -> Iterator[Event]:
    facts = SourceFacts(source_id=added.source_id, address=wanted.address)
    if added.new_source:
        yield catalogue.SOURCE_ADDED(facts, once=str(added.source_id))
    if added.new_subscription:
        once = f"{reader.user_id}:{added.source_id}:{now.isoformat()}"
        yield catalogue.SUBSCRIBED(facts, once=once, reader=reader)


class ReadList(NamedTuple):
    """The sources that a list names, and those that cannot be used with the reason."""

    wanted: list[WantedSource]
    refused: dict[str, str]


def read_list(outlines: Iterable[Outline], seal: Seal | None = None) -> ReadList:
    """Returns what a list names. Needs no database, so that a long list holds up nobody."""
    wanted, refused = [], {}
    for outline in outlines:
        try:
            found = _new_source(*kind_and_address(outline.address), seal)
        except BadAddress as error:
            refused[urls.without_secrets(outline.address)] = error.detail
            continue
        wanted.append(found._replace(folder=outline.folder, title=outline.title))
    return ReadList(wanted, refused)


def check_room(conn: Connection, reader: Reader, wanted: Sequence[WantedSource], most: int) -> None:
    """Raises TooManySources if the reader would have more than `most` sources with these; 0: any number."""
    if not most:
        return
    have, new = sources.count_followed(conn, reader), sources.count_new(conn, reader, wanted)
    if new and have + new > most:
        raise _too_many(have, new, most)


def _too_many(have: int, new: int, most: int) -> TooManySources:
    return TooManySources(
        f"You follow {have:,} sources and want {new:,} more, but at most {most:,} are allowed. Nothing was added. "
        "Stop following some, or set HEADWATER_MAX_SOURCES to a higher number."
    )


def follow_some(conn: Connection, reader: Reader, wanted: Sequence[WantedSource], now: datetime) -> int:
    """Follows these sources. Returns how many the reader did not follow before."""
    added = sources.add_all(conn, reader, wanted, now)
    pairs = zip(wanted, added, strict=True)
    outbox.append(conn, [event for one, done in pairs for event in _events(reader, one, done, now)], now)
    count = sum(done.new_subscription for done in added)
    if count:
        audit.record(conn, reader, "source.import", detail=f"{count} sources")
    return count


def follow_all(
    conn: Connection,
    reader: Reader,
    outlines: Iterable[Outline],
    now: datetime,
    seal: Seal | None = None,
    most: int = 0,
) -> Imported:
    """Follows everything in a list. An address that cannot be used is reported and does not stop the others."""
    wanted, refused = read_list(outlines, seal)
    check_room(conn, reader, wanted, most)
    batches = (wanted[start : start + AT_ONCE] for start in range(0, len(wanted), AT_ONCE))
    added = sum(follow_some(conn, reader, batch, now) for batch in batches)
    return Imported(added, len(wanted) - added, refused)


def unfollow(conn: Connection, reader: Reader, source_id: int, now: datetime) -> None:
    if not sources.remove(conn, reader, source_id):
        raise NotFound(f"You do not follow a source {source_id}.")
    once = f"{reader.user_id}:{source_id}:{now.isoformat()}"
    end = SubscriptionEnd(source_id=source_id)
    outbox.append(conn, [catalogue.UNSUBSCRIBED(end, once=once, reader=reader)], now)
    audit.record(conn, reader, "source.unfollow", source_id)
