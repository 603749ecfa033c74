"""The pool of sources: importing a list of them, and giving each source its tier.

How much a source publishes decides its tier, and the tier how often it is visited. A source enters a tier when its
average reaches the border, and leaves it only when the average has fallen well below. So a source whose average hovers
around a border does not change its tier with every visit. `tier_for` and what it needs are pure.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Annotated, NamedTuple

import msgspec
from sqlalchemy import Connection

from headwater import urls
from headwater.errors import BadAddress, BadDocument
from headwater.follow.add import Imported, follow, kind_and_address
from headwater.model import Reader
from headwater.sources import KINDS, reddit
from headwater.store import sources
from headwater.store.sources import pool
from headwater.store.sources.pool import SourceRank, TierChange

COLUMNS = ["source", "tier", "categories"]
STAYS_ABOVE = 0.9  # of the border: below this a source leaves its tier


class Candidate(NamedTuple):
    """A source in a list for the pool; `tier` is its first tier. `quality` holds until visits have measured it."""

    address: str
    tier: str
    categories: tuple[str, ...]
    quality: float | None = None
    is_active: bool = True


class ListedSource(msgspec.Struct):
    """A source as a list in JSON has it. Other fields are ignored."""

    name: str
    tier: str
    categories: list[str] = []
    quality_score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    is_active: bool = True


class SourceList(msgspec.Struct):
    communities: list[ListedSource]


def starter() -> bytes:
    """Returns the list that comes with Headwater: communities that many people read."""
    return (files("headwater") / "data" / "communities.csv").read_bytes()


def read(document: bytes) -> list[Candidate]:
    """Parses a list in JSON or CSV. Its sources are communities such as r/technology, or addresses."""
    start = document.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return _read_json(document) if start in (b"[", b"{") else _read_csv(document)


def _read_json(document: bytes) -> list[Candidate]:
    """Parses a list such as `[{"name": "r/technology", "tier": "high", "categories": ["tech"]}]`."""
    try:
        found = msgspec.json.decode(document.removeprefix(b"\xef\xbb\xbf"), type=list[ListedSource] | SourceList)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadDocument(f"The list cannot be read: {error}.") from error
    listed = found.communities if isinstance(found, SourceList) else found
    return [
        Candidate(
            address_of(one.name.strip()),
            _known_tier(one.tier, f"Entry {number}"),
            tuple(one.categories),
            one.quality_score,
            one.is_active,
        )
        for number, one in enumerate(listed, 1)
    ]


def as_json(ranks: Iterable[SourceRank]) -> bytes:
    """Returns the pool as a list in JSON, which `read` understands."""
    listed = [
        ListedSource(
            one.address.removeprefix(f"{reddit.SITE}/") if one.kind == reddit.KIND.name else one.address,
            one.tier or TIERS[-1].name,
            one.categories,
            one.quality,
            one.active,
        )
        for one in ranks
    ]
    return msgspec.json.format(msgspec.json.encode(listed)) + b"\n"


def _read_csv(document: bytes) -> list[Candidate]:
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadDocument("The list is not UTF-8 text.") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if next(lines, None) != COLUMNS:
            raise BadDocument(f"The first line has to be {','.join(COLUMNS)}.")
        return [_candidate(cells, lines.line_num) for cells in lines if cells]
    except csv.Error as error:
        raise BadDocument(f"Line {lines.line_num} is not CSV: {error}.") from error


def _candidate(cells: list[str], line: int) -> Candidate:
    if len(cells) != len(COLUMNS):
        raise BadDocument(f"Line {line} has {len(cells)} values instead of {len(COLUMNS)}.")
    source, tier, categories = (cell.strip() for cell in cells)
    return Candidate(address_of(source), _known_tier(tier, f"Line {line}"), tuple(categories.split()))


def _known_tier(tier: str, where: str) -> str:
    if tier not in BY_NAME:
        raise BadDocument(f"{where}: {tier or 'nothing'} is not a tier. The tiers are {', '.join(BY_NAME)}.")
    return tier


def address_of(source: str) -> str:
    """Returns the address of what a list names, such as r/name. One that cannot be used is refused later, by itself."""
    try:
        return kind_and_address(source)[1]
    except BadAddress:
        return source


def bring_in(conn: Connection, reader: Reader, candidates: Iterable[Candidate], now: datetime) -> Imported:
    """Puts sources into the pool and follows them. What is in the pool already stays as it is, followed or not.

    Sources that are not active in the list are left out.
    """
    added = already = 0
    refused = {}
    for candidate in candidates:
        if not candidate.is_active:
            continue
        try:
            if _is_pooled(conn, candidate.address):
                already += 1
                continue
            folder = candidate.categories[0] if candidate.categories else None
            source_id = follow(conn, reader, candidate.address, now, folder=folder).source_id
        except BadAddress as error:
            refused[candidate.address] = error.detail
            continue
        _enter(conn, source_id, candidate, now)
        added += 1
    return Imported(added, already, refused)


def _is_pooled(conn: Connection, address: str) -> bool:
    source_id = sources.source_at(conn, urls.canonical(address))
    standing = pool.rank_of(conn, source_id) if source_id is not None else None
    return standing is not None and standing.pooled_at is not None


def _enter(conn: Connection, source_id: int, candidate: Candidate, now: datetime) -> None:
    pool.enter(conn, source_id, candidate.categories, now, candidate.quality)
    standing = pool.rank_of(conn, source_id)
    assert standing is not None
    tier = tier_for(standing.average, standing.tier or candidate.tier, standing.pinned)
    assert tier is not None
    pool.assign(conn, [place_in(tier, standing)])


def assignments(conn: Connection) -> list[Assignment]:
    """Returns the tier that every visited source should have by its average and its pin."""
    return _assigned(pool.ranks(conn))


def apply_tiers(conn: Connection) -> list[Assignment]:
    """Gives every source its tier. Returns what changed. Running it again changes nothing."""
    return _apply(conn, assignments(conn))


def apply_pool_tiers(conn: Connection) -> list[Assignment]:
    """Gives the sources of the pool their  All others keep their interval until somebody runs `apply_tiers`."""
    return _apply(conn, _assigned(one for one in pool.pooled(conn) if one.active))


def _apply(conn: Connection, found: list[Assignment]) -> list[Assignment]:
    changed = [one for one in found if one.changes]
    pool.assign(conn, [place_in(one.tier, one.standing) for one in changed if one.tier])
    return changed


def pin_tier(conn: Connection, source_id: int, tier: str | None) -> None:
    """Pins a source to a tier, which applies at once. None removes the pin, and the average decides next time."""
    pool.pin(conn, source_id, tier)
    standing = pool.rank_of(conn, source_id)
    if tier is not None and standing is not None:
        pool.assign(conn, [place_in(BY_NAME[tier], standing)])


class Tier(NamedTuple):
    """A tier: the lowest average of valid posts, how often it is visited, and which listing of a community is read."""

    name: str
    from_average: float
    every: timedelta
    sort: str
    time_filter: str
    limit: int

    @property
    def interval_seconds(self) -> int:
        return int(self.every.total_seconds())


TIERS = (
    Tier("high", 20.0, timedelta(hours=2), "new", "week", 50),
    Tier("medium", 10.0, timedelta(hours=6), "top", "week", 80),
    Tier("low", 0.0, timedelta(hours=24), "top", "month", 100),
)
BY_NAME = {tier.name: tier for tier in TIERS}
_RANK = {tier.name: place for place, tier in enumerate(TIERS)}


class Assignment(NamedTuple):
    """The tier that a source should have; None if nothing is known about it yet."""

    standing: SourceRank
    tier: Tier | None

    @property
    def changes(self) -> bool:
        if self.tier is None:
            return False
        now = self.standing
        return (now.tier, now.interval_seconds) != (self.tier.name, self.tier.interval_seconds)


def tier_for(average: float | None, current: str | None = None, pinned: str | None = None) -> Tier | None:
    """Returns the tier of a source. A pin overrides the average; without an average, the current tier stays."""
    if pinned is not None:
        return BY_NAME[pinned]
    if average is None:
        return BY_NAME[current] if current is not None else None
    return next((tier for tier in TIERS if average >= _border(tier, current)), TIERS[-1])


def _border(tier: Tier, current: str | None) -> float:
    had = current is not None and _RANK[tier.name] >= _RANK[current]
    return tier.from_average * STAYS_ABOVE if had else tier.from_average


def _assigned(standings: Iterable[SourceRank]) -> list[Assignment]:
    return [Assignment(one, tier_for(one.average, one.tier, one.pinned)) for one in standings]


def place_in(tier: Tier, standing: SourceRank) -> TierChange:
    """Returns what the tier means for this source. Only some kinds have listings to choose from."""
    listing = {"sort": tier.sort, "time_filter": tier.time_filter, "limit": tier.limit}
    settings = listing if KINDS[standing.kind].has_listings else {}
    return TierChange(standing.source_id, tier.name, tier.interval_seconds, settings)
