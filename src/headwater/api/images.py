"""`/api/posts/{id}/images` and `/api/images`: the pictures that posts show, and what became of them (B7, B9)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from typing_extensions import TypedDict

from headwater.app.shapes import Time, iso, iso_or_none
from headwater.errors import NotFound
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.store import images
from headwater.store.images import ImageRecord
from headwater.store.posts import stream

router = APIRouter(prefix="/api", tags=["images"])


class ImageJson(TypedDict):
    """A picture, and what became of it."""

    id: int
    url: str
    alt: Annotated[str, Field(description="what the post says about it in words")]
    state: Annotated[str, Field(description="waiting, saved, failed or skipped")]
    created_at: Time
    attempts: int
    tried_at: Time | None
    error_code: str | None
    error: Annotated[str | None, Field(description="why it is not saved")]
    saved_at: Time | None
    content_hash: Annotated[str | None, Field(description="SHA-256 of its content; its file is /images/{content_hash}")]
    path: Annotated[str | None, Field(description="where its file is, below the folder `images` of the data folder")]
    type: Annotated[str | None, Field(description="by its first bytes, not by what its server said")]
    size: Annotated[int | None, Field(description="in bytes")]
    width: int | None
    height: int | None
    metadata: Annotated[dict[str, str], Field(description="what its server said about it")]


class ImagesJson(TypedDict):
    """The pictures of a post, in the order in which it shows them."""

    post_id: int
    images: list[ImageJson]


class ImageCountsJson(TypedDict):
    """How many pictures there are, by state, and how much their files take, each content once."""

    waiting: int
    saved: int
    failed: int
    skipped: int
    bytes: int


_HASH = "9f2c4e7b1a6d8035c9e1f4a7b2d6c8e0134579bdf02468ace13579bdf02468ac"
_IMAGE: dict[str, Any] = {
    "id": 31,
    "url": "https://example.org/spring.jpg",
    "alt": "The spring",
    "state": "saved",
    "created_at": "2026-01-07T09:30:01Z",
    "attempts": 1,
    "tried_at": "2026-01-07T09:30:03Z",
    "error_code": None,
    "error": None,
    "saved_at": "2026-01-07T09:30:03Z",
    "content_hash": _HASH,
    "path": f"{_HASH[:2]}/{_HASH[2:]}.jpg",
    "type": "image/jpeg",
    "size": 48211,
    "width": 1024,
    "height": 683,
    "metadata": {"declared_type": "image/jpeg"},
}
EXAMPLES = {
    "ImagesJson": {"post_id": 4711, "images": [_IMAGE]},
    "ImageCountsJson": {"waiting": 3, "saved": 120, "failed": 2, "skipped": 5, "bytes": 5120331},
}


@router.get("/posts/{post_id}/images", summary="The pictures of a post")
async def list_images(parts: WithParts, reader: Asking, post_id: Id) -> ImagesJson:
    """With the address of each, whether it is saved and where, or why not."""
    if await parts.db.read(stream.one_post, reader, post_id) is None:
        raise NotFound(f"There is no post {post_id}.")
    found = await parts.db.read(images.of_post, post_id)
    return {"post_id": post_id, "images": [image_json(one) for one in found]}


@router.get("/images", summary="How many pictures are saved, wait or failed")
async def count_images(parts: WithParts) -> ImageCountsJson:
    by_state = await parts.db.read(images.counts)
    return {
        "waiting": by_state["waiting"],
        "saved": by_state["saved"],
        "failed": by_state["failed"],
        "skipped": by_state["skipped"],
        "bytes": await parts.db.read(images.total_bytes),
    }


def image_json(one: ImageRecord) -> ImageJson:
    return {
        "id": one.id,
        "url": one.url,
        "alt": one.alt,
        "state": one.state,
        "created_at": iso(one.created_at),
        "attempts": one.attempts,
        "tried_at": iso_or_none(one.tried_at),
        "error_code": one.error_code,
        "error": one.error,
        "saved_at": iso_or_none(one.saved_at),
        "content_hash": one.content_hash,
        "path": one.path,
        "type": one.type,
        "size": one.size,
        "width": one.width,
        "height": one.height,
        "metadata": dict(one.metadata),
    }
