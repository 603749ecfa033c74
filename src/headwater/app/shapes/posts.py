"""Posts and their versions."""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time


class PostJson(TypedDict):
    """What a source published, and what you did with it. `content` is safe HTML."""

    id: Annotated[int, Example(4711)]
    source_id: Annotated[int, Example(12)]
    source: Annotated[str, Example("Example Journal")]
    url: Annotated[str | None, Example("https://example.org/rivers")]
    title: Annotated[str, Example("Where rivers begin")]
    content: Annotated[str, Example("<p>Most rivers start as a spring.</p>")]
    author: Annotated[str | None, Example("A. Writer")]
    published_at: Annotated[Time, Example("2026-01-07T09:12:00Z", of="created_at")]
    fetched_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    version: Annotated[int, Example(1, "1 for the first text, one more for each edit")]
    lang: Annotated[str | None, Example("en")]
    score: Annotated[int | None, Example(None)]
    num_comments: Annotated[int | None, Example(None)]
    enclosures: Annotated[list[dict[str, Any]], Example([], of=lambda post: post.extra.get("enclosures", []))]
    read: Annotated[bool, Example(False)]
    starred: Annotated[bool, Example(True)]


class Marked(TypedDict):
    marked: Annotated[int, Example(2)]


class VersionJson(TypedDict):
    """A text of a post, and when it was the post's text. `content` is safe HTML."""

    version: Annotated[int, Example(1, "1 for the first text, one more for each edit")]
    url: Annotated[str | None, Example("https://example.org/rivers")]
    title: Annotated[str, Example("Where rivers begin")]
    content: Annotated[str, Example("<p>Most rivers start as a spring.</p>")]
    author: Annotated[str | None, Example("A. Writer")]
    valid_from: Annotated[Time, Example("2026-01-07T09:30:01Z", "when it was first seen")]
    valid_to: Annotated[Time | None, Example(None, "when the next one was first seen; null: it is the present one")]


class VersionsJson(TypedDict):
    """The texts of a post, the newest first."""

    post_id: Annotated[int, Example(4711)]
    versions: list[VersionJson]
