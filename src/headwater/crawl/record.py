"""What is written after a visit, after each page of a list, or after a push: in one transaction with its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import structlog
from sqlalchemy import Connection

from headwater import urls
from headwater.crawl.visit.walk import Checkpoint
from headwater.errors import BadAddress, SourceFailure
from headwater.events import catalogue
from headwater.events.catalogue import MarketFacts, PostFacts, SourceFacts, SourceTrouble
from headwater.model import Event, Item, MarketDay, Post, Response, SavedVisit, SourceState, StoredPost, Visit
from headwater.parse.pool import Parsers
from headwater.store import posts, visits
from headwater.store.db import Database
from headwater.store.fleet import market
from headwater.store.log import outbox
from headwater.store.sources import hubs, leases
from headwater.store.sources.hubs import HubReport, HubSubscription
from headwater.store.visits import items
from headwater.store.visits.items import KnownItem

COIN = "BTC"
log = structlog.get_logger(__name__)


def record(conn: Connection, finished: Sequence[Visit], now: datetime) -> list[SavedVisit]:
    """Writes finished visits: their posts, the sources' state and schedule, the events, and the hubs that they name."""
    saved = visits.save(conn, finished, now)
    outbox.append(conn, [event for one in saved if one.accepted for event in events_of(one)], now)
    hubs.save_reports(conn, [heard for one in saved if (heard := heard_in(one))], now)
    for one in saved:
        if one.accepted and one.visit.days:
            record_days(conn, one.visit.days, one.address, now)
    return saved


def record_days(conn: Connection, days: Sequence[MarketDay], origin: str, now: datetime) -> list[MarketDay]:
    """Writes days of the market. Returns and publishes those that are new or differ from what was known."""
    changed = market.save_days(conn, days, origin, now)
    if changed:
        facts = MarketFacts(
            market=COIN, first_day=changed[0].day, last_day=changed[-1].day, days=len(changed), origin=origin
        )
        outbox.append(conn, [catalogue.MARKET_UPDATED(facts, once=f"{origin}:{now.isoformat()}")], now)
    return changed


class PageTaken(NamedTuple):
    """What a page of a list changes: its posts, the items to read from now on, or the item that it is a page of."""

    source_id: int
    lease: str
    checkpoint: Checkpoint
    posts: Sequence[Post] = ()
    fresh: Sequence[Item] = ()
    item: KnownItem | None = None


def record_page(conn: Connection, taken: PageTaken, now: datetime) -> tuple[list[StoredPost], Checkpoint] | None:
    """Writes a page and how far it brought the crawl. Returns None, and writes nothing, if the lease was lost."""
    if not leases.holds(conn, taken.source_id, taken.lease, now):
        return None
    stored = posts.save_page(conn, taken.source_id, taken.posts, now)
    items.put_waiting(conn, taken.source_id, taken.fresh, now)
    if taken.item:
        new = sum(1 for post in stored if post.change == "new")
        items.save(conn, taken.source_id, taken.item._replace(posts=taken.item.posts + new), now)
    checkpoint = taken.checkpoint.counted(stored)
    checkpoint.save(conn, now)
    outbox.append(conn, post_events(taken.source_id, stored), now)
    return stored, checkpoint


def heard_in(saved: SavedVisit) -> HubReport | None:
    """Returns what a visit says about pushes; None if it says nothing. Pure."""
    source_id, facts, missed = saved.visit.source_id, saved.visit.facts, saved.count("new")
    if not saved.accepted or facts is None:
        return None
    topic = facts.self_url or saved.visit.moved_to or saved.address
    try:
        hub = urls.canonical(facts.hub) if facts.hub else None
        if "@" in urls.split(topic).netloc:
            hub = None  # a hub must not learn the password of a source
    except BadAddress:
        hub = None
    return HubReport(source_id, hub, topic, missed) if hub or missed else None


def events_of(saved: SavedVisit) -> list[Event]:
    """Returns the events of what a visit changed. Pure."""
    events = post_events(saved.visit.source_id, saved.posts)
    change = _change_of_health(saved)
    trace = saved.visit.traceparent
    return [one._replace(traceparent=trace) for one in (*events, *([change] if change else ()))]


def post_events(source_id: int, stored: Sequence[StoredPost]) -> list[Event]:
    kinds = {"new": catalogue.POST_STORED, "edited": catalogue.POST_CHANGED}
    return [_post_event(kinds[post.change], source_id, post) for post in stored if post.change in kinds]


def _post_event(kind: catalogue.EventKind[PostFacts], source_id: int, stored: StoredPost) -> Event:
    facts = PostFacts.of(stored.post, post_id=stored.id, source_id=source_id, version=stored.version)
    return kind(facts, once=f"{stored.id}:{stored.version}")


def _change_of_health(saved: SavedVisit) -> Event | None:
    before, after = saved.previous_status, saved.visit.status
    if before == after or saved.visit.outcome == "deferred":
        return None
    source_id = saved.visit.source_id
    once = f"{source_id}:{saved.visit.started_at.isoformat()}"
    facts = SourceFacts(source_id=source_id, address=saved.address)
    if after == "retired":
        return catalogue.SOURCE_RETIRED(facts, once=once)
    if after == "ok":
        return None if before == "new" else catalogue.SOURCE_RECOVERED(facts, once=once)
    error = saved.visit.error or "The source has no posts any more."
    trouble = SourceTrouble(source_id=source_id, address=saved.address, status=after, error=error)
    return (catalogue.SOURCE_BLOCKED if after == "blocked" else catalogue.SOURCE_FAILED)(trouble, once=once)


def report(saved: SavedVisit) -> dict[str, Any]:
    """Returns a visit as `headwater crawl --json` prints it."""
    visit = saved.visit
    error = visit.error if saved.accepted else "Another process visited this source meanwhile. Nothing was written."
    return with_other_names(
        {
            "source": saved.address,
            "source_id": visit.source_id,
            "outcome": visit.outcome if saved.accepted else "failed",
            **saved.brought(),
            "unfinished": visit.unfinished,
            "seconds": round(visit.seconds, 3),
            "error": error,
        }
    )


def with_other_names(report: dict[str, Any]) -> dict[str, Any]:
    """Adds the names under which systems that crawl communities report the same."""
    address = str(report["source"])
    return report | {
        "community": urlsplit(address).path.strip("/") if "/r/" in address else address,
        "new_posts": report["new"],
        "updated_posts": report["updated"],
        "duration_seconds": report["seconds"],
    }


async def receive(
    db: Database, parsers: Parsers | None, one: HubSubscription, pushed: Response, now: Callable[[], datetime]
) -> SavedVisit | None:
    """Stores what was pushed. If this process cannot parse it, the source is visited instead."""
    source = one.source
    if parsers is not None:
        try:
            page = await parsers.read(source, SourceState(), pushed)
        except SourceFailure as error:
            log.warning("push.unreadable", source=source.address, code=error.code, error=error.detail)
        else:
            return await db.write(record_push, source.id, page.posts, now())
    await db.write(hubs.bring_forward, source.id, now())
    return None


def record_push(conn: Connection, source_id: int, posts: list[Post], now: datetime) -> SavedVisit | None:
    """Writes posts, their events and the trust they earn, in one transaction."""
    saved = hubs.save_push(conn, source_id, posts, now)
    if saved is not None:
        outbox.append(conn, events_of(saved), now)
        hubs.record_push(conn, source_id, saved.count("new") + saved.count("edited"), now)
    return saved
