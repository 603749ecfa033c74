"""Images of posts, and how many there are."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time

_HASH = "9f2c4e7b1a6d8035c9e1f4a7b2d6c8e0134579bdf02468ace13579bdf02468ac"


class ImageJson(TypedDict):
    """An image, and what became of it."""

    id: Annotated[int, Example(31)]
    url: Annotated[str, Example("https://example.org/spring.jpg")]
    alt: Annotated[str, Example("The spring", "what the post says about it in words")]
    state: Annotated[str, Example("saved", "waiting, saved, failed or skipped")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    attempts: Annotated[int, Example(1)]
    tried_at: Annotated[Time | None, Example("2026-01-07T09:30:03Z")]
    error_code: Annotated[str | None, Example(None)]
    error: Annotated[str | None, Example(None, "why it is not saved")]
    saved_at: Annotated[Time | None, Example("2026-01-07T09:30:03Z")]
    content_hash: Annotated[str | None, Example(_HASH, "SHA-256 of its content; its file is /images/{content_hash}")]
    path: Annotated[
        str | None,
        Example(f"{_HASH[:2]}/{_HASH[2:]}.jpg", "where its file is, below the folder `images` of the data folder"),
    ]
    type: Annotated[str | None, Example("image/jpeg", "by its first bytes, not by what its server said")]
    size: Annotated[int | None, Example(48211, "in bytes")]
    width: Annotated[int | None, Example(1024)]
    height: Annotated[int | None, Example(683)]
    metadata: Annotated[dict[str, str], Example({"declared_type": "image/jpeg"}, "what its server said about it")]


class ImagesJson(TypedDict):
    """The images of a post, in the order in which it shows them."""

    post_id: Annotated[int, Example(4711)]
    images: list[ImageJson]


class ImageCountsJson(TypedDict):
    """How many images there are, by state, and how much their files take, each content once."""

    waiting: Annotated[int, Example(3)]
    saved: Annotated[int, Example(120)]
    failed: Annotated[int, Example(2)]
    skipped: Annotated[int, Example(5)]
    bytes: Annotated[int, Example(5120331)]
