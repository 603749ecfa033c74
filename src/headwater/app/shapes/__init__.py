"""How sources, posts and stories look as JSON, in every way out: the HTTP API and `--json` on the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from headwater.store.posts.stream import Story, StreamPost
from headwater.store.sources import PastVisit, WatchedSource
from headwater.store.stories.folded import ShownMember

T = TypeVar("T")
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class SourceJson(TypedDict):
    """Something watched, how it is doing, and when it was and will be checked."""

    id: int
    kind: str
    address: str
    title: str
    folder: str | None
    site_url: str | None
    status: Annotated[str, Field(description="new, ok, silent, empty, failing, blocked or retired")]
    active: Annotated[bool, Field(description="false: it is no longer visited")]
    created_at: Time
    last_crawled_at: Time | None
    next_check_at: Time
    checking: Annotated[bool, Field(description="true: it is being visited at this moment")]
    waits_for: Annotated[str | None, Field(description="why a due source is not visited yet")]
    newest_post_at: Time | None
    interval_seconds: int | None
    consecutive_failures: int
    failing_since: Time | None
    last_error_code: str | None
    last_error: str | None
    truncated: Annotated[bool, Field(description="true: its page has more, or broke off; only its first part is read")]
    note: Annotated[str, Field(description="what to know about how it is read; empty: nothing")]
    gap_at: Annotated[Time | None, Field(description="when posts last went by unseen between two visits")]


class VisitJson(TypedDict):
    """One crawl of a source."""

    started_at: Time
    seconds: float
    outcome: Annotated[str, Field(description="ok, unchanged, empty or failed")]
    http_status: int | None
    bytes: int
    new: int
    updated: int
    duplicates: int
    truncated: bool
    gap: Annotated[bool, Field(description="true: posts went by unseen since the visit before")]
    error: str | None


class SourceDetailJson(SourceJson):
    """A source with the number of its posts and its latest visits."""

    pushed_since: Annotated[Time | None, Field(description="since when a hub pushes it (WebSub); null: it is polled")]
    posts: int
    visits: list[VisitJson]


class PostJson(TypedDict):
    """What a source published, and what you did with it. `content` is safe HTML."""

    id: int
    source_id: int
    source: str
    url: str | None
    title: str
    content: str
    author: str | None
    published_at: Time
    fetched_at: Time
    version: Annotated[int, Field(description="1 for the first text, one more for each edit")]
    lang: str | None
    score: int | None
    num_comments: int | None
    enclosures: list[dict[str, Any]]
    read: bool
    starred: bool


class MemberJson(TypedDict):
    """A post as part of a story, and why it is one."""

    post_id: int
    source_id: int
    source: str
    url: str | None
    title: str
    published_at: Time
    read: bool
    rule: Annotated[str, Field(description="first, exact, similar (a repeat) or story (the same event in other words)")]
    score: Annotated[float, Field(description="0 to 1")]
    why: Annotated[str, Field(description="for people")]
    repeat_of: Annotated[int | None, Field(description="the post whose text it repeats")]


class StoryJson(TypedDict):
    """Posts about one event; title, address and time are those of the representative, the first member."""

    story_id: str
    title: str
    url: str | None
    source: str
    published_at: Time
    members: list[MemberJson]


class PageJson(TypedDict, Generic[T]):
    """One page of a list. `next_cursor` asks for the next one; null: this was the last."""

    items: list[T]
    next_cursor: Annotated[str | None, Field(examples=["AAZIyr8jOAAAAAAAAAASZw"])]


class ProblemJson(TypedDict):
    """Problem details (RFC 9457). More members may follow, such as `errors` (field, message) or `source_id`."""

    type: Annotated[str, Field(examples=["urn:headwater:problem:bad_address"])]
    title: Annotated[str, Field(examples=["This address cannot be used"])]
    status: Annotated[int, Field(examples=[422])]
    detail: Annotated[str, Field(examples=["Only http:// and https:// addresses can be used."])]
    code: Annotated[str, Field(examples=["bad_address"])]


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def source_json(source: WatchedSource) -> SourceJson:
    return {
        "id": source.id,
        "kind": source.kind,
        "address": source.address,
        "title": source.title,
        "folder": source.folder,
        "site_url": source.site_url,
        "status": source.status,
        "active": source.active,
        "created_at": iso(source.created_at),
        "last_crawled_at": iso_or_none(source.last_crawled_at),
        "next_check_at": iso(source.next_check_at),
        "checking": source.checking,
        "waits_for": source.waits_for,
        "newest_post_at": iso_or_none(source.newest_post_at),
        "interval_seconds": source.interval_seconds,
        "consecutive_failures": source.consecutive_failures,
        "failing_since": iso_or_none(source.failing_since),
        "last_error_code": source.last_error_code,
        "last_error": source.last_error,
        "truncated": source.truncated,
        "note": source.note,
        "gap_at": iso_or_none(source.gap_at),
    }


def visit_json(visit: PastVisit) -> VisitJson:
    return {
        "started_at": iso(visit.started_at),
        "seconds": visit.seconds,
        "outcome": visit.outcome,
        "http_status": visit.http_status,
        "bytes": visit.bytes,
        "new": visit.new,
        "updated": visit.updated,
        "duplicates": visit.duplicates,
        "truncated": visit.truncated,
        "gap": visit.gap,
        "error": visit.error,
    }


def post_json(post: StreamPost) -> PostJson:
    return {
        "id": post.id,
        "source_id": post.source_id,
        "source": post.source,
        "url": post.url,
        "title": post.title,
        "content": post.content,
        "author": post.author,
        "published_at": iso(post.created_at),
        "fetched_at": iso(post.fetched_at),
        "version": post.version,
        "lang": post.lang,
        "score": post.score,
        "num_comments": post.num_comments,
        "enclosures": post.extra.get("enclosures", []),
        "read": post.read,
        "starred": post.starred,
    }


def story_json(story: Story) -> StoryJson:
    first = story.post
    return {
        "story_id": story.story_id,
        "title": first.title,
        "url": first.url,
        "source": first.source,
        "published_at": iso(first.created_at),
        "members": [member_json(member) for member in story.members],
    }


def member_json(member: ShownMember) -> MemberJson:
    return {
        "post_id": member.post_id,
        "source_id": member.source_id,
        "source": member.source,
        "url": member.url,
        "title": member.title,
        "published_at": iso(member.created_at),
        "read": member.read,
        "rule": member.rule,
        "score": member.score,
        "why": member.why,
        "repeat_of": member.repeat_id if member.repeat_id != member.post_id else None,
    }


def iso_or_none(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
