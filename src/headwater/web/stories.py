"""The pages about stories: what is folded together and why, taking it apart, and how much is folded."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from headwater.app import stories
from headwater.http.auth import CurrentReader
from headwater.http.inputs import Id
from headwater.http.state import WithParts
from headwater.web.view import go, show

router = APIRouter()


@router.get("/stories/{story_id}")
async def story_page(request: Request, parts: WithParts, reader: CurrentReader, story_id: Id) -> Response:
    story = await parts.db.read(stories.group, reader, story_id)
    return show(request, "story.html", story_id=story_id, members=story.members, past=story.history, section="stream")


@router.post("/stories/{story_id}/undo")
async def undo_story(
    parts: WithParts, reader: CurrentReader, story_id: Id, next: Annotated[str, Form()] = "/"
) -> Response:
    await parts.db.write(stories.undo, reader, story_id, parts.now())
    return go(next)


@router.post("/posts/{post_id}/apart")
async def take_out(
    parts: WithParts, reader: CurrentReader, post_id: Id, next: Annotated[str, Form()] = "/"
) -> Response:
    await parts.db.write(stories.take_out, reader, post_id, parts.now())
    return go(next)


@router.get("/folding")
async def folding_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    wanted = await parts.db.read(stories.fold_settings, reader)
    return show(request, "folding.html", wanted=wanted, level=parts.settings.fold, section="stream")


@router.post("/folding")
async def choose_folding(
    parts: WithParts,
    reader: CurrentReader,
    level: Annotated[Literal["off", "repeats", "stories"], Form()],
    threshold: Annotated[float, Form(ge=0, le=1)] = 0.0,
) -> Response:
    await parts.db.write(stories.choose_folding, reader, level, threshold)
    return go("/folding")
