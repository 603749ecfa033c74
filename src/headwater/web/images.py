"""Images as pages show them: saved ones from here, others only if the reader agreed to be seen by their servers.

Works on clean HTML as it is stored, when it is shown: what is saved, and what the reader wants, changes after that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from html import escape, unescape
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path, Request
from markupsafe import Markup
from starlette.responses import Response

from headwater import wire
from headwater.app import posts
from headwater.errors import BadAddress
from headwater.http.auth import CurrentReader, needs
from headwater.http.state import WithParts
from headwater.store.images import ImageRecord
from headwater.web.view import page_router

ROUTE = "/images/"
_WITHHELD = '<span class="withheld"'  # clean HTML has no class
# In clean HTML a bracket is always a tag's, and every value has double quotes.
_IMAGE = re.compile(r"<img\b[^>]*+>")
_ATTRIBUTE = re.compile(r'\s(src|alt|title|width|height|dir|lang)="([^"]*)"')

router = page_router()
# If a file is more than an image, it can do nothing: not in a page, and not when it is opened alone.
POLICY = "default-src 'none'; sandbox"
FOREVER = "private, max-age=31536000, immutable"


class ShownImages:
    """The images of one post. `remote`: those that are not saved may be loaded from where they are."""

    def __init__(self, records: Sequence[ImageRecord], remote: bool) -> None:
        self._records = records
        self._saved = {one.url: one for one in records if one.state == "saved"}
        self.remote = remote

    def shown(self, content: str) -> Markup:
        """Returns clean HTML with its images as this reader gets them."""
        return Markup(_IMAGE.sub(self._replaced, content))

    def missing_from(self, content: str) -> Markup:
        """Returns the images that the post has but its text does not show."""
        inside = {_address(unescape(found["src"])) for found in map(_attributes, _IMAGE.findall(content))}
        missing = [one for one in self._records if one.url not in inside and one.state != "skipped"]
        return Markup("").join(Markup(self._tag({"src": escape(one.url), "alt": escape(one.alt)})) for one in missing)

    def withheld(self, content: str) -> int:
        """Returns how many images the reader could ask for."""
        return (self.shown(content) + self.missing_from(content)).count(_WITHHELD)

    def _replaced(self, image: re.Match[str]) -> str:
        return self._tag(_attributes(image[0]))

    def _tag(self, given: dict[str, str]) -> str:
        """Returns the tag of an image. `given` are attributes as they are written in HTML."""
        address = unescape(given["src"])
        record = self._saved.get(_address(address))
        if record is None and not self.remote:
            return _placeholder(given.get("alt", ""), address)
        attributes = dict(given, loading="lazy")
        if record:
            attributes["src"] = f"{ROUTE}{record.content_hash}"
            if record.width and record.height and "width" not in given and "height" not in given:
                attributes |= {"width": str(record.width), "height": str(record.height)}
        return "<img" + "".join(f' {name}="{value}"' for name, value in attributes.items()) + ">"


def _attributes(image: str) -> dict[str, str]:
    return {"src": "", **dict(_ATTRIBUTE.findall(image))}


def _address(url: str) -> str:
    try:
        return posts.address_of(url)
    except BadAddress:
        return url


def _placeholder(alt: str, address: str) -> str:
    """Returns what is shown instead of an image. It is not a link, because the image may be inside one."""
    try:
        host = escape(urlsplit(address).hostname or "")
    except ValueError:
        host = ""
    words = f"Image: {escape(unescape(alt))}" if alt else "Image"
    return f'{_WITHHELD} title="{host}">{words}</span>'


@router.get("/images/{content_hash}", dependencies=[needs("posts:read")])
async def image(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    content_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
) -> Response:
    path, type = await parts.db.read(posts.find_image, reader, content_hash)
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": FOREVER, "ETag": f'"{content_hash}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(posts.load_image, wire.image_folder(parts.settings), path)
    name = f"{content_hash[:16]}.{path.rpartition('.')[2]}"
    headers["Content-Disposition"] = f'inline; filename="{name}"'
    return Response(content, media_type=type, headers=headers)
