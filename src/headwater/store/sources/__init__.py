"""Sources and who follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, select, tuple_, update

from headwater.model import Reader
from headwater.store.sources import moves
from headwater.store.sql import json_text, json_value, portable
from headwater.store.tables import checkpoints, crawls, posts, sources, subscriptions

_insert_source = portable(
    """INSERT INTO sources (kind, address, host, title, settings, created_at, next_check_at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (address) DO NOTHING RETURNING id"""
)
_subscribe = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, folder, title, created_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING RETURNING source_id"""
)
_how_read = portable("SELECT kind, settings FROM sources WHERE id = ?")
_read_as = portable(
    """UPDATE sources SET kind = ?, settings = ?, note = '', etag = NULL, last_modified = NULL, body_hash = NULL,
        validated_at = NULL, next_check_at = ? WHERE id = ?"""
)
_keep_credential = portable("UPDATE sources SET credential = ? WHERE id = ?")
_wake_if_asleep = portable("UPDATE sources SET active = ?, next_check_at = ? WHERE id = ? AND NOT active")


class WatchedSource(NamedTuple):
    """A source as a reader sees it: what it is, how it is doing, when it was and will be checked."""

    id: int
    kind: str
    address: str
    title: str
    folder: str | None
    site_url: str | None
    status: str
    active: bool
    created_at: datetime
    last_crawled_at: datetime | None
    next_check_at: datetime
    checking: bool
    waits_for: str | None
    newest_post_at: datetime | None
    interval_seconds: int | None
    consecutive_failures: int
    failing_since: datetime | None
    last_error_code: str | None
    last_error: str | None
    truncated: bool
    note: str
    gap_at: datetime | None


SILENT_AFTER = timedelta(days=60)


class Added(NamedTuple):
    """`changed`: the source was there, and is read in another way from now on."""

    source_id: int
    new_source: bool
    new_subscription: bool
    changed: bool = False


class PastVisit(NamedTuple):
    started_at: datetime
    seconds: float
    outcome: str
    http_status: int | None
    bytes: int
    new: int
    updated: int
    duplicates: int
    truncated: bool
    gap: bool
    error: str | None


class VisitElsewhere(NamedTuple):
    """A visit that another process made, in the words of a report."""

    source: str
    source_id: int
    outcome: str
    new: int
    updated: int
    duplicates: int
    watermark_updated: bool
    truncated: bool
    gap: bool
    unfinished: bool
    seconds: float
    error: str | None


