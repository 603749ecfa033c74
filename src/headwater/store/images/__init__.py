"""Pictures that posts show: a record for each address, whoever shows it, and which posts do.

waiting   to be downloaded, if downloading is on
saved     there is a file with its content
failed    tried as often as it is worth; a person may have it tried again
skipped   never downloaded: a kind, a size or an address that is not taken

One address has one record, so it is asked for once; one content has one file, whatever its addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import urls
from headwater.errors import BadAddress
from headwater.model import Image, Reader
from headwater.store.sql import json_value, moment, moment_or_none, portable
from headwater.text import printable

STATES = ("waiting", "saved", "failed", "skipped")
MOST_OF_A_POST = 200  # a page that shows more is no post
LONGEST_ALT = 1000

_insert = portable(
    """INSERT INTO images (url_key, url, host, state, error_code, error, created_at, next_try_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (url_key) DO NOTHING"""
)
_show = portable(
    """INSERT INTO post_images (post_id, image_id, source_id, place, alt)
    SELECT ?, id, ?, ?, ? FROM images WHERE url_key = ? ON CONFLICT (post_id, image_id) DO NOTHING"""
)
_COLUMNS = """i.id, i.url, i.state, i.created_at, i.attempts, i.tried_at, i.error_code, i.error, i.saved_at,
    i.content_hash, i.path, i.type, i.size, i.width, i.height, i.metadata"""
_of_post = portable(
    f"""SELECT {_COLUMNS}, p.alt FROM post_images p JOIN images i ON i.id = p.image_id
    WHERE p.post_id = ? ORDER BY p.place, i.id"""
)
_settled_as = portable(
    f"SELECT {_COLUMNS}, '' FROM images i WHERE i.state = ? AND i.state <> 'waiting' ORDER BY i.id DESC LIMIT ?"
)
_file_of = portable(
    """SELECT i.path, i.type FROM images i JOIN post_images p ON p.image_id = i.id
    JOIN subscriptions s ON s.source_id = p.source_id AND s.tenant_id = ? AND s.user_id = ?
    WHERE i.content_hash = ? LIMIT 1"""
)
_counts = portable(
    """SELECT 'waiting', count(*) FROM images WHERE state = 'waiting'
    UNION ALL SELECT state, count(*) FROM images WHERE state <> 'waiting' GROUP BY state"""
)
_counts_by_source = portable(
    """SELECT s.id, CASE WHEN s.title <> '' THEN s.title ELSE s.address END, i.state, count(DISTINCT i.id)
    FROM post_images p JOIN images i ON i.id = p.image_id JOIN sources s ON s.id = p.source_id
    GROUP BY s.id, s.title, s.address, i.state ORDER BY s.id"""
)
_total_bytes = portable(
    """SELECT COALESCE(SUM(size), 0) FROM
        (SELECT MAX(size) AS size FROM images WHERE content_hash IS NOT NULL GROUP BY content_hash) AS files"""
)


class PostImages(NamedTuple):
    """A post that shows pictures, as it is written."""

    source_id: int
    post_id: int
    images: tuple[Image, ...]


class ImageRecord(NamedTuple):
    """What is known of a picture. `path` is that of its file below the folder for pictures; `alt` is the post's."""

    id: int
    url: str
    state: str
    created_at: datetime
    attempts: int
    tried_at: datetime | None
    error_code: str | None
    error: str | None
    saved_at: datetime | None
    content_hash: str | None
    path: str | None
    type: str | None
    size: int | None
    width: int | None
    height: int | None
    metadata: Mapping[str, Any]
    alt: str


class SourceImages(NamedTuple):
    """How many pictures the posts of a source show, by state."""

    source_id: int
    source: str
    counts: Mapping[str, int]


def address_of(url: str) -> str:
    """The address under which a picture is known. Raises BadAddress for one that cannot be asked for."""
    return urls.without_credential(urls.canonical(url))[0]


def record(conn: Connection, shown: Sequence[PostImages], now: datetime) -> None:
    """Make sure that there is a record of every picture that these posts show. What is known already stays as it is."""
    if not shown:
        return
    records, uses = {}, []
    for source_id, post_id, images in shown:
        for place, image in enumerate(images[:MOST_OF_A_POST]):
            row = _new_row(image.url, now)
            records[row[0]] = row
            uses.append((post_id, source_id, place, printable(image.alt)[:LONGEST_ALT], row[0]))
    # In one order, so that two transactions do not wait for each other.
    _insert.many(conn, [records[key] for key in sorted(records)])
    _show.many(conn, uses)


def _new_row(url: str, now: datetime) -> tuple[Any, ...]:
    try:
        address = address_of(url)
        host = urls.host_of(urls.split(address))
    except BadAddress as error:
        cut = printable(url)[: urls.MAX_LENGTH]
        return (_key(cut), cut, "", "skipped", error.code, error.detail, now, None)
    return (_key(address), address, host, "waiting", None, None, now, now)


def _key(address: str) -> bytes:
    return blake2b(address.encode(), digest_size=16).digest()


def of_post(conn: Connection, post_id: int) -> list[ImageRecord]:
    """The pictures of a post, in the order in which it shows them."""
    return [_record(row) for row in _of_post.all(conn, post_id)]


def in_state(conn: Connection, state: str, limit: int) -> list[ImageRecord]:
    """Those that are saved, failed or skipped, the newest first."""
    return [_record(row) for row in _settled_as.all(conn, state, limit)]


def file_of(conn: Connection, reader: Reader, content_hash: str) -> tuple[str, str] | None:
    """Path and type of this content, if a source that the reader follows shows it."""
    rows = _file_of.all(conn, reader.tenant_id, reader.user_id, content_hash)
    return (rows[0][0], rows[0][1]) if rows else None


def counts(conn: Connection) -> dict[str, int]:
    return dict.fromkeys(STATES, 0) | dict(_counts.all(conn))


def counts_by_source(conn: Connection) -> list[SourceImages]:
    """For each source whose posts show pictures, how many there are in each state; one shown twice counts once."""
    found: dict[int, SourceImages] = {}
    for source_id, source, state, count in _counts_by_source.all(conn):
        one = found.setdefault(source_id, SourceImages(source_id, source, dict.fromkeys(STATES, 0)))
        found[source_id] = one._replace(counts={**one.counts, state: count})
    return list(found.values())


def total_bytes(conn: Connection) -> int:
    """How much the files take, each counted once."""
    return int(_total_bytes.all(conn)[0][0])


def _record(row: tuple[Any, ...]) -> ImageRecord:
    return ImageRecord(*row)._replace(
        created_at=moment(row[3]),
        tried_at=moment_or_none(row[5]),
        saved_at=moment_or_none(row[8]),
        metadata=json_value(row[15]),
    )
