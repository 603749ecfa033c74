"""Downloads one image: fetches it, recognises it by its first bytes, and keeps it under the hash of its content.

Whatever can be expected to go wrong ends as an ImageOutcome that says so. Only a disk that cannot be written to raises,
because that is not the fault of one image.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from headwater.errors import AddressRefused, AnswerTooLarge, BadInput, SourceFailure, StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.failures import is_our_network
from headwater.fetch.images import recognised
from headwater.fetch.statuses import GONE, pause_of, retry_after
from headwater.model import Request, Response
from headwater.store.images import files
from headwater.store.images.queue import ImageOutcome, SavedFile
from headwater.text import printable

ACCEPTED = (("Accept", "image/avif,image/webp,image/png,image/jpeg,image/gif"),)
LONGEST_FACT = 300


class ImageTools(NamedTuple):
    """What saving images needs; `folder` is where the files are."""

    fetch: Callable[[Request], Awaitable[Response]]
    folder: Path
    max_bytes: int


async def save(url: str, tools: ImageTools) -> ImageOutcome:
    """Downloads an image and stores the file. Raises StoreUnavailable if it cannot be written."""
    try:
        response = await tools.fetch(Request(url, ACCEPTED))
        _judge(response)
        file = await asyncio.to_thread(_stored, response, tools)
    except (SourceFailure, BadInput) as error:
        return refused(error)
    return ImageOutcome("saved", file, metadata=outcome_of(url, response))


def _judge(response: Response) -> None:
    status = response.status
    if status == 200:
        return
    words = "There is no image at this address." if status in GONE else "The server did not send the image."
    raise StatusRefused(f"{words} (HTTP {status})", http_status=status, retry_after=retry_after(response))


def _stored(response: Response, tools: ImageTools) -> SavedFile:
    data = unpacked(response, tools.max_bytes)
    header = recognised(data)
    content_hash = files.hash_of(data)
    path = files.path_of(content_hash, header.extension)
    files.save(tools.folder, path, data)
    return SavedFile(content_hash, path, header.type, len(data), header.width, header.height)


def refused(error: SourceFailure | BadInput) -> ImageOutcome:
    """Returns what a failure means for the image: skip it, give up, or try again. Pure."""
    again = ImageOutcome("waiting", error_code=error.code, error=printable(error.detail))
    if isinstance(error, AddressRefused | AnswerTooLarge | BadInput) or error.facts.get("lasting"):
        return again._replace(state="skipped")
    if error.facts.get("http_status") in GONE:
        return again._replace(state="failed")
    return again._replace(counts=not is_our_network(error), hold_for=pause_of(error))


def outcome_of(url: str, response: Response) -> dict[str, str]:
    """Returns what the server said about the image, for people who wonder. Nothing is decided by it."""
    said = {
        "answered_by": response.url if response.url != url else "",
        "declared_type": response.headers.get("content-type", ""),
        "last_modified": response.headers.get("last-modified", ""),
    }
    return {name: printable(value)[:LONGEST_FACT] for name, value in said.items() if value}
