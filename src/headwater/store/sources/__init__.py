"""Sources and who follows them.

The rest of the package: `leases` says which source is visited now, `schedule` what people want visited and how often,
`limits` how much a server may be asked, `pool` how often a source is visited, and `hubs` which sources are pushed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.model import Credential, Reader
from headwater.store.row_security import of_everybody
from headwater.store.sources import schedule
from headwater.store.sql import Prepared, json_text, json_value, portable

SILENT_AFTER = timedelta(days=60)


class WatchedSource(NamedTuple):
    """A source as a reader sees it: what it is, how it is doing, when it was and will be checked.

    `refresh_interval` is what the reader chose, in minutes.
    """

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
    refresh_interval: int | None = None
    has_password: bool = False


class Added(NamedTuple):
    """`changed`: the source was known, and is read in another way from now on. `revived`: it was retired until now."""

    source_id: int
    new_source: bool
    new_subscription: bool
    changed: bool = False
    revived: bool = False


class WantedSource(NamedTuple):
    """A source to follow, and the folder and title that the reader gives it."""

    kind: str
    address: str
    host: str
    credential: Credential | None = None
    settings: Mapping[str, Any] = {}
    folder: str | None = None
    title: str | None = None
    own_title: str = ""  # which the source's first visit replaces

    @property
    def identity(self) -> tuple[str, str]:
        """What the source is. Others than this name and password at the same address are another source."""
        return self.address, self.credential.key if self.credential else ""


class Followed(NamedTuple):
    """That a user follows a source."""

    tenant_id: int
    user_id: int
    source_id: int


_OWN = "tenant_id = ? AND user_id = ?"
_insert_source = portable(
    """INSERT INTO sources (kind, address, credential_key, credential, host, title, settings, created_at, next_check_at)
    VALUES (:kind, :address, :credential_key, :credential, :host, :title, :settings, :now, :now)
    ON CONFLICT (address, credential_key) DO NOTHING"""
)
_subscribe = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, folder, title, created_at)
    VALUES (:tenant_id, :user_id, :source_id, :folder, :title, :now) ON CONFLICT DO NOTHING"""
)
_how_read = portable("SELECT kind, settings FROM sources WHERE id = ?")
_read_as = portable(
    """UPDATE sources SET kind = ?, settings = ?, note = '', etag = NULL, last_modified = NULL, body_hash = NULL,
        validated_at = NULL, next_check_at = ? WHERE id = ?"""
)
_drop_credential = portable("UPDATE sources SET credential = NULL, credential_key = '' WHERE id = ?")
_unkeyed = portable("SELECT id, credential FROM sources WHERE credential_key LIKE ?")
_set_key = portable(
    """UPDATE sources SET credential_key = ? WHERE id = ? AND NOT EXISTS
        (SELECT 1 FROM sources o WHERE o.address = sources.address AND o.credential_key = ?)"""
)
_key_aliases = portable("UPDATE source_aliases SET credential_key = ? WHERE source_id = ?")
_activate = portable("UPDATE sources SET active = ?, next_check_at = ? WHERE id IN (?) AND NOT active")
_revive = portable(
    "UPDATE sources SET active = ?, next_check_at = ?, asked_at = ? WHERE id = ? AND NOT active AND status = 'retired'"
)
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
_subscribed_among = portable(f"SELECT source_id FROM subscriptions WHERE {_OWN} AND source_id IN (?)")
_count_followed = portable(f"SELECT count(*) FROM subscriptions WHERE {_OWN}")
_followed_addresses = portable(
    """SELECT s.address, s.credential_key FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = ? AND f.user_id = ?"""
)
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

