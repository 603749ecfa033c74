"""`/images/{hash}`: the content of a saved picture, for readers who follow a source that shows it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from headwater.api.auth import Asking, WithParts
from headwater.errors import NotFound
from headwater.store import image_files, images
from headwater.wire import image_folder

router = APIRouter()
# Should a picture be more than one, it can do nothing: not in a page, and not when it is opened alone (H34, H63).
POLICY = "default-src 'none'; sandbox"
FOREVER = "private, max-age=31536000, immutable"


@router.get("/images/{content_hash}")
async def image(
    request: Request,
    parts: WithParts,
    reader: Asking,
    content_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
) -> Response:
    found = await parts.db.read(images.file_of, reader, content_hash)
    if found is None:
        raise NotFound("There is no such picture, or you follow no source that shows it.")
    path, type = found
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": FOREVER, "ETag": f'"{content_hash}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(image_files.load, image_folder(parts.settings), path)
    if content is None:
        raise NotFound("The file of this picture is missing. It is downloaded again.")
    name = f"{content_hash[:16]}.{path.rpartition('.')[2]}"
    headers["Content-Disposition"] = f'inline; filename="{name}"'
    return Response(content, media_type=type, headers=headers)
