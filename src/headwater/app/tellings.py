"""How a story and its tellings look as JSON: members, what is new, and where tellings disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.fleet.signals import SignalJson
from headwater.app.shapes import Example, Time, example
from headwater.dedup.first import Appearance, first
from headwater.store.posts import threads
from headwater.store.stories import folded, tellings
from headwater.store.stories.folded import ShownMember
from headwater.store.stories.tellings import TellingNews
from headwater.text import excerpt

MOST_COUNTED = folded.MOST_COUNTED
MOST_REPLIES, MOST_NEW_REPLIES = threads.MOST_COUNTED, threads.MOST_NEW

EXAMPLE_WHY = "same text but for the label breaking"


def repeat_of_member(one: Any) -> int | None:
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
    repeat_of: Annotated[int | None, Example(None, "the post whose text it repeats", of=repeat_of_member)]


EXAMPLE_REPEAT = example(MemberJson) | {
    "post_id": 4719,
    "source_id": 14,
    "source": "Example Wire",
    "url": "https://wire.example/rivers",
    "title": "BREAKING: Where rivers begin",
    "published_at": "2026-01-07T09:20:00Z",
    "rule": "exact",
    "why": EXAMPLE_WHY,
    "repeat_of": 4711,
}


class AgainstJson(TypedDict):
    """What another telling says that cannot be right as well."""

    sentence: Annotated[str, Example("Three dead after the flood.", "of this telling")]
    other_id: Annotated[int, Example(4711, "the post that says otherwise")]
    other_sentence: Annotated[str, Example("Nobody was hurt.", "of that post")]


class NewsJson(TypedDict):
    """What a telling says that no earlier one said: a few sentences, numbers and names, as it writes them."""

    post_id: Annotated[int, Example(4719)]
    source: Annotated[str, Example("Example Wire")]
    title: Annotated[str, Example("Three dead after the flood")]
    published_at: Annotated[Time, Example("2026-01-07T09:20:00Z", of="created_at")]
    sentences: Annotated[list[str], Example(["Three dead after the flood."])]
    numbers: Annotated[list[str], Example(["3"])]
    names: Annotated[list[str], Example([])]
    disagrees: list[AgainstJson]


class ThreadJson(TypedDict):
    """A post with replies. They are listed by `/api/posts/{first_id}/replies`."""

    first_id: Annotated[int, Example(4711, "the post that the thread began with")]
    replies: Annotated[int, Example(12, f"how many replies are known, up to {MOST_REPLIES - 1:,}")]
    new_replies: Annotated[int, Example(3, f"how many of them you have not read, up to {MOST_NEW_REPLIES}")]
    replies_until: Annotated[
        int,
        Example(
            4731, "send it along when you mark the entry as read: replies that arrive later stay unread", of="until"
        ),
    ]


class StoryJson(TypedDict):
    """Posts about one event. Title, address and time are those of the member that arrived first, which is the first of
    `members`; the story stands in the stream at `updated_at`."""

    story_id: Annotated[str, Example("4711")]
    title: Annotated[str, Example("Where rivers begin", of="post.title")]
    excerpt: Annotated[
        str,
        Example(
            "Most rivers start as a spring.",
            "the first words of its text, without markup",
            of=lambda story: excerpt(story.post.content, story.post.title),
        ),
    ]
    url: Annotated[str | None, Example("https://example.org/rivers", of="post.url")]
    source: Annotated[str, Example("Example Journal", of="post.source")]
    published_at: Annotated[Time, Example("2026-01-07T09:12:00Z", of="post.created_at")]
    updated_at: Annotated[
        Time,
        Example(
            "2026-01-07T09:20:00Z", "when its newest telling that says something new was published", of="at.created_at"
        ),
    ]
    state: Annotated[str, Example("updated", "unread, read, or updated: it was read and has news or replies since")]
    news: Annotated[
        list[NewsJson],
        Example([example(NewsJson)], "what is new since you read it", of=lambda story: told_by(story.news, story.told)),
    ]
    tellings: Annotated[int, Example(2, f"how many members there are, up to {MOST_COUNTED:,}")]
    members: Annotated[list[MemberJson], Example([example(MemberJson), EXAMPLE_REPEAT], "a few of them")]
    signals: Annotated[
        list[SignalJson],
        Example(
            [example(SignalJson)],
            "what these posts name of your machines, their makers and pools, and your coins; needs miners:read",
        ),
    ]
    as_of: Annotated[
        int, Example(812, "send it along when you mark the story as read: what arrives later stays unread")
    ]
    thread: Annotated[
        ThreadJson | None, Example(None, "a thread, which stands where its newest reply stands; null: no replies")
    ]


class Told(NamedTuple):
    """What a telling says, as `NewsJson` shows it."""

    post_id: int
    source: str
    title: str
    created_at: datetime
    sentences: Sequence[str]
    numbers: Sequence[str]
    names: Sequence[str]
    disagrees: Sequence[Any]


class Against(NamedTuple):
    sentence: str
    other_id: int
    other_sentence: str


def told_by(members: Sequence[ShownMember], told: Mapping[int, TellingNews]) -> list[Told]:
    """Returns what these tellings say that none before them said. Pure."""
    found = []
    for one in members:
        says = told.get(one.post_id)
        new = says.new if says else {}
        found.append(
            Told(
                one.post_id,
                one.source,
                one.title,
                one.created_at,
                new.get("sentences", []),
                new.get("numbers", []),
                new.get("names", []),
                [Against(**against) for against in says.against] if says else [],
            )
        )
    return found


class FirstTold(NamedTuple):
    """Who told a story first, and how long before the next source."""

    post_id: int
    source: str
    at: datetime
    is_claimed: bool
    lead_seconds: float | None


class FirstJson(TypedDict):
    """Who told a story first: by its own date if that can be believed, and by when it was first seen if not."""

    post_id: Annotated[int, Example(4711)]
    source: Annotated[str, Example("Example Journal")]
    at: Annotated[Time, Example("2026-01-07T09:12:00Z")]
    is_claimed: Annotated[bool, Example(True, "true: by its own date; false: when it was first seen")]
    lead_seconds: Annotated[float | None, Example(480.0, "how long before the next source; null: there is no other")]


class LeadRow(NamedTuple):
    source_id: int
    source: str
    stories: int
    first: int
    median_lead_seconds: float | None


class LeadJson(TypedDict):
    """How often a source was first, of the stories that it told with others, and by how much."""

    source_id: Annotated[int, Example(12)]
    source: Annotated[str, Example("Example Journal")]
    stories: Annotated[int, Example(40)]
    first: Annotated[int, Example(12)]
    median_lead_seconds: Annotated[float | None, Example(840.0, "null: it was never first")]


class LeadsJson(TypedDict):
    """Who is first how often, over your newest stories."""

    stories: Annotated[int, Example(160, "how many stories were looked at")]
    sources: list[LeadJson]


def first_told(conn: Connection, members: Sequence[ShownMember]) -> FirstTold | None:
    """Returns who told a story first, of these members."""
    found = first(appearances(conn, [one.post_id for one in members]))
    if found is None:
        return None
    source = next(one.source for one in members if one.post_id == found.telling.post_id)
    lead = found.lead.total_seconds() if found.lead is not None else None
    return FirstTold(found.telling.post_id, source, found.telling.at, found.telling.is_claimed, lead)


def appearances(conn: Connection, post_ids: Sequence[int]) -> list[Appearance]:
    return [Appearance(*one) for one in tellings.appearances(conn, post_ids)]
