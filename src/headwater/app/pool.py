"""The pool of sources that are watched for everybody, and the tiers that say how often each is visited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app import sources as followed
from headwater.app.shapes import Example
from headwater.errors import BadInput
from headwater.follow import pool as pooling
from headwater.follow.add import Imported
from headwater.follow.pool import BY_NAME, TIERS, Assignment, Candidate
from headwater.model import Reader
from headwater.sources import KINDS
from headwater.store.people import audit
from headwater.store.sources import pool
from headwater.store.sources.pool import SourceRank

TIER_NAMES = tuple(tier.name for tier in TIERS)


def read_list(document: bytes | None) -> list[Candidate]:
    """Reads a list in JSON or CSV, or the one that comes with Headwater. Raises BadDocument for anything else."""
    return pooling.read(pooling.starter() if document is None else document)


def import_list(conn: Connection, reader: Reader, candidates: Sequence[Candidate], now: datetime) -> Imported:
    """Puts sources into the pool and follows them. Doing it twice changes nothing."""
    audit.record(conn, reader, "source.import", detail=f"{len(candidates)} sources of the pool")
    return pooling.bring_in(conn, reader, candidates, now)


def exported(conn: Connection) -> tuple[bytes, int]:
    """Returns the pool as a list in JSON, which `read_list` reads, and how many sources are in it."""
    members = pool.pooled(conn)
    return pooling.as_json(members), len(members)


def members(conn: Connection, tier: str | None = None, category: str | None = None) -> list[SourceRank]:
    """Returns what is in the pool, or what of it is in a tier or a category."""
    wanted = tier_named(tier) if tier else None
    return [
        one
        for one in pool.pooled(conn)
        if wanted in (None, one.tier) and (category is None or category in one.categories)
    ]


def tier_changes(conn: Connection) -> list[Assignment]:
    """Returns the tier that each source should have."""
    return pooling.assignments(conn)


def apply_tiers(conn: Connection) -> list[Assignment]:
    """Gives every source its tier. Returns what changed."""
    audit.record(conn, None, "tiers.apply")
    return pooling.apply_tiers(conn)


def pin_tier(conn: Connection, reader: Reader, name: str, tier: str | None) -> int:
    """Keeps a followed source in a tier whatever it publishes; None lets its average decide. Returns its id."""
    source_id = followed.named(conn, reader, name)
    pooling.pin_tier(conn, source_id, tier)
    audit.record(conn, reader, "source.tier", source_id, tier or "by its average")
    return source_id


def read_comments(conn: Connection, reader: Reader, name: str, *, wanted: bool) -> int:
    """Has the newest comments of a community read with each visit, or no longer. Returns its id."""
    source_id = followed.named(conn, reader, name)
    with_comments = [kind.name for kind in KINDS.values() if kind.has_comments]
    if not pool.set_comments(conn, source_id, wanted, with_comments):
        raise BadInput(f"{name} is not a community: only communities have comments that can be read.")
    audit.record(conn, reader, "source.comments", source_id, "read" if wanted else "not read")
    return source_id


def followed_in(conn: Connection, reader: Reader, tier: str) -> list[int]:
    """Returns the sources that the reader follows and that are in a tier."""
    return pool.followed_in(conn, reader, tier_named(tier))


def tier_named(name: str) -> str:
    if name not in BY_NAME:
        raise BadInput(f"{name} is not a tier. There are {', '.join(BY_NAME)}.")
    return name


def _interval_of(one: Assignment) -> int | None:
    return one.tier.interval_seconds if one.tier else one.standing.interval_seconds


class TierJson(TypedDict):
    """The tier that a source has, and the one that it should have."""

    source_id: Annotated[int, Example(12, of="standing.source_id")]
    address: Annotated[str, Example("r/bitcoin", of="standing.address")]
    avg_valid_posts: Annotated[float | None, Example(41.5, "posts a day", of="standing.average")]
    tier: Annotated[str | None, Example("medium", of="standing.tier")]
    pinned_tier: Annotated[str | None, Example(None, of="standing.pinned")]
    computed_tier: Annotated[str | None, Example("high", of=lambda one: one.tier.name if one.tier else None)]
    interval_seconds: Annotated[int | None, Example(7200, of=_interval_of)]
    changes: Annotated[bool, Example(True)]
