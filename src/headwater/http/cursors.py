"""Page cursors: opaque to clients, a few numbers to us."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from headwater.errors import BadCursor
from headwater.store.posts.stream import Story, StreamPosition, StreamPost

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ADVICE = "Use a next_cursor that this server gave you, unchanged, or leave it out to start from the newest."


class HasId(Protocol):
    @property
    def id(self) -> int: ...


def cut(found: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """Returns one page of what was found, and the cursor of the next one. One more than `limit` was asked for."""
    return found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None


def of_post(post: StreamPost) -> str:
    return _encode((post.created_at - _EPOCH) // _MICROSECOND, post.id)


def of_story(story: Story) -> str:
    return of_post(story.post)


def of_row(row: HasId) -> str:
    """Returns the cursor of a list that goes by ids."""
    return _encode(row.id)


def position(cursor: str | None) -> StreamPosition | None:
    """Returns where a page of posts or stories ended."""
    if cursor is None:
        return None
    microseconds, post_id = _decode(cursor, 2)
    try:
        return StreamPosition(_EPOCH + timedelta(microseconds=microseconds), post_id)
    except OverflowError as error:
        raise BadCursor(_ADVICE) from error


def id_in(cursor: str | None) -> int | None:
    """Returns where a page of a list that goes by ids ended."""
    return None if cursor is None else _decode(cursor, 1)[0]


def _encode(*numbers: int) -> str:
    return base64.urlsafe_b64encode(struct.pack(f">{len(numbers)}q", *numbers)).decode().rstrip("=")


def _decode(cursor: str, count: int) -> tuple[int, ...]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        numbers: tuple[int, ...] = struct.unpack(f">{count}q", packed)
    except (UnicodeEncodeError, binascii.Error, struct.error) as error:
        raise BadCursor(_ADVICE) from error
    return numbers
