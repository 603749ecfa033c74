"""Images of posts: a record for each address, whichever posts show it, and which posts do.

waiting   to be downloaded, if downloading is on
saved     there is a file with its content
failed    given up after several attempts; a person may have it tried again
skipped   never downloaded, because of its type, size or address

An address has one record, so it is requested once; a content has one file, whatever its addresses. `queue` says which
images to download now, and `files` stores them.
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
from headwater.store.sql import columns, portable
from headwater.text import printable

STATES = ("waiting", "saved", "failed", "skipped")
MOST_OF_A_POST = 200  # further images of a post are ignored
LONGEST_ALT = 1000


class PostImages(NamedTuple):
    """A post that is written, and its images."""

    source_id: int
    post_id: int
    images: tuple[Image, ...]


class ImageRecord(NamedTuple):
    """What is known about an image. `path` is below the folder for images; `alt` is the post's text for it."""

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
    """How many images the posts of a source show, by state."""

    source_id: int
    source: str
    counts: Mapping[str, int]


class _NewImage(NamedTuple):
    """An image as it is recorded first. `key` is a hash: addresses are too long for an index."""

    key: bytes
    url: str
    host: str
    state: str
    error_code: str | None
    error: str | None
    next_try_at: datetime | None


_insert = portable(
    """INSERT INTO images (url_key, url, host, state, error_code, error, next_try_at, created_at)
    VALUES (:key, :url, :host, :state, :error_code, :error, :next_try_at, :now) ON CONFLICT (url_key) DO NOTHING"""
)
_link = portable(
    """INSERT INTO post_images (post_id, image_id, source_id, place, alt)
    SELECT ?, id, ?, ?, ? FROM images WHERE url_key = ? ON CONFLICT (post_id, image_id) DO NOTHING"""
)
_COLUMNS = columns(ImageRecord, "i").removesuffix(", i.alt")
_of_post = portable(
    f"""SELECT {_COLUMNS}, p.alt FROM post_images p JOIN images i ON i.id = p.image_id
    WHERE p.post_id = ? ORDER BY p.place, i.id""",
    row=ImageRecord,
)
_in_state = portable(
    f"SELECT {_COLUMNS}, '' FROM images i WHERE i.state = ? AND i.state <> 'waiting' ORDER BY i.id DESC LIMIT ?",
    row=ImageRecord,
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
_SEEN = """EXISTS (SELECT 1 FROM post_images p JOIN subscriptions s ON s.source_id = p.source_id
        WHERE p.image_id = i.id AND s.tenant_id = ? AND s.user_id = ?)"""
_counts_seen = portable(f"SELECT i.state, count(*) FROM images i WHERE {_SEEN} GROUP BY i.state")
_bytes_seen = portable(
    f"""SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT i.content_hash, i.size FROM images i
        WHERE i.state = 'saved' AND {_SEEN}) AS contents"""
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


def address_of(url: str) -> str:
    """Returns the address under which an image is recorded. Raises BadAddress if it cannot be requested."""
    return urls.without_credential(urls.canonical(url))[0]


def record(conn: Connection, shown: Sequence[PostImages], now: datetime) -> None:
    """Makes sure that every image of these posts has a record. Existing records stay as they are."""
    if not shown:
        return
    records: dict[bytes, _NewImage] = {}
    links = []
    for source_id, post_id, images in shown:
        for place, image in enumerate(images[:MOST_OF_A_POST]):
            new = _new_image(image.url, now)
            records[new.key] = new
            links.append((post_id, source_id, place, printable(image.alt)[:LONGEST_ALT], new.key))
    # In one order, so that two transactions do not wait for each other.
    _insert.many(conn, [{**records[key]._asdict(), "now": now} for key in sorted(records)])
    _link.many(conn, links)


def _new_image(url: str, now: datetime) -> _NewImage:
    try:
        address = address_of(url)
        host = urls.host_of(urls.split(address))
    except BadAddress as error:
        cut = printable(url)[: urls.MAX_LENGTH]
        return _NewImage(_key(cut), cut, "", "skipped", error.code, error.detail, next_try_at=None)
    return _NewImage(_key(address), address, host, "waiting", None, None, next_try_at=now)


def _key(address: str) -> bytes:
    return blake2b(address.encode(), digest_size=16).digest()


def of_post(conn: Connection, post_id: int) -> list[ImageRecord]:
    """Returns the images of a post, in the order in which it shows them."""
    return _of_post.all(conn, post_id)


def in_state(conn: Connection, state: str, limit: int) -> list[ImageRecord]:
    """Returns images that are saved, failed or skipped, the newest first."""
    return _in_state.all(conn, state, limit)


def file_of(conn: Connection, reader: Reader, content_hash: str) -> tuple[str, str] | None:
    """Returns path and type of this content, if a source that the reader follows shows it."""
    for path, type in _file_of.all(conn, reader.tenant_id, reader.user_id, content_hash):
        return path, type
    return None


def counts(conn: Connection) -> dict[str, int]:
    return dict.fromkeys(STATES, 0) | dict(_counts.all(conn))


def counts_seen(conn: Connection, reader: Reader) -> dict[str, int]:
    """Returns how many images the sources show that a reader follows, by state."""
    return dict.fromkeys(STATES, 0) | dict(_counts_seen.all(conn, reader.tenant_id, reader.user_id))


def bytes_seen(conn: Connection, reader: Reader) -> int:
    """Returns how much the files of these images take, each content once."""
    return int(_bytes_seen.value(conn, reader.tenant_id, reader.user_id))


def counts_by_source(conn: Connection) -> list[SourceImages]:
    """Returns how many images each source shows, by state. An image that a source shows twice counts once."""
    found: dict[int, SourceImages] = {}
    for source_id, source, state, count in _counts_by_source.all(conn):
        one = found.setdefault(source_id, SourceImages(source_id, source, dict.fromkeys(STATES, 0)))
        found[source_id] = one._replace(counts={**one.counts, state: count})
    return list(found.values())


def total_bytes(conn: Connection) -> int:
    """Returns the size of all files together."""
    return int(_total_bytes.value(conn))
