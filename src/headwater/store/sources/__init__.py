"""Sources and who follows them.

The rest of the package: `leases` says which source is visited now, `limits` how much a server may be asked, `pool` how
often a source is visited, and `hubs` which sources are pushed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.model import Reader
from headwater.store.sql import Prepared, json_text, json_value, portable

SILENT_AFTER = timedelta(days=60)


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


class Added(NamedTuple):
    """`changed`: the source was known, and is read in another way from now on."""

    source_id: int
    new_source: bool
    new_subscription: bool
    changed: bool = False


class Followed(NamedTuple):
    """That a user follows a source."""

    tenant_id: int
    user_id: int
    source_id: int


_OWN = "tenant_id = ? AND user_id = ?"
_insert_source = portable(
    """INSERT INTO sources (kind, address, host, title, settings, created_at, next_check_at)
    VALUES (:kind, :address, :host, :title, :settings, :now, :now) ON CONFLICT (address) DO NOTHING RETURNING id"""
)
_subscribe = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, folder, title, created_at)
    VALUES (:tenant_id, :user_id, :source_id, :folder, :title, :now) ON CONFLICT DO NOTHING RETURNING source_id"""
)
_how_read = portable("SELECT kind, settings FROM sources WHERE id = ?")
_read_as = portable(
    """UPDATE sources SET kind = ?, settings = ?, note = '', etag = NULL, last_modified = NULL, body_hash = NULL,
        validated_at = NULL, next_check_at = ? WHERE id = ?"""
)
_set_credential = portable("UPDATE sources SET credential = ? WHERE id = ?")
_activate = portable("UPDATE sources SET active = ?, next_check_at = ? WHERE id = ? AND NOT active")
_unsubscribe = portable(f"DELETE FROM subscriptions WHERE {_OWN} AND source_id = ?")
_deactivate_unfollowed = portable(
    """UPDATE sources SET active = ? WHERE id = ? AND NOT EXISTS
        (SELECT 1 FROM subscriptions WHERE subscriptions.source_id = sources.id)"""
)
_make_due = portable(
    """UPDATE sources SET next_check_at = ?, active = ?
    WHERE id IN (?) AND (lease_until IS NULL OR lease_until <= ?)"""
)
_set_title = portable(f"UPDATE subscriptions SET title = ? WHERE {_OWN} AND source_id = ?")
_set_folder = portable(f"UPDATE subscriptions SET folder = ? WHERE {_OWN} AND source_id = ?")

_subscribed = portable(f"SELECT source_id FROM subscriptions WHERE {_OWN} AND source_id = ?")
_followed_ids = portable(f"SELECT source_id FROM subscriptions WHERE {_OWN}")
_followed_among = portable(
    "SELECT tenant_id, user_id, source_id FROM subscriptions WHERE source_id IN (?) AND user_id IN (?)", row=Followed
)
_visited_of_kind = portable("SELECT id FROM sources WHERE kind = ? AND active")
_count_posts = portable("SELECT count(*) FROM posts WHERE source_id = ?")
_post_counts = portable("SELECT source_id, count(*) FROM posts WHERE source_id IN (?) GROUP BY source_id")
_count_due = portable("SELECT count(*) FROM sources WHERE active AND next_check_at <= ?")
_followed_by_status = portable(
    """SELECT s.status, count(*) FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = ? AND f.user_id = ? GROUP BY s.status"""
)
_counts_by_status = portable("SELECT status, count(*) FROM sources WHERE active GROUP BY status")

