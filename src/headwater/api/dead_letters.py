"""`/api/dead-letters`: events that a consumer could not handle. Whoever runs Headwater reads, replays or skips them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Query
from typing_extensions import TypedDict

from headwater.app.shapes import PageJson, Time, iso, iso_or_none
from headwater.errors import AlreadyThere, Forbidden, NotFound
from headwater.events import replay
from headwater.http import cursors
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Cursor, Id, Limit
from headwater.model import Reader
from headwater.store.log import dead_letters
from headwater.store.log.dead_letters import DeadLetter
from headwater.wire import Parts

OPERATORS = frozenset({"owner"})
LetterState = Literal["retrying", "waiting", "dead", "replayed", "skipped"]


def operator(reader: Asking) -> Reader:
    """Letters hold events of everybody: they are for those who run the instance."""
    if reader.role not in OPERATORS:
        raise Forbidden("Dead letters are for those who run this Headwater.")
    return reader


router = APIRouter(prefix="/api/dead-letters", tags=["dead letters"], dependencies=[Depends(operator)])


class DeadLetterJson(TypedDict):
    """An event that failed in a consumer, how often, and why."""

    id: int
    consumer: str
    state: LetterState
    event_id: str
    kind: str
    key: str
    data: dict[str, Any]
    created_at: Time
    attempts: int
    error: str | None
    first_failed_at: Time | None
    last_failed_at: Time | None
    next_try_at: Time | None
    settled_at: Time | None


_LETTER = {
    "id": 3,
    "consumer": "search",
    "state": "dead",
    "event_id": "019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f",
    "kind": "post.stored",
    "key": "source:12",
    "data": {"post_id": 4711, "source_id": 12},
    "created_at": "2026-01-07T09:30:01Z",
    "attempts": 3,
    "error": "UnreadableEvent: the event is no post.stored",
    "first_failed_at": "2026-01-07T09:30:02Z",
    "last_failed_at": "2026-01-07T09:30:08Z",
    "next_try_at": None,
    "settled_at": None,
}
EXAMPLES = {"LetterJson": _LETTER}


class ReplayAll(TypedDict):
    replayed: int
    failed: int


@router.get("", summary="List dead letters, newest first")
async def list_letters(
    parts: WithParts,
    state: Annotated[LetterState, Query(description="in which state")] = "dead",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> PageJson[DeadLetterJson]:
    found = await parts.db.read(dead_letters.page, state, before=cursors.id_in(cursor), limit=limit + 1)
    more = cursors.of_id(found[limit - 1].id) if len(found) > limit else None
    return {"items": [letter_json(letter) for letter in found[:limit]], "next_cursor": more}


@router.post("/replay", summary="Replay all dead letters")
async def replay_letters(parts: WithParts, consumer: str | None = None, kind: str | None = None) -> ReplayAll:
    """All, or those of a consumer or a kind, the oldest first. What fails again stays dead."""
    return await replay_all(parts, consumer, kind)


@router.get("/{letter_id}", summary="Show one dead letter")
async def show_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    return letter_json(await letter(parts, letter_id))


@router.post("/{letter_id}/replay", summary="Replay a dead letter")
async def replay_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """Gives the event its effect, once. If it fails again, `state` is `dead` as before and `error` says why."""
    await parts.db.write(replay.replay_dead_letter, parts.consumers, letter_id, parts.now())
    return await show_letter(parts, letter_id)


@router.post("/{letter_id}/skip", summary="Skip a dead letter")
async def skip_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """The event has no effect, now and later; what waits behind it goes on."""
    await parts.db.write(replay.skip_dead_letter, parts.consumers, letter_id, parts.now())
    return await show_letter(parts, letter_id)


async def letter(parts: Parts, letter_id: int) -> DeadLetter:
    found = await parts.db.read(dead_letters.find, letter_id)
    if found is None:
        raise NotFound(f"There is no letter {letter_id}.")
    return found


async def replay_all(parts: Parts, consumer: str | None = None, kind: str | None = None) -> ReplayAll:
    if consumer is not None:
        replay.consumer_named(consumer, parts.consumers)
    replayed = failed = 0
    for letter_id in await parts.db.read(replay.dead_letter_ids, consumer, kind):
        try:
            error = await parts.db.write(replay.replay_dead_letter, parts.consumers, letter_id, parts.now())
        except AlreadyThere:  # somebody else was at it
            continue
        replayed += error is None
        failed += error is not None
    return {"replayed": replayed, "failed": failed}


def letter_json(letter: DeadLetter) -> DeadLetterJson:
    event = letter.event
    state: Any = letter.state
    return {
        "id": letter.id,
        "consumer": letter.consumer,
        "state": state,
        "event_id": event.event_id,
        "kind": event.kind,
        "key": event.key,
        "data": orjson.loads(event.data),
        "created_at": iso(event.created_at),
        "attempts": letter.attempts,
        "error": letter.error,
        "first_failed_at": iso_or_none(letter.first_failed_at),
        "last_failed_at": iso_or_none(letter.last_failed_at),
        "next_try_at": iso_or_none(letter.next_try_at),
        "settled_at": iso_or_none(letter.settled_at),
    }
