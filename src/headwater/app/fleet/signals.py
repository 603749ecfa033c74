"""Signals: posts that name something that the reader has, said in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.shapes import Example
from headwater.model import Reader
from headwater.store import stories
from headwater.store.fleet.mentions import Signal
from headwater.store.posts import stream
from headwater.store.posts.stream import Filter, Story

SCOPE = "miners:read"  # whoever may not see machines is not told which of them a story names
ONLY_SIGNALS = Filter(signals=True)


def newest(conn: Connection, reader: Reader, limit: int) -> list[Story]:
    """Returns the newest posts that name something that the reader has, one of each story."""
    found = stream.page(conn, reader, ONLY_SIGNALS, limit=3 * limit)
    told = stories.decided(conn, [one.post.id for one in found])
    first: dict[int, Story] = {}
    for one in found:
        member = told.get(one.post.id)
        first.setdefault(member.decision.story_id if member else one.post.id, one)
    return stream.with_signals(conn, reader, list(first.values())[:limit])


def told(signals: Sequence[Signal]) -> list[Signal]:
    """Returns what is worth telling a person: that a maker is named goes without saying if its machine is. Pure."""
    named = {one.maker for one in signals if one.kind == "model"}
    return [one for one in signals if one.kind != "maker" or one.name not in named]


def why(signal: Signal) -> str:
    """Explains a match: which word, and what it is of the reader's. Pure."""
    count = f"{signal.machines:,}"
    machines = "machine" if signal.machines == 1 else "machines"
    match signal.kind:
        case "model":
            return f"“{signal.word}”: you have {count} {signal.name}"
        case "maker":
            return f"“{signal.word}”: {signal.name} made {count} of your machines"
        case "pool":
            return f"“{signal.word}”: {count} of your {machines} {'mines' if count == '1' else 'mine'} at {signal.name}"
        case _:
            return f"“{signal.word}”: you hold {signal.name}"


class SignalJson(TypedDict):
    """Something that you have and that a story names."""

    kind: Annotated[str, Example("model", "model, maker, pool or coin")]
    name: Annotated[str, Example("Antminer S19 Pro", "what you have")]
    word: Annotated[str, Example("S19 Pro", "the word that names it, as the story writes it")]
    post_id: Annotated[int, Example(4711, "the post that has the word")]
    machines: Annotated[int, Example(40, "how many of your machines it is about; 0 for a coin")]
    why: Annotated[str, Example("“S19 Pro”: you have 40 Antminer S19 Pro", "for people", of=why)]