def add(
    conn: Connection,
    reader: Reader,
    *,
    kind: str,
    address: str,
    host: str,
    now: datetime,
    title: str = "",
    folder: str | None = None,
    custom_title: str | None = None,
    credential: bytes | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Added:
    """Follow a source, creating it if nobody watches it yet. It is due at once. Doing it twice changes nothing."""
    source_id = moves.source_at(conn, address)
    new_source = source_id is None
    if source_id is None:
        rows = _insert_source.all(conn, kind, address, host, title, json_text(dict(settings or {})), now, now)
        new_source = bool(rows)
        source_id = rows[0][0] if rows else moves.source_at(conn, address)
        assert source_id is not None
    if credential is not None:
        _keep_credential.once(conn, credential, source_id)
    subscribed = _subscribe.all(conn, reader.tenant_id, reader.user_id, source_id, folder, custom_title, now)
    if subscribed and not new_source:
        _wake_if_asleep.once(conn, True, now, source_id)
    return Added(source_id, new_source, bool(subscribed))


def read_as(conn: Connection, source_id: int, kind: str, settings: Mapping[str, Any], now: datetime) -> bool:
    """Let a source be read as this kind, with these settings, from a visit on that is due now; False: it is already."""
    [(before, known)] = _how_read.all(conn, source_id)
    if (before, json_value(known)) == (kind, dict(settings)):
        return False
    _read_as.once(conn, kind, json_text(dict(settings)), now, source_id)
    return True


def remove(conn: Connection, reader: Reader, source_id: int) -> bool:
    """Stop following. The source and its posts stay; it is no longer visited once nobody follows it."""
    gone = conn.execute(delete(subscriptions).where(_follows(reader), subscriptions.c.source_id == source_id)).rowcount
    followed = select(subscriptions.c.source_id).where(subscriptions.c.source_id == source_id)
    conn.execute(update(sources).where(sources.c.id == source_id, ~followed.exists()).values(active=False))
    return bool(gone)


def watched(conn: Connection, reader: Reader, now: datetime) -> list[WatchedSource]:
    rows = conn.execute(_watched(reader).order_by(func.lower(sources.c.title), sources.c.id))
    return [_watched_row(row, now) for row in rows]


def watched_page(
    conn: Connection,
    reader: Reader,
    now: datetime,
    *,
    after: int | None = None,
    limit: int,
    folder: str | None = None,
    statuses: Sequence[str] | None = None,
) -> list[WatchedSource]:
    """Sources by the title the reader sees; `after` is the id of the last one seen."""
    query = _watched(reader).order_by(_shown_title(), sources.c.id).limit(limit)
    if after is not None:
        # The database says how it folds this title: its rules for upper and lower case are not Python's.
        seen = conn.execute(
            _watched(reader).with_only_columns(_shown_title()).where(sources.c.id == after)
        ).scalar_one_or_none()
        query = query.where(tuple_(_shown_title(), sources.c.id) > tuple_(seen or "", after))
    if folder is not None:
        query = query.where(subscriptions.c.folder == folder)
    if statuses is not None:
        query = query.where(sources.c.status.in_(statuses))
    return [_watched_row(row, now) for row in conn.execute(query)]


def watched_after(
    conn: Connection, reader: Reader, now: datetime, *, after: int | None, limit: int
) -> list[WatchedSource]:
    """Sources by id, which the index gives out in order however many there are."""
    query = _watched(reader).order_by(subscriptions.c.source_id).limit(limit)
    if after is not None:
        query = query.where(subscriptions.c.source_id > after)
    return [_watched_row(row, now) for row in conn.execute(query)]


def watched_some(conn: Connection, reader: Reader, source_ids: Sequence[int], now: datetime) -> list[WatchedSource]:
    """Those of these sources that the reader follows."""
    rows = conn.execute(_watched(reader).where(subscriptions.c.source_id.in_(source_ids)))
    return [_watched_row(row, now) for row in rows]


def watched_one(conn: Connection, reader: Reader, source_id: int, now: datetime) -> WatchedSource | None:
    row = conn.execute(_watched(reader).where(sources.c.id == source_id)).first()
    return _watched_row(row, now) if row else None


def find(conn: Connection, reader: Reader, name: str) -> int | None:
    """The id of a followed source by its address, a former address or, as a person would write it, its id."""
    source_id = int(name) if name.isdigit() else moves.source_at(conn, name)
    query = select(subscriptions.c.source_id).where(_follows(reader), subscriptions.c.source_id == source_id)
    return conn.execute(query).scalar() if source_id is not None else None


def followed_ids(conn: Connection, reader: Reader) -> list[int]:
    return list(conn.execute(select(subscriptions.c.source_id).where(_follows(reader))).scalars())


def visited_of_kind(conn: Connection, kind: str) -> list[int]:
    """The sources of a kind that are visited at all."""
    return list(conn.execute(select(sources.c.id).where(sources.c.kind == kind, sources.c.active)).scalars())


def make_due(conn: Connection, source_ids: Sequence[int], now: datetime) -> int:
    """Ask for a visit now; returns for how many. A source that is being visited at this moment is left alone."""
    free = (sources.c.lease_until.is_(None)) | (sources.c.lease_until <= now)
    query = update(sources).where(sources.c.id.in_(source_ids), free)
    return conn.execute(query.values(next_check_at=now, active=True)).rowcount


def past_visits(conn: Connection, source_id: int, limit: int) -> list[PastVisit]:
    columns = [crawls.c[name] for name in PastVisit._fields]
    query = select(*columns).where(crawls.c.source_id == source_id).order_by(crawls.c.id.desc()).limit(limit)
    return [PastVisit(*row) for row in conn.execute(query)]


def visited_since(conn: Connection, source_ids: Sequence[int], since: datetime) -> list[VisitElsewhere]:
    """The last visits of these sources after `since`, whoever made them; a source that is gone has failed."""
    latest = (
        select(func.max(crawls.c.id))
        .where(crawls.c.source_id.in_(source_ids), crawls.c.started_at >= since)
        .group_by(crawls.c.source_id)
    )
    running = select(checkpoints.c.source_id).where(checkpoints.c.source_id == crawls.c.source_id)
    unfinished = running.where(checkpoints.c.status == "running").exists()
    query = (
        select(sources.c.address, crawls, unfinished.label("unfinished"))
        .join(sources, sources.c.id == crawls.c.source_id)
        .where(crawls.c.id.in_(latest))
    )
    found = [
        VisitElsewhere(
            row.address,
            row.source_id,
            row.outcome,
            row.new,
            row.updated,
            row.duplicates,
            row.watermark_updated,
            row.truncated,
            row.gap,
            row.unfinished,
            row.seconds,
            row.error,
        )
        for row in conn.execute(query)
    ]
    there = set(conn.execute(select(sources.c.id).where(sources.c.id.in_(source_ids))).scalars())
    gone = [source_id for source_id in source_ids if source_id not in there]
    said = "The source is gone."
    return found + [VisitElsewhere("", id, "failed", 0, 0, 0, False, False, False, False, 0.0, said) for id in gone]


def count_posts(conn: Connection, source_id: int) -> int:
    return conn.execute(select(func.count()).select_from(posts).where(posts.c.source_id == source_id)).scalar_one()


def post_counts(conn: Connection, source_ids: Sequence[int]) -> dict[int, int]:
    """How many posts each of these sources has; one without posts is not in it."""
    query = select(posts.c.source_id, func.count()).where(posts.c.source_id.in_(source_ids)).group_by(posts.c.source_id)
    return {row.source_id: row[1] for row in conn.execute(query)}


def count_due(conn: Connection, now: datetime) -> int:
    query = select(func.count()).select_from(sources).where(sources.c.active, sources.c.next_check_at <= now)
    return conn.execute(query).scalar_one()


def followed_by_status(conn: Connection, reader: Reader) -> dict[str, int]:
    joined = sources.join(subscriptions, subscriptions.c.source_id == sources.c.id)
    query = select(sources.c.status, func.count()).select_from(joined).where(_follows(reader))
    return {row.status: row[1] for row in conn.execute(query.group_by(sources.c.status))}


def counts_by_status(conn: Connection) -> dict[str, int]:
    query = select(sources.c.status, func.count()).where(sources.c.active).group_by(sources.c.status)
    return {row.status: row[1] for row in conn.execute(query)}


def _follows(reader: Reader) -> ColumnElement[bool]:
    return and_(subscriptions.c.tenant_id == reader.tenant_id, subscriptions.c.user_id == reader.user_id)


def _watched(reader: Reader) -> Any:
    return (
        select(sources, subscriptions.c.title.label("custom_title"), subscriptions.c.folder)
        .join(subscriptions, subscriptions.c.source_id == sources.c.id)
        .where(_follows(reader))
    )


def _shown_title() -> ColumnElement[str]:
    shown = func.coalesce(func.nullif(subscriptions.c.title, ""), func.nullif(sources.c.title, ""), sources.c.address)
    return func.lower(shown)


def _watched_row(row: Row[Any], now: datetime) -> WatchedSource:
    return WatchedSource(
        id=row.id,
        kind=row.kind,
        address=row.address,
        title=row.custom_title or row.title or row.address,
        folder=row.folder,
        site_url=row.site_url,
        status=_shown_status(row.status, row.last_seen_created_at, now),
        active=row.active,
        created_at=row.created_at,
        last_crawled_at=row.last_crawled_at,
        next_check_at=row.next_check_at,
        checking=row.lease_until is not None and row.lease_until > now,
        waits_for=row.waits_for,
        newest_post_at=row.last_seen_created_at,
        interval_seconds=row.interval_seconds,
        consecutive_failures=row.consecutive_failures,
        failing_since=row.failing_since,
        last_error_code=row.last_error_code,
        last_error=row.last_error,
        truncated=row.truncated,
        note=row.note,
        gap_at=row.gap_at,
    )


def _shown_status(status: str, newest_post_at: datetime | None, now: datetime) -> str:
    """A source that answers but has published nothing for long is silent: it may have died without saying so (F4)."""
    if status == "ok" and newest_post_at is not None and now - newest_post_at > SILENT_AFTER:
        return "silent"
    return status


def arrange(conn: Connection, reader: Reader, source_id: int, **wanted: str | None) -> bool:
    """Give a followed source another `title` or `folder`; None takes it away."""
    mine = and_(_follows(reader), subscriptions.c.source_id == source_id)
    return bool(conn.execute(update(subscriptions).where(mine).values(**wanted)).rowcount)
