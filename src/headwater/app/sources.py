"""What is followed: following and unfollowing, lists as OPML, names and folders, and how a source is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater import urls
from headwater.app.shapes import Example, Time
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.follow import add, opml
from headwater.follow.add import Imported
from headwater.follow.add import follow as follow
from headwater.follow.add import follow_all as follow_all
from headwater.follow.add import unfollow as unfollow
from headwater.follow.discovery import choices
from headwater.follow.opml import Outline
from headwater.model import Reader
from headwater.sources import DEFAULT, KINDS
from headwater.store import sources, visits
from headwater.store.db import Database
from headwater.store.posts import stream
from headwater.store.sources import WatchedSource, hubs, pool
from headwater.store.sources.pool import Listing, SourceTier
from headwater.store.visits import PastVisit, checkpoints
from headwater.store.visits.checkpoints import CheckpointRow

PAST_VISITS = 30
NEEDS_ATTENTION = ("failing", "blocked", "empty", "silent", "retired")
KIND_CHOICES = choices()  # the kinds that a person can choose where an address alone does not tell
DEFAULT_KIND = DEFAULT.name
_AT_ONCE = 200
Seal = Callable[[str], bytes]

STARTER_GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Technology": (
        ("Hacker News", "https://news.ycombinator.com/rss"),
        ("Ars Technica", "https://feeds.arstechnica.com/arstechnica/index"),
        ("The Verge", "https://www.theverge.com/rss/index.xml"),
        ("Lobsters", "https://lobste.rs/rss"),
        ("LWN.net", "https://lwn.net/headlines/rss"),
    ),
    "World": (
        ("BBC News: World", "https://feeds.bbci.co.uk/news/world/rss.xml"),
        ("The Guardian: World", "https://www.theguardian.com/world/rss"),
        ("Al Jazeera", "https://www.aljazeera.com/xml/rss/all.xml"),
        ("NPR: World", "https://feeds.npr.org/1004/rss.xml"),
    ),
    "Business and markets": (
        ("CNBC: Top news", "https://www.cnbc.com/id/100003114/device/rss/rss.html"),
        ("The Economist: Finance", "https://www.economist.com/finance-and-economics/rss.xml"),
        ("Federal Reserve: Press releases", "https://www.federalreserve.gov/feeds/press_all.xml"),
        ("ECB: Press releases", "https://www.ecb.europa.eu/rss/press.html"),
    ),
    "Science": (
        ("Nature", "https://www.nature.com/nature.rss"),
        ("Quanta Magazine", "https://www.quantamagazine.org/feed/"),
        ("Phys.org", "https://phys.org/rss-feed/"),
        ("NASA: News releases", "https://www.nasa.gov/news-release/feed/"),
    ),
    "Bitcoin and mining": (
        ("CoinDesk", "https://www.coindesk.com/arc/outboundfeeds/rss/"),
        ("Bitcoin Optech", "https://bitcoinops.org/feed.xml"),
        ("Bitcoin Magazine", "https://bitcoinmagazine.com/feed"),
        ("Hashrate Index", "https://hashrateindex.com/blog/rss/"),
    ),
}


def plural_of(kind: str) -> str:
    """Returns what people call several sources of a kind."""
    return KINDS[kind].plural


class SourceDetail(NamedTuple):
    """A source with its latest visits, the number of its posts, and since when a hub pushes it."""

    source: WatchedSource
    pushed_since: datetime | None
    posts: int
    visits: list[PastVisit]


class Publishing(NamedTuple):
    """What a source publishes and how often it is visited for it: its tier, its days, its cached listing, its crawl."""

    tier: SourceTier
    days: list[tuple[datetime, int]]
    listing: Listing | None
    checkpoint: CheckpointRow | None


class Overview(NamedTuple):
    """Some sources of a reader, with the numbers of their posts; how many of all have each status; all folders."""

    sources: list[WatchedSource]
    posts: dict[int, int]
    by_status: dict[str, int]
    folders: list[str]

    @property
    def total(self) -> int:
        return sum(self.by_status.values())

    @property
    def troubled(self) -> int:
        return sum(self.by_status.get(status, 0) for status in NEEDS_ATTENTION)


class ExportedList(NamedTuple):
    document: bytes
    sources: int


def follow_new(
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
) -> WatchedSource:
    """Follows what is at this address. Raises AlreadyThere if the reader does already and nothing about it changes."""
    added = add.follow(conn, reader, address, now, folder=folder, title=title, seal=seal, kind=kind, settings=settings)
    if not added.new_subscription and not added.changed:
        raise AlreadyThere("You follow this address already.", source_id=added.source_id)
    return one(conn, reader, added.source_id, now)


def read_opml(document: bytes) -> list[Outline]:
    """Reads what an OPML document lists. Raises BadDocument if it is not one."""
    return opml.read(document)


async def import_opml(
    db: Database, reader: Reader, document: bytes, now: Callable[[], datetime], seal: Seal
) -> Imported:
    """Follows everything that an OPML document lists. An address that cannot be used does not stop the others."""
    return await follow_list(db, reader, await asyncio.to_thread(opml.read, document), now, seal)


async def follow_starter_set(
    db: Database, reader: Reader, groups: Sequence[str], now: Callable[[], datetime], seal: Seal
) -> Imported:
    """Follows the well-known sources of these groups."""
    return await follow_list(db, reader, _starter_outlines(groups), now, seal)


def _starter_outlines(groups: Sequence[str]) -> list[Outline]:
    """Returns the sources of these groups, each in a folder named after its group. The feeds give their own titles."""
    chosen = [group for group in STARTER_GROUPS if group in groups]
    return [Outline(address, folder=group) for group in chosen for _, address in STARTER_GROUPS[group]]


async def follow_list(
    db: Database, reader: Reader, outlines: Sequence[Outline], now: Callable[[], datetime], seal: Seal
) -> Imported:
    """Follows these sources in several transactions, so that the crawl can write in between."""
    added = already = 0
    refused: dict[str, str] = {}
    for start in range(0, len(outlines), _AT_ONCE):
        done = await db.write(add.follow_all, reader, outlines[start : start + _AT_ONCE], now(), seal)
        added += done.added
        already += done.already
        refused.update(done.refused)
    return Imported(added, already, refused)


def export_opml(conn: Connection, reader: Reader, now: datetime) -> ExportedList:
    """Writes what the reader follows as an OPML document."""
    followed = sources.watched(conn, reader, now)
    return ExportedList(opml.write(followed), len(followed))


def every(conn: Connection, reader: Reader, now: datetime) -> list[WatchedSource]:
    """Returns everything that the reader follows, by title."""
    return sources.watched(conn, reader, now)


def page(conn: Connection, reader: Reader, now: datetime, *, after: int | None, limit: int) -> list[WatchedSource]:
    """Returns the next sources after an id, by id."""
    return sources.watched_after(conn, reader, now, after=after, limit=limit)


def one(conn: Connection, reader: Reader, source_id: int, now: datetime) -> WatchedSource:
    found = sources.watched_one(conn, reader, source_id, now)
    if found is None:
        raise NotFound(f"You do not follow a source {source_id}.")
    return found


def some(conn: Connection, reader: Reader, source_ids: Sequence[int], now: datetime) -> Overview:
    """Returns those of these sources that the reader follows."""
    found = sources.watched_some(conn, reader, source_ids, now)
    return Overview(
        found,
        sources.post_counts(conn, source_ids),
        sources.followed_by_status(conn, reader),
        stream.folders(conn, reader),
    )


def detail(conn: Connection, reader: Reader, source_id: int, now: datetime) -> SourceDetail:
    """Returns a source with its latest visits."""
    return SourceDetail(
        one(conn, reader, source_id, now),
        hubs.active_since(conn, source_id, now),
        sources.count_posts(conn, source_id),
        visits.past_visits(conn, source_id, PAST_VISITS),
    )


def publishing(conn: Connection, source_id: int, now: datetime, days: int) -> Publishing:
    """Returns what a source published in the last days, and what decides how often it is visited."""
    return Publishing(
        pool.tier_of(conn, source_id),
        pool.posts_by_day(conn, source_id, now, days),
        pool.listing_of(conn, source_id, now),
        checkpoints.of_source(conn, source_id),
    )


def overview(
    conn: Connection,
    reader: Reader,
    now: datetime,
    *,
    after: int | None,
    limit: int,
    folder: str | None = None,
    attention: bool = False,
) -> Overview:
    """Returns a page of the reader's sources by title, or of those in a folder or that need attention."""
    statuses = NEEDS_ATTENTION if attention else None
    found = sources.watched_page(conn, reader, now, after=after, limit=limit, folder=folder, statuses=statuses)
    posts = sources.post_counts(conn, [source.id for source in found])
    return Overview(found, posts, sources.followed_by_status(conn, reader), stream.folders(conn, reader))


