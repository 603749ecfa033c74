"""Images of posts: what became of them, their files, and trying again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.app import posts
from headwater.errors import NotFound
from headwater.model import Reader
from headwater.store import images
from headwater.store.images import STATES as STATES
from headwater.store.images import ImageRecord, SourceImages, files, queue
from headwater.store.images import address_of as address_of


class ImageCounts(NamedTuple):
    """How many images there are by state, and how much their files take, each content once."""

    waiting: int
    saved: int
    failed: int
    skipped: int
    bytes: int


def of_post(conn: Connection, reader: Reader, post_id: int) -> list[ImageRecord]:
    """Returns the images of a post, in the order in which it shows them."""
    posts.one(conn, reader, post_id)
    return images.of_post(conn, post_id)


def counts(conn: Connection) -> ImageCounts:
    return ImageCounts(**images.counts(conn), bytes=images.total_bytes(conn))


def counts_by_source(conn: Connection) -> list[SourceImages]:
    return images.counts_by_source(conn)


def settled(conn: Connection, state: str, limit: int) -> list[ImageRecord]:
    """Returns images that failed or were skipped, the newest first."""
    return images.in_state(conn, state, limit)


def retry(conn: Connection, now: datetime) -> int:
    """Has all failed images tried again. Returns how many."""
    return queue.retry_failed(conn, now)


def find_file(conn: Connection, reader: Reader, content_hash: str) -> tuple[str, str]:
    """Returns the path and the type of an image, if a source that the reader follows shows it."""
    found = images.file_of(conn, reader, content_hash)
    if found is None:
        raise NotFound("There is no such image, or you follow no source that shows it.")
    return found


def load(folder: Path, path: str) -> bytes:
    """Reads the file of an image."""
    content = files.load(folder, path)
    if content is None:
        raise NotFound("The file of this image is missing. It is downloaded again.")
    return content
