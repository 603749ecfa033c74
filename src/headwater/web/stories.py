"""The pages about stories: what is folded together and why, taking it apart, and how much is folded."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from sqlalchemy import Connection
from starlette.responses import Response

from headwater.api import stories as api
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.model import Reader
from headwater.store import stories
from headwater.store.stories import PastDecision, folded
from headwater.store.stories.folded import FoldSettings, ShownMember
from headwater.web.view import go, show

router = APIRouter()


@router.get("/stories/{story_id}")
async def story_page(request: Request, parts: WithParts, reader: Asking, story_id: Id) -> Response:
    members, past = await parts.db.read(_gather, reader, story_id)
    return show(request, "story.html", story_id=story_id, members=members, past=past, section="stream")


def _gather(conn: Connection, reader: Reader, story_id: int) -> tuple[list[ShownMember], list[PastDecision]]:
    members = api.group_of(conn, reader, story_id)
    visible = {member.post_id for member in members}
    return members, [one for one in stories.history(conn, story_id) if one.post_id in visible]


@router.post("/stories/{story_id}/undo")
async def undo_story(parts: WithParts, reader: Asking, story_id: Id, next: Annotated[str, Form()] = "/") -> Response:
    await parts.db.write(api.undo, reader, story_id, parts.now())
    return go(next)


@router.post("/posts/{post_id}/apart")
async def take_out(parts: WithParts, reader: Asking, post_id: Id, next: Annotated[str, Form()] = "/") -> Response:
    await parts.db.write(api.part, reader, post_id, parts.now())
    return go(next)


@router.get("/folding")
async def folding_page(request: Request, parts: WithParts, reader: Asking) -> Response:
    wanted = await parts.db.read(folded.settings_of, reader)
    return show(request, "folding.html", wanted=wanted, level=parts.settings.fold, section="stream")


@router.post("/folding")
async def choose_folding(
    parts: WithParts,
    reader: Asking,
    level: Annotated[Literal["off", "repeats", "stories"], Form()],
    threshold: Annotated[float, Form(ge=0, le=1)] = 0.0,
) -> Response:
    await parts.db.write(folded.save_settings, reader, FoldSettings(level, threshold))
    return go("/folding")