def count_posts(conn: Connection, source_id: int) -> int:
    return sources.count_posts(conn, source_id)


def arrange(
    conn: Connection, reader: Reader, source_id: int, changes: Mapping[str, str | None], now: datetime
) -> WatchedSource:
    """Changes the `folder` or the `title` under which the reader sees a source; None takes it away."""
    if not changes:
        raise BadInput("Nothing to change: give folder, title or both.")
    if not sources.arrange(conn, reader, source_id, **changes):
        raise NotFound(f"You do not follow a source {source_id}.")
    return one(conn, reader, source_id, now)


def named(conn: Connection, reader: Reader, name: str) -> int:
    """Returns the id of a followed source. A person names it by its address, a former address, or its id."""
    address = name if name.isdigit() else add.kind_and_address(name)[1]
    wanted, _ = urls.without_credential(address)
    found = sources.find(conn, reader, wanted)
    if found is None:
        raise NotFound(f"You do not follow {name}. `headwater sources` lists what you follow.")
    return found


class SourceJson(TypedDict):
    """Something watched, how it is doing, and when it was and will be checked."""

    id: Annotated[int, Example(12)]
    kind: Annotated[str, Example("rss")]
    address: Annotated[str, Example("https://example.org/feed.xml")]
    title: Annotated[str, Example("Example Journal")]
    folder: Annotated[str | None, Example("Science")]
    site_url: Annotated[str | None, Example("https://example.org/")]
    status: Annotated[str, Example("ok", "new, ok, silent, empty, failing, blocked or retired")]
    active: Annotated[bool, Example(True, "false: it is no longer visited")]
    created_at: Annotated[Time, Example("2026-01-05T08:00:00Z")]
    last_crawled_at: Annotated[Time | None, Example("2026-01-07T09:30:00Z")]
    next_check_at: Annotated[Time, Example("2026-01-07T10:00:00Z")]
    checking: Annotated[bool, Example(False, "true: it is being visited at this moment")]
    waits_for: Annotated[str | None, Example(None, "why a due source is not visited yet")]
    newest_post_at: Annotated[Time | None, Example("2026-01-07T09:12:00Z")]
    interval_seconds: Annotated[int | None, Example(1800)]
    consecutive_failures: Annotated[int, Example(0)]
    failing_since: Annotated[Time | None, Example(None)]
    last_error_code: Annotated[str | None, Example(None)]
    last_error: Annotated[str | None, Example(None)]
    truncated: Annotated[bool, Example(False, "true: its page has more, or broke off; only its first part is read")]
    note: Annotated[str, Example("", "what to know about how it is read; empty: nothing")]
    gap_at: Annotated[Time | None, Example(None, "when posts were last missed between two visits")]