_at = portable("SELECT id FROM sources WHERE address = ? AND credential_key = ?")
_at_alias = portable("SELECT source_id FROM source_aliases WHERE address = ? AND credential_key = ?")
_at_any = portable("SELECT address, credential_key, id FROM sources WHERE address IN (?)")
_aliases_among = portable("SELECT address, credential_key, source_id FROM source_aliases WHERE address IN (?)")
_followed_at = portable(
    """SELECT s.id FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = ? AND f.user_id = ? AND s.address = ? ORDER BY s.credential_key"""
)
_followed_at_alias = portable(
    """SELECT a.source_id FROM source_aliases a JOIN subscriptions f ON f.source_id = a.source_id
    WHERE f.tenant_id = ? AND f.user_id = ? AND a.address = ? ORDER BY a.credential_key"""
)
_identity = portable("SELECT address, credential_key FROM sources WHERE id = ?")
_move = portable("UPDATE sources SET address = ?, host = ? WHERE id = ?")
_add_alias = portable(
    """INSERT INTO source_aliases (address, credential_key, source_id)
    SELECT address, credential_key, ? FROM sources WHERE id = ?
    ON CONFLICT (address, credential_key) DO UPDATE SET source_id = excluded.source_id"""
)
_drop_alias = portable("DELETE FROM source_aliases WHERE address = ? AND credential_key = ?")
_repoint_aliases = portable("UPDATE source_aliases SET source_id = ? WHERE source_id = ?")
_move_followers = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, title, folder, created_at, interval_seconds)
    SELECT tenant_id, user_id, CAST(? AS BIGINT), title, folder, created_at, interval_seconds
    FROM subscriptions WHERE source_id = ? ON CONFLICT DO NOTHING"""
)
_activate_unless_retired = portable("UPDATE sources SET active = ? WHERE id = ? AND status <> 'retired'")
_move_tasks = portable("UPDATE visit_tasks SET source_id = ? WHERE source_id = ?")
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
    credential: Credential | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Added:
    """Follows a source, which is created if it is new, and is due at once. Doing it twice changes nothing.

    A source that is retired is visited again.
    """
    wanted = WantedSource(kind, address, host, credential, settings or {}, folder, custom_title, title)
    [added] = add_all(conn, reader, [wanted], now)
    revived = not added.new_source and bool(_revive.once(conn, True, now, now, added.source_id))
    return added._replace(revived=revived)


def add_all(conn: Connection, reader: Reader, wanted: Sequence[WantedSource], now: datetime) -> list[Added]:
    """Follows these sources, with a few statements for all of them. Returns what was done about each."""
    missing = {one.identity: one for one in reversed(wanted)}
    known = _sources_at(conn, [one.address for one in wanted])
    missing = {identity: one for identity, one in missing.items() if identity not in known}
    _insert_source.many(conn, [_inserted(one, now) for one in reversed(missing.values())])
    if missing:
        known |= _sources_at(conn, [address for address, _ in missing])
    ids = [known[one.identity] for one in wanted]
    had = set(_subscribed_among.values(conn, reader.tenant_id, reader.user_id, ids))
    added = []
    for one, source_id in zip(wanted, ids, strict=True):
        is_new = missing.pop(one.identity, None) is not None
        added.append(Added(source_id, is_new, source_id not in had))
        had.add(source_id)
    _subscribe.many(
        conn,
        [
            {
                **reader.key,
                "source_id": done.source_id,
                "folder": one.folder,
                "title": one.title,
                "now": now,
            }
            for one, done in zip(wanted, added, strict=True)
            if done.new_subscription
        ],
    )
    gained = [done.source_id for done in added if done.new_subscription and not done.new_source]
    if gained:
        _activate.once(conn, True, now, gained)
        schedule.apply_choices(conn, gained)
    return added


def _sources_at(conn: Connection, addresses: Sequence[str]) -> dict[tuple[str, str], int]:
    """Returns the sources that have these addresses, or had them, by address and key."""
    found = _aliases_among.all(conn, list(addresses)) + _at_any.all(conn, list(addresses))
    return {(address, key): source_id for address, key, source_id in found}


def _inserted(wanted: WantedSource, now: datetime) -> dict[str, Any]:
    address, key = wanted.identity
    return {
        "kind": wanted.kind,
        "address": address,
        "credential_key": key,
        "credential": wanted.credential.sealed if wanted.credential else None,
        "host": wanted.host,
        "title": wanted.own_title,
        "settings": json_text(dict(wanted.settings)),
        "now": now,
    }


def without_key(conn: Connection) -> list[tuple[int, bytes]]:
    """Returns sources with their passwords that were stored before keys were derived from passwords."""
    return [(source_id, bytes(sealed)) for source_id, sealed in _unkeyed.all(conn, "unknown:%")]


def set_key(conn: Connection, source_id: int, key: str) -> None:
    """Sets the key of a source, unless another one has it already."""
    if _set_key.once(conn, key, source_id, key):
        _key_aliases.once(conn, key, source_id)


def kind_of(conn: Connection, source_id: int) -> str:
    """Returns the kind with which a source is read."""
    [(kind, _)] = _how_read.all(conn, source_id)
    return str(kind)


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
    schedule.apply_choices(conn, [source_id])
    with of_everybody(conn):
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
        s.consecutive_failures, s.failing_since, s.last_error_code, s.last_error, s.truncated, s.note, s.gap_at,
        f.interval_seconds / 60, s.credential IS NOT NULL
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
    rows = statement.all(conn, **reader.key, now=now, **wanted)
    return [row._replace(status="silent") if _is_silent(row, now) else row for row in rows]


def _is_silent(source: WatchedSource, now: datetime) -> bool:
    """Returns whether a source answers but has published nothing for long: it may be dead without saying so."""
    newest = source.newest_post_at
    return source.status == "ok" and newest is not None and now - newest > SILENT_AFTER


def find(conn: Connection, reader: Reader, name: str) -> list[int]:
    """Returns the ids of followed sources by their address, a former address or an id.

    Several sources have one address if they have different passwords. The one without a password is the first.
    """
    if name.isdigit():
        return _subscribed.values(conn, reader.tenant_id, reader.user_id, int(name))
    found = _followed_at.values(conn, reader.tenant_id, reader.user_id, name)
    return found or _followed_at_alias.values(conn, reader.tenant_id, reader.user_id, name)


def followed_ids(conn: Connection, reader: Reader) -> list[int]:
    return _followed_ids.values(conn, reader.tenant_id, reader.user_id)


def count_followed(conn: Connection, reader: Reader) -> int:
    return int(_count_followed.value(conn, reader.tenant_id, reader.user_id))


def count_new(conn: Connection, reader: Reader, wanted: Sequence[WantedSource]) -> int:
    """Returns how many of these sources the reader does not follow yet. Former addresses count as new."""
    followed = set(_followed_addresses.all(conn, reader.tenant_id, reader.user_id))
    return len({one.identity for one in wanted} - followed)


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


def source_at(conn: Connection, address: str, credential_key: str = "") -> int | None:
    """Returns the source that has this address, or had it, with this name and password."""
    found: int | None = _at.value(conn, address, credential_key)
    return _at_alias.value(conn, address, credential_key) if found is None else found


def move(conn: Connection, source_id: int, address: str, *, newcomer: bool) -> int:
    """Gives a source another address: its feed was found elsewhere, or its server redirects for good.

    The old address stays an alias, so that following it finds the source. If another source has the address, a newcomer
    (nothing was read yet) is merged into it, and a source with posts stays as it is. Returns the id of the source that
    has the address, or of the source that stays.
    """
    [(before, key)] = _identity.all(conn, source_id)
    # A password is only for the server that it was given for.
    new_key = key if urls.same_server(before, address) else ""
    other: int | None = _at.value(conn, address, new_key)
    if other is None:
        _add_alias.once(conn, source_id, source_id)
        if key and not new_key:
            _drop_credential.once(conn, source_id)
        _move.once(conn, address, urls.host_of(urls.split(address)), source_id)
        _drop_alias.once(conn, address, new_key)
        return source_id
    if other == source_id or not newcomer:
        return source_id
    _repoint_aliases.once(conn, other, source_id)
    _add_alias.once(conn, other, source_id)
    _move_followers.once(conn, other, source_id)
    _move_tasks.once(conn, other, source_id)
    schedule.apply_choices(conn, [other])
    _activate_unless_retired.once(conn, True, other)
    _drop.once(conn, source_id)
    return other
