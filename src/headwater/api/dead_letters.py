"""`/api/dead-letters`: events that a consumer could not handle. Whoever runs Headwater reads, replays or skips them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headwater.app import log
from headwater.app.log import DeadLetterJson, LetterState, ReplayAll
from headwater.app.shapes import PageJson, shaped
from headwater.http import cursors
from headwater.http.auth import only_operators
from headwater.http.inputs import Cursor, Id, Limit
from headwater.http.json_route import JsonRoute
from headwater.http.state import WithParts

router = APIRouter(
    prefix="/api/dead-letters", tags=["dead letters"], dependencies=[Depends(only_operators)], route_class=JsonRoute
)


@router.get("", summary="List dead letters, newest first")
async def list_letters(
    parts: WithParts,
    state: Annotated[LetterState, Query(description="in which state")] = "dead",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> PageJson[DeadLetterJson]:
    found = await parts.db.read(log.list_dead_letters, state, before=cursors.id_in(cursor), limit=limit + 1)
    items, more = cursors.cut(found, limit, cursors.of_row)
    return {"items": [shaped(DeadLetterJson, letter) for letter in items], "next_cursor": more}


@router.post("/replay", summary="Replay all dead letters")
async def replay_letters(parts: WithParts, consumer: str | None = None, kind: str | None = None) -> ReplayAll:
    """All, or those of a consumer or a kind, the oldest first. What fails again stays dead."""
    return await log.replay_dead_letters(parts.db, parts.consumers, parts.now, consumer, kind)


@router.get("/{letter_id}", summary="Show one dead letter")
async def show_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    return shaped(DeadLetterJson, await parts.db.read(log.dead_letter, letter_id))


@router.post("/{letter_id}/replay", summary="Replay a dead letter")
async def replay_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """Gives the event its effect, once. If it fails again, `state` is `dead` as before and `error` says why."""
    return shaped(DeadLetterJson, await parts.db.write(log.replay_dead_letter, parts.consumers, letter_id, parts.now()))


@router.post("/{letter_id}/skip", summary="Skip a dead letter")
async def skip_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """The event has no effect, now or later. What waits behind it goes on."""
    return shaped(DeadLetterJson, await parts.db.write(log.skip_dead_letter, parts.consumers, letter_id, parts.now()))
