"""The pool of sources: importing a list of them, and giving each source its tier."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.errors import BadAddress, BadDocument
from headwater.follow import tiers
from headwater.follow.add import Imported, follow, kind_and_address
from headwater.follow.tiers import BY_NAME, Assignment
from headwater.model import Reader
from headwater.store import sources
from headwater.store.sources import pool

COLUMNS = ["source", "tier", "categories"]


class Candidate(NamedTuple):
    """A source in a list for the pool; `tier` is its first tier."""

    address: str
    tier: str
    categories: tuple[str, ...]


def starter() -> bytes:
    """Returns the list that comes with Headwater: communities that many people read."""
    return (files("headwater") / "data" / "communities.csv").read_bytes()


def read(document: bytes) -> list[Candidate]:
    """Parses a list in CSV. `source` is a community such as r/technology, or an address; `categories` are words."""
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
    if tier not in BY_NAME:
        raise BadDocument(f"Line {line}: {tier or 'nothing'} is not a tier. The tiers are {', '.join(BY_NAME)}.")
    return Candidate(address_of(source), tier, tuple(categories.split()))


def address_of(source: str) -> str:
    """The address of what a list names, such as r/name. One that cannot be used is refused later, by itself."""
    try:
        return kind_and_address(source)[1]
    except BadAddress:
        return source


def bring_in(conn: Connection, reader: Reader, candidates: Iterable[Candidate], now: datetime) -> Imported:
    """Puts sources into the pool and follows them. What is in the pool already stays as it is, followed or not."""
    added = already = 0
    refused = {}
    for candidate in candidates:
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
    pool.enter(conn, source_id, candidate.categories, now)
    standing = pool.rank_of(conn, source_id)
    assert standing is not None
    tier = tiers.tier_for(standing.average, standing.tier or candidate.tier, standing.pinned)
    assert tier is not None
    pool.assign(conn, [tiers.place_in(tier, standing)])


def assignments(conn: Connection) -> list[Assignment]:
    """Returns the tier that every visited source should have by its average and its pin."""
    return tiers.assignments(pool.ranks(conn))


def apply_tiers(conn: Connection) -> list[Assignment]:
    """Gives every source its tier. Returns what changed. Running it again changes nothing."""
    return _apply(conn, assignments(conn))


def apply_pool_tiers(conn: Connection) -> list[Assignment]:
    """Gives the sources of the pool their tiers. All others keep their interval until somebody runs `apply_tiers`."""
    return _apply(conn, tiers.assignments(one for one in pool.pooled(conn) if one.active))


def _apply(conn: Connection, found: list[Assignment]) -> list[Assignment]:
    changed = [one for one in found if one.changes]
    pool.assign(conn, [tiers.place_in(one.tier, one.standing) for one in changed if one.tier])
    return changed


def pin_tier(conn: Connection, source_id: int, tier: str | None) -> None:
    """Pins a source to a tier, which applies at once. None removes the pin, and the average decides next time."""
    pool.pin(conn, source_id, tier)
    standing = pool.rank_of(conn, source_id)
    if tier is not None and standing is not None:
        pool.assign(conn, [tiers.place_in(BY_NAME[tier], standing)])
