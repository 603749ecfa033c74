"""Sources that turn out to live elsewhere: a site's address whose feed was found, or a permanent redirect.

The old address stays known as an alias, so that following it again finds the source. A newcomer whose feed is watched
already becomes one with it.
"""

from __future__ import annotations

from sqlalchemy import Connection

from headwater import urls
from headwater.store.sql import portable

_at = portable("SELECT id FROM sources WHERE address = ?")
_at_alias = portable("SELECT source_id FROM source_aliases WHERE address = ?")
_address = portable("SELECT address FROM sources WHERE id = ?")
_move = portable("UPDATE sources SET address = ?, host = ? WHERE id = ?")
_forget_credential = portable("UPDATE sources SET credential = NULL WHERE id = ?")
_alias = portable(
    "INSERT INTO source_aliases (address, source_id) SELECT address, ? FROM sources WHERE id = ? "
    "ON CONFLICT (address) DO UPDATE SET source_id = excluded.source_id"
)
_drop_alias = portable("DELETE FROM source_aliases WHERE address = ?")
_repoint = portable("UPDATE source_aliases SET source_id = ? WHERE source_id = ?")
_move_followers = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, title, folder, created_at)
    SELECT tenant_id, user_id, CAST(? AS BIGINT), title, folder, created_at FROM subscriptions WHERE source_id = ?
    ON CONFLICT DO NOTHING"""
)
_wake = portable("UPDATE sources SET active = ? WHERE id = ? AND status <> 'retired'")
_drop = portable("DELETE FROM sources WHERE id = ?")


def source_at(conn: Connection, address: str) -> int | None:
    """The source at this address, now or formerly."""
    rows = _at.all(conn, address) or _at_alias.all(conn, address)
    return rows[0][0] if rows else None


def move(conn: Connection, source_id: int, address: str, *, newcomer: bool) -> int:
    """Let the source live at `address`; returns the id of the source that does now.

    Where another source has the address, a newcomer (nothing read yet) merges into it; one with posts stays as it is.
    """
    rows = _at.all(conn, address)
    other = rows[0][0] if rows else source_id
    if other == source_id:
        if not rows:
            if not urls.same_server(_address.all(conn, source_id)[0][0], address):
                _forget_credential.once(conn, source_id)  # a password is for the server it was given for (H14)
            _alias.once(conn, source_id, source_id)
            _move.once(conn, address, urls.host_of(urls.split(address)), source_id)
            _drop_alias.once(conn, address)
        return source_id
    if not newcomer:
        return source_id
    _repoint.once(conn, other, source_id)
    _alias.once(conn, other, source_id)
    _move_followers.once(conn, other, source_id)
    _wake.once(conn, True, other)
    _drop.once(conn, source_id)
    return int(other)