class VisitJson(TypedDict):
    """One visit of a source."""

    started_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    seconds: Annotated[float, Example(0.21)]
    outcome: Annotated[str, Example("ok", "ok, unchanged, empty or failed")]
    http_status: Annotated[int | None, Example(200)]
    bytes: Annotated[int, Example(18230)]
    new: Annotated[int, Example(2)]
    updated: Annotated[int, Example(0)]
    duplicates: Annotated[int, Example(18)]
    truncated: Annotated[bool, Example(False)]
    gap: Annotated[bool, Example(False, "true: posts were missed since the visit before")]
    error: Annotated[str | None, Example(None)]


class SourceDetailJson(SourceJson):
    """A source with the number of its posts and its latest visits."""

    pushed_since: Annotated[
        Time | None, Example("2026-01-06T07:00:00Z", "since when a hub pushes it (WebSub); null: it is polled")
    ]
    posts: Annotated[int, Example(120)]
    visits: list[VisitJson]


class Refused(TypedDict):
    address: Annotated[str, Example("ftp://example.org/")]
    reason: Annotated[str, Example("Only http:// and https:// addresses can be used.")]


class ImportReport(TypedDict):
    added: Annotated[int, Example(12)]
    already: Annotated[int, Example(3)]
    refused: list[Refused]
