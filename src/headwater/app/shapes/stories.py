"""Stories, their members, and the decisions that made them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time, example

_WHY = "same text but for the label breaking"


def _repeat_of(one: Any) -> int | None:
    return one.repeat_id if one.repeat_id != one.post_id else None


class MemberJson(TypedDict):
    """A post as a member of a story, and why it is one."""

    post_id: Annotated[int, Example(4711)]
    source_id: Annotated[int, Example(12)]
    source: Annotated[str, Example("Example Journal")]
    url: Annotated[str | None, Example("https://example.org/rivers")]
    title: Annotated[str, Example("Where rivers begin")]
    published_at: Annotated[Time, Example("2026-01-07T09:12:00Z", of="created_at")]
    read: Annotated[bool, Example(False)]
    rule: Annotated[str, Example("first", "first, exact, similar (a repeat) or story (the same event in other words)")]
    score: Annotated[float, Example(1.0, "0 to 1")]
    why: Annotated[str, Example("", "for people")]
    repeat_of: Annotated[int | None, Example(None, "the post whose text it repeats", of=_repeat_of)]


_REPEAT = example(MemberJson) | {
    "post_id": 4719,
    "source_id": 14,
    "source": "Example Wire",
    "url": "https://wire.example/rivers",
    "title": "BREAKING: Where rivers begin",
    "published_at": "2026-01-07T09:20:00Z",
    "rule": "exact",
    "why": _WHY,
    "repeat_of": 4711,
}


class StoryJson(TypedDict):
    """Posts about one event; title, address and time are those of the representative, the first member."""

    story_id: Annotated[str, Example("4711")]
    title: Annotated[str, Example("Where rivers begin", of="post.title")]
    url: Annotated[str | None, Example("https://example.org/rivers", of="post.url")]
    source: Annotated[str, Example("Example Journal", of="post.source")]
    published_at: Annotated[Time, Example("2026-01-07T09:12:00Z", of="post.created_at")]
    members: list[MemberJson]


class DecisionJson(TypedDict):
    """Where a post belongs; rule `first`: it stands alone, or begins a story."""

    post_id: Annotated[int, Example(4719)]
    story_id: Annotated[int, Example(4711)]
    repeat_of: Annotated[int | None, Example(4711, of=_repeat_of)]
    rule: Annotated[str, Example("exact")]
    score: Annotated[float, Example(1.0)]
    why: Annotated[str, Example(_WHY)]


class Run(TypedDict):
    """A run, which is over when it is answered."""

    task_id: Annotated[str, Example("0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e")]
    status: Annotated[Literal["completed", "proposed"], Example("completed", "proposed: nothing was written")]
    decided: Annotated[int, Example(2)]
    already_decided: Annotated[int, Example(0)]
    joined: list[DecisionJson]


class PastJson(TypedDict):
    """A decision about a story."""

    at: Annotated[Time, Example("2026-01-07T09:30:02Z", of="decided_at")]
    action: Annotated[str, Example("joined", "joined, parted or undone")]
    post_id: Annotated[int, Example(4719)]
    rule: Annotated[str | None, Example("exact")]
    score: Annotated[float | None, Example(1.0)]
    why: Annotated[str | None, Example(_WHY)]


class GroupJson(TypedDict):
    """A story: its members, the earliest first, and every decision about it."""

    group_id: Annotated[int, Example(4711, of="story_id")]
    representative: Annotated[int, Example(4711, of=lambda story: story.members[0].post_id)]
    members: Annotated[list[MemberJson], Example([example(MemberJson), _REPEAT])]
    history: list[PastJson]


class Done(TypedDict):
    """What was taken apart."""

    success: Annotated[bool, Example(True)]
    post_ids: Annotated[list[int], Example([4711, 4719], "the posts that stand apart now")]


class FoldingJson(TypedDict):
    """How the stream is folded for you."""

    level: Annotated[str, Example("stories", "off, repeats or stories")]
    threshold: Annotated[float, Example(0.0)]


class SourceFolding(TypedDict):
    """Whether posts of a source are folded for you."""

    fold: Annotated[bool, Example(True)]
