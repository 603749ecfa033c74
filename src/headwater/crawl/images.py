"""One picture: asked for, recognised by its first bytes, kept under the name of its content.

Whatever can be expected to go wrong ends as an Outcome that says so. Only a disk that takes nothing is raised: that is
no matter of one picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from headwater.errors import AddressRefused, AnswerTooLarge, BadInput, SourceFailure, StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.failures import is_our_network
from headwater.fetch.images import recognised
from headwater.fetch.statuses import BUSY, wanted_pause
from headwater.model import Request, Response
from headwater.store.images import files
from headwater.store.images.queue import ImageOutcome, SavedFile
from headwater.text import printable

ACCEPTED = (("Accept", "image/avif,image/webp,image/png,image/jpeg,image/gif"),)
NOT_THERE = (404, 410)
LONGEST_FACT = 300


class ImageTools(NamedTuple):
    """What saving pictures needs; `folder` is where they are kept."""

    fetch: Callable[[Request], Awaitable[Response]]
    folder: Path
    max_bytes: int


async def save(url: str, tools: ImageTools) -> ImageOutcome:
    """Ask for a picture and keep it. Raises StoreUnavailable where it cannot be written."""
    try:
        response = await tools.fetch(Request(url, ACCEPTED))
        _judge(response)
        file = await asyncio.to_thread(_kept, response, tools)
    except (SourceFailure, BadInput) as error:
        return refused(error)
    return ImageOutcome("saved", file, metadata=outcome_of(url, response))


def _judge(response: Response) -> None:
    status = response.status
    if status == 200:
        return
    words = "There is no picture at this address." if status in NOT_THERE else "The server did not give the picture."
    raise StatusRefused(f"{words} (HTTP {status})", http_status=status, retry_after=wanted_pause(response))


def _kept(response: Response, tools: ImageTools) -> SavedFile:
    data = unpacked(response, tools.max_bytes)
    picture = recognised(data)
    content_hash = files.hash_of(data)
    path = files.path_of(content_hash, picture.extension)
    files.keep(tools.folder, path, data)
    return SavedFile(content_hash, path, picture.type, len(data), picture.width, picture.height)


def refused(error: SourceFailure | BadInput) -> ImageOutcome:
    """What a failure means for the picture: never, not any more, or once more. Pure."""
    again = ImageOutcome("waiting", error_code=error.code, error=printable(error.detail))
    if isinstance(error, AddressRefused | AnswerTooLarge | BadInput) or error.facts.get("lasting"):
        return again._replace(state="skipped")
    status, pause = error.facts.get("http_status"), error.facts.get("retry_after")
    if status in NOT_THERE:
        return again._replace(state="failed")
    hold_for = pause if status in BUSY and isinstance(pause, timedelta) else None
    return again._replace(counts=not is_our_network(error), hold_for=hold_for)


def outcome_of(url: str, response: Response) -> dict[str, str]:
    """What the server said about the picture, for people who wonder; nothing is decided by it."""
    said = {
        "answered_by": response.url if response.url != url else "",
        "declared_type": response.headers.get("content-type", ""),
        "last_modified": response.headers.get("last-modified", ""),
    }
    return {name: printable(value)[:LONGEST_FACT] for name, value in said.items() if value}
