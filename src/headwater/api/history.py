"""`/api/posts/{id}/versions`: what a post said, and what it said at a given time (A3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from typing_extensions import TypedDict

from headwater.app.shapes import Time, iso, iso_or_none
from headwater.errors import BadInput, NotFound
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.store.posts import history
from headwater.store.posts.history import PostVersion

router = APIRouter(prefix="/api", tags=["posts"])


class VersionJson(TypedDict):
    """A text of a post, and when it was the post's text. `content` is safe HTML."""

    version: Annotated[int, Field(description="1 for the first text, one more for each edit")]
    url: str | None
    title: str
    content: str
    author: str | None
    valid_from: Annotated[Time, Field(description="when it was first seen")]
    valid_to: Annotated[Time | None, Field(description="when the next one was first seen; null: it still holds")]


class VersionsJson(TypedDict):
    """The texts of a post, the newest first."""

    post_id: int
    versions: list[VersionJson]


_VERSION: dict[str, Any] = {
    "version": 1,
    "url": "https://example.org/rivers",
    "title": "Where rivers begin",
    "content": "<p>Most rivers start as a spring.</p>",
    "author": "A. Writer",
    "valid_from": "2026-01-07T09:30:01Z",
    "valid_to": None,
}
EXAMPLES = {"VersionsJson": {"post_id": 4711, "versions": [_VERSION]}}


@router.get("/posts/{post_id}/versions", summary="What a post said, now and before")
async def list_versions(
    parts: WithParts,
    reader: Asking,
    post_id: Id,
    at: Annotated[
        str | None,
        Query(max_length=50, description="only the text of this time; a date alone is the end of that day, UTC"),
    ] = None,
) -> VersionsJson:
    """All its texts with the time in which each one held, the newest first."""
    found = chosen(post_id, await parts.db.read(history.versions, reader, post_id), at)
    return {"post_id": post_id, "versions": [version_json(one) for one in found]}


def chosen(post_id: int, found: Sequence[PostVersion], at: str | None) -> Sequence[PostVersion]:
    """All versions, or only the one that held at this time."""
    if not found:
        raise NotFound(f"There is no post {post_id}.")
    if at is None:
        return found
    held = history.version_at(found, moment_named(at))
    if held is None:
        raise NotFound(f"The post {post_id} was not known then. It was first seen at {iso(found[-1].valid_from)}.")
    return [held]


def moment_named(text: str) -> datetime:
    """A time in ISO 8601, UTC where no zone is given. A date alone is the end of that day."""
    text = text.strip()
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _time_named(text)
    return datetime.combine(day, time.max, UTC)


def _time_named(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{text} is no time. Write 2026-01-07, or 2026-01-07T09:00.") from error


def version_json(one: PostVersion) -> VersionJson:
    return {
        "version": one.version,
        "url": one.url,
        "title": one.title,
        "content": one.content,
        "author": one.author,
        "valid_from": iso(one.valid_from),
        "valid_to": iso_or_none(one.valid_to),
    }
