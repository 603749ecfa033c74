"""What is followed: following and unfollowing, lists as OPML, names and folders, and how a source is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater import urls
from headwater.app.shapes import Example, Time
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.follow import add
from headwater.follow.add import Imported, Outline
from headwater.follow.add import follow as follow
from headwater.follow.add import follow_all as follow_all
from headwater.follow.add import unfollow as unfollow
from headwater.follow.discovery import choices
from headwater.follow.discovery import try_address as try_address
from headwater.follow.discovery import try_file as try_file
from headwater.model import Credential, Reader
from headwater.sources import DEFAULT, KINDS
from headwater.store import sources, visits
from headwater.store.db import Database
from headwater.store.people import audit
from headwater.store.posts import stream
from headwater.store.sources import Added, WatchedSource, hubs, pool, schedule
from headwater.store.sources.pool import Listing, SourceTier
from headwater.store.visits import PastVisit, VisitHits, checkpoints
from headwater.store.visits.checkpoints import CheckpointRow

PAST_VISITS = 30
SHORTEST_INTERVAL = 1  # minutes
LONGEST_INTERVAL = 7 * 24 * 60
NEEDS_ATTENTION = ("failing", "blocked", "empty", "silent", "retired")
KIND_CHOICES = choices()  # the kinds that a person can choose where an address alone does not tell
KIND_NAMES = tuple(KINDS)
DEFAULT_KIND = DEFAULT.name
Seal = Callable[[str], Credential]

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
    """A source with its latest visits, how all of them went, its number of posts, and since when a hub pushes it."""

    source: WatchedSource
    pushed_since: datetime | None
    posts: int
    visits: list[PastVisit]
    hits: VisitHits


class Publishing(NamedTuple):
    """What a source publishes and how often it is visited for it: its tier, its days, its cached listing, its crawl."""

    tier: SourceTier
    days: list[tuple[datetime, int]]
    listing: Listing | None
    checkpoint: CheckpointRow | None


class Overview(NamedTuple):
    """Some sources of a reader, with the numbers of their posts; how many of all have each status; all folders."""

    sources: Sequence[WatchedSource]
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


def follow_new(conn: Connection, /, reader: Reader, address: str, now: datetime, **terms: Any) -> WatchedSource:
    """Follows what is at this address. Raises AlreadyThere if the reader does already and nothing about it changes.

    `terms` are those of `follow_at`.
    """
    added = follow_at(conn, reader, address, now, **terms)
    if not added.new_subscription and not added.changed and not added.revived:
        raise AlreadyThere("You follow this address already.", source_id=added.source_id)
    return one(conn, reader, added.source_id, now)


def follow_at(
    conn: Connection,
    /,
    reader: Reader,
    address: str,
    now: datetime,
    *,
    refresh_interval: int | None = None,
    usual: timedelta = timedelta(0),
    **terms: Any,
) -> Added:
    """Follows what is at this address, and visits it as often as the reader chose. `terms` are those of `follow`."""
    added = follow(conn, reader, address, now, **terms)
    if refresh_interval is not None:
        choose_interval(conn, reader, added.source_id, refresh_interval, usual, now)
    return added


def read_opml(document: bytes) -> list[Outline]:
    """Reads what an OPML document lists. Raises BadDocument if it is not one."""
    from headwater.follow import opml  # its parser is loaded by those who need it

    return opml.read(document)


async def import_opml(
    db: Database, reader: Reader, document: bytes, now: Callable[[], datetime], seal: Seal, most: int = 0
) -> Imported:
    """Follows everything that an OPML document lists. An address that cannot be used does not stop the others."""
    return await follow_list(db, reader, await asyncio.to_thread(read_opml, document), now, seal, most)


async def follow_starter_set(
    db: Database, reader: Reader, groups: Sequence[str], now: Callable[[], datetime], seal: Seal, most: int = 0
) -> Imported:
    """Follows the well-known sources of these groups."""
    return await follow_list(db, reader, _starter_outlines(groups), now, seal, most)


def _starter_outlines(groups: Sequence[str]) -> list[Outline]:
    """Returns the sources of these groups, each in a folder named after its group. The feeds give their own titles."""
    chosen = [group for group in STARTER_GROUPS if group in groups]
    return [Outline(address, folder=group) for group in chosen for _, address in STARTER_GROUPS[group]]


async def follow_list(
    db: Database,
    reader: Reader,
    outlines: Sequence[Outline],
    now: Callable[[], datetime],
    seal: Seal,
    most: int = 0,
) -> Imported:
    """Follows these sources in several transactions, so that the crawl can write in between.

    Raises TooManySources, and adds nothing, if the reader would have more than `most` sources then.
    """
    wanted, refused = await asyncio.to_thread(add.read_list, outlines, seal)
    await db.read(add.check_room, reader, wanted, most)
    added = 0
    for start in range(0, len(wanted), add.AT_ONCE):
        added += await db.write(add.follow_some, reader, wanted[start : start + add.AT_ONCE], now())
    return Imported(added, len(wanted) - added, refused)


def export_opml(conn: Connection, reader: Reader, now: datetime) -> ExportedList:
    """Writes what the reader follows as an OPML document."""
    from headwater.follow import opml

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
        sources.post_counts(conn, [source.id for source in found]),
        sources.followed_by_status(conn, reader),
        stream.folders(conn, reader),
    )


def one_of(conn: Connection, reader: Reader, source_id: int, address: str, now: datetime) -> WatchedSource:
    """Returns a source that was just added or, if it turned out to be one that was known, the one at that address."""
    found = sources.watched_one(conn, reader, source_id, now)
    return found or one(conn, reader, named(conn, reader, address), now)


def detail(conn: Connection, reader: Reader, source_id: int, now: datetime) -> SourceDetail:
    """Returns a source with its latest visits."""
    return SourceDetail(
        one(conn, reader, source_id, now),
        hubs.active_since(conn, source_id, now),
        sources.count_posts(conn, source_id),
        visits.past_visits(conn, source_id, PAST_VISITS),
        visits.hits(conn, source_id),
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
    conn: Connection,
    reader: Reader,
    source_id: int,
    changes: Mapping[str, Any],
    now: datetime,
    usual: timedelta = timedelta(0),
) -> WatchedSource:
    """Changes the `folder`, `title` or `refresh_interval` of a source for the reader; None takes it away."""
    names = {name: value for name, value in changes.items() if name != "refresh_interval"}
    if names and not sources.arrange(conn, reader, source_id, **names):
        raise NotFound(f"You do not follow a source {source_id}.")
    if names:
        audit.record(conn, reader, "source.change", source_id, ", ".join(sorted(names)))
    if "refresh_interval" in changes:
        choose_interval(conn, reader, source_id, changes["refresh_interval"], usual, now)
    return one(conn, reader, source_id, now)


def choose_interval(
    conn: Connection, reader: Reader, source_id: int, minutes: int | None, usual: timedelta, now: datetime
) -> None:
    """Sets how often the reader wants a source to be visited, in minutes; None: as usual.

    `usual` is how often sources are visited without a choice and without a tier.
    """
    if minutes is not None and not SHORTEST_INTERVAL <= minutes <= LONGEST_INTERVAL:
        raise BadInput(f"An interval is {SHORTEST_INTERVAL} to {LONGEST_INTERVAL:,} minutes, not {minutes:,}.")
    seconds = None if minutes is None else minutes * 60
    if not schedule.choose_interval(conn, reader, source_id, seconds, usual, now):
        raise NotFound(f"You do not follow a source {source_id}.")
    audit.record(conn, reader, "source.change", source_id, f"interval: {minutes or 'as usual'}")


def named(conn: Connection, reader: Reader, name: str) -> int:
    """Returns the id of a followed source. A person names it by its address, a former address, or its id."""
    address = name if name.isdigit() else add.kind_and_address(name)[1]
    wanted, _ = urls.without_credential(address)
    found = sources.find(conn, reader, wanted)
    if not found:
        shown = name if wanted == address else wanted
        raise NotFound(f"You do not follow {shown}. `headwater sources` lists what you follow.")
    if len(found) > 1 and wanted != address:
        ids = ", ".join(map(str, found))
        raise BadInput(f"You follow {wanted} with several passwords. Name the source by its id: {ids}.")
    return found[0]


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
    refresh_interval: Annotated[
        int | None, Example(30, "how often you want it to be visited, in minutes; null: as usual")
    ]
    has_password: Annotated[bool, Example(False, "true: it is read with a name and password")]


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
    success_hit: Annotated[int, Example(96, "visits that found posts, or that nothing had changed")]
    empty_hit: Annotated[int, Example(3, "visits that found nothing")]
    failure_hit: Annotated[int, Example(1, "visits that failed")]
    dedup_rate: Annotated[
        float | None, Example(0.87, "the share of known posts in what the latest visits read; null: they read nothing")
    ]
    posts_cached: Annotated[int, Example(0, "posts in the cached listing of a community")]
    visits: list[VisitJson]


class Refused(TypedDict):
    address: Annotated[str, Example("ftp://example.org/")]
    reason: Annotated[str, Example("Only http:// and https:// addresses can be used.")]


class ImportReport(TypedDict):
    added: Annotated[int, Example(12)]
    already: Annotated[int, Example(3)]
    refused: list[Refused]
