"""Dead letters, and what came of replaying them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time

LetterState = Literal["retrying", "waiting", "dead", "replayed", "skipped"]


class DeadLetterJson(TypedDict):
    """An event that failed in a consumer, how often, and why."""

    id: Annotated[int, Example(3)]
    consumer: Annotated[str, Example("search")]
    state: Annotated[LetterState, Example("dead")]
    event_id: Annotated[str, Example("019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f", of="event.event_id")]
    kind: Annotated[str, Example("post.stored", of="event.kind")]
    key: Annotated[str, Example("source:12", of="event.key")]
    data: Annotated[
        dict[str, Any],
        Example({"post_id": 4711, "source_id": 12}, of=lambda letter: orjson.loads(letter.event.data)),
    ]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z", of="event.created_at")]
    attempts: Annotated[int, Example(3)]
    error: Annotated[str | None, Example("UnreadableEvent: the event is no post.stored")]
    first_failed_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    last_failed_at: Annotated[Time | None, Example("2026-01-07T09:30:08Z")]
    next_try_at: Annotated[Time | None, Example(None)]
    settled_at: Annotated[Time | None, Example(None)]


class ReplayAll(TypedDict):
    replayed: Annotated[int, Example(12)]
    failed: Annotated[int, Example(0)]