_at = portable("SELECT id FROM sources WHERE address = ?")
_at_alias = portable("SELECT source_id FROM source_aliases WHERE address = ?")
_address = portable("SELECT address FROM sources WHERE id = ?")
_move = portable("UPDATE sources SET address = ?, host = ? WHERE id = ?")
_add_alias = portable(
    "INSERT INTO source_aliases (address, source_id) SELECT address, ? FROM sources WHERE id = ? "
    "ON CONFLICT (address) DO UPDATE SET source_id = excluded.source_id"
)
_drop_alias = portable("DELETE FROM source_aliases WHERE address = ?")
_repoint_aliases = portable("UPDATE source_aliases SET source_id = ? WHERE source_id = ?")
_move_followers = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, title, folder, created_at)
    SELECT tenant_id, user_id, CAST(? AS BIGINT), title, folder, created_at FROM subscriptions WHERE source_id = ?
    ON CONFLICT DO NOTHING"""
)
_activate_unless_retired = portable("UPDATE sources SET active = ? WHERE id = ? AND status <> 'retired'")
_drop = portable("DELETE FROM sources WHERE id = ?")


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
    """Follows a source, which is created if it is new, and is due at once. Doing it twice changes nothing."""
    source_id = source_at(conn, address)
    new_source = source_id is None
    if source_id is None:
        source_id = _insert_source.value(
            conn, kind=kind, address=address, host=host, title=title, settings=json_text(dict(settings or {})), now=now
        )
        new_source = source_id is not None
        source_id = source_id if new_source else source_at(conn, address)
        assert source_id is not None
    if credential is not None:
        _set_credential.once(conn, credential, source_id)
    subscribed = _subscribe.all(
        conn,
        tenant_id=reader.tenant_id,
        user_id=reader.user_id,
        source_id=source_id,
        folder=folder,
        title=custom_title,
        now=now,
    )
    if subscribed and not new_source:
        _activate.once(conn, True, now, source_id)
    return Added(source_id, new_source, bool(subscribed))


def read_as(conn: Connection, source_id: int, kind: str, settings: Mapping[str, Any], now: datetime) -> bool:
    """Sets the kind and settings with which a source is read, from now on. Returns False if nothing changes."""
    [(before, known)] = _how_read.all(conn, source_id)
    if (before, json_value(known)) == (kind, dict(settings)):
        return False
    _read_as.once(conn, kind, json_text(dict(settings)), now, source_id)
    return True


def remove(conn: Connection, reader: Reader, source_id: int) -> bool:
    """Stops following a source. It keeps its posts, and is not visited once nobody follows it."""
    gone = _unsubscribe.once(conn, reader.tenant_id, reader.user_id, source_id)
    _deactivate_unfollowed.once(conn, False, source_id)
    return bool(gone)


def arrange(conn: Connection, reader: Reader, source_id: int, **wanted: str | None) -> bool:
    """Sets the `title` or `folder` of a followed source; None removes it. Returns whether the reader follows it."""
    statements = {"title": _set_title, "folder": _set_folder}
    changed = [
        statements[name].once(conn, value, reader.tenant_id, reader.user_id, source_id)
        for name, value in wanted.items()
    ]
    return any(changed)


def make_due(conn: Connection, source_ids: Sequence[int], now: datetime) -> int:
    """Makes sources due now, except those that are being visited. Returns how many."""
    return _make_due.once(conn, now, True, list(source_ids), now)


_WATCHED = """SELECT s.id, s.kind, s.address, COALESCE(NULLIF(f.title, ''), NULLIF(s.title, ''), s.address), f.folder,
        s.site_url, s.status, s.active, s.created_at, s.last_crawled_at, s.next_check_at,
        COALESCE(s.lease_until > :now, FALSE), s.waits_for, s.last_seen_created_at, s.interval_seconds,
        s.consecutive_failures, s.failing_since, s.last_error_code, s.last_error, s.truncated, s.note, s.gap_at
    FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = :tenant_id AND f.user_id = :user_id"""
_SHOWN_TITLE = "lower(COALESCE(NULLIF(f.title, ''), NULLIF(s.title, ''), s.address))"
_watched = portable(f"{_WATCHED} ORDER BY lower(s.title), s.id", row=WatchedSource)
_watched_one = portable(f"{_WATCHED} AND s.id = :source_id", row=WatchedSource)
_watched_some = portable(f"{_WATCHED} AND f.source_id IN (:ids)", row=WatchedSource)
_watched_first = portable(f"{_WATCHED} ORDER BY f.source_id LIMIT :limit", row=WatchedSource)
_watched_after = portable(f"{_WATCHED} AND f.source_id > :after ORDER BY f.source_id LIMIT :limit", row=WatchedSource)
_shown_title = portable(
    f"""SELECT {_SHOWN_TITLE} FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = ? AND f.user_id = ? AND s.id = ?"""
)


@cache
def _watched_page(*, after: bool, folder: bool, statuses: bool) -> Prepared[WatchedSource]:
    wanted = f" AND ({_SHOWN_TITLE}, s.id) > (:seen, :after)" * after
    wanted += " AND f.folder = :folder" * folder + " AND s.status IN (:statuses)" * statuses
    return portable(f"{_WATCHED}{wanted} ORDER BY {_SHOWN_TITLE}, s.id LIMIT :limit", row=WatchedSource)


def watched(conn: Connection, reader: Reader, now: datetime) -> list[WatchedSource]:
    return _shown(_watched, conn, reader, now)


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
    """Returns sources by the title that the reader sees; `after` is the id of the last one seen."""
    statement = _watched_page(after=after is not None, folder=folder is not None, statuses=statuses is not None)
    seen = ""
    if after is not None:
        # The database lowers this title: its rules for upper and lower case are not Python's.
        seen = _shown_title.value(conn, reader.tenant_id, reader.user_id, after) or ""
    wanted = {"seen": seen, "after": after, "folder": folder, "statuses": list(statuses or ()), "limit": limit}
    return _shown(statement, conn, reader, now, **wanted)


def watched_after(
    conn: Connection, reader: Reader, now: datetime, *, after: int | None, limit: int
) -> list[WatchedSource]:
    """Returns sources by id, which is fast however many there are."""
    statement = _watched_first if after is None else _watched_after
    return _shown(statement, conn, reader, now, after=after, limit=limit)


def watched_some(conn: Connection, reader: Reader, source_ids: Sequence[int], now: datetime) -> list[WatchedSource]:
    """Returns those of these sources that the reader follows."""
    return _shown(_watched_some, conn, reader, now, ids=list(source_ids))


def watched_one(conn: Connection, reader: Reader, source_id: int, now: datetime) -> WatchedSource | None:
    return next(iter(_shown(_watched_one, conn, reader, now, source_id=source_id)), None)


def _shown(
    statement: Prepared[WatchedSource], conn: Connection, reader: Reader, now: datetime, **wanted: Any
) -> list[WatchedSource]:
    rows = statement.all(conn, tenant_id=reader.tenant_id, user_id=reader.user_id, now=now, **wanted)
    return [row._replace(status="silent") if _is_silent(row, now) else row for row in rows]


def _is_silent(source: WatchedSource, now: datetime) -> bool:
    """Returns whether a source answers but has published nothing for long: it may be dead without saying so."""
    newest = source.newest_post_at
    return source.status == "ok" and newest is not None and now - newest > SILENT_AFTER


def find(conn: Connection, reader: Reader, name: str) -> int | None:
    """Returns the id of a followed source by its address, a former address or its id."""
    source_id = int(name) if name.isdigit() else source_at(conn, name)
    if source_id is None:
        return None
    found: int | None = _subscribed.value(conn, reader.tenant_id, reader.user_id, source_id)
    return found


def followed_ids(conn: Connection, reader: Reader) -> list[int]:
    return _followed_ids.values(conn, reader.tenant_id, reader.user_id)


def followed_among(conn: Connection, source_ids: Sequence[int], user_ids: Sequence[int]) -> set[Followed]:
    """Returns which of these users follow which of these sources at this moment."""
    if not source_ids or not user_ids:
        return set()
    return set(_followed_among.all(conn, list(source_ids), list(user_ids)))


def visited_of_kind(conn: Connection, kind: str) -> list[int]:
    """Returns the active sources of a kind."""
    return _visited_of_kind.values(conn, kind)


def count_posts(conn: Connection, source_id: int) -> int:
    return int(_count_posts.value(conn, source_id))


def post_counts(conn: Connection, source_ids: Sequence[int]) -> dict[int, int]:
    """Returns how many posts each of these sources has. Sources without posts are not in it."""
    return dict(_post_counts.all(conn, list(source_ids)))


def count_due(conn: Connection, now: datetime) -> int:
    return int(_count_due.value(conn, now))


def followed_by_status(conn: Connection, reader: Reader) -> dict[str, int]:
    return dict(_followed_by_status.all(conn, reader.tenant_id, reader.user_id))


def counts_by_status(conn: Connection) -> dict[str, int]:
    return dict(_counts_by_status.all(conn))


def source_at(conn: Connection, address: str) -> int | None:
    """Returns the source that has this address, or had it."""
    found: int | None = _at.value(conn, address)
    return _at_alias.value(conn, address) if found is None else found


def move(conn: Connection, source_id: int, address: str, *, newcomer: bool) -> int:
    """Gives a source another address: its feed was found elsewhere, or its server redirects for good.

    The old address stays an alias, so that following it finds the source. If another source has the address, a newcomer
    (nothing was read yet) is merged into it, and a source with posts stays as it is. Returns the id of the source that
    has the address, or of the source that stays.
    """
    other: int | None = _at.value(conn, address)
    if other is None:
        if not urls.same_server(_address.value(conn, source_id), address):
            _set_credential.once(conn, None, source_id)  # a password is only for the server that it was given for
        _add_alias.once(conn, source_id, source_id)
        _move.once(conn, address, urls.host_of(urls.split(address)), source_id)
        _drop_alias.once(conn, address)
        return source_id
    if other == source_id or not newcomer:
        return source_id
    _repoint_aliases.once(conn, other, source_id)
    _add_alias.once(conn, other, source_id)
    _move_followers.once(conn, other, source_id)
    _activate_unless_retired.once(conn, True, other)
    _drop.once(conn, source_id)
    return other
