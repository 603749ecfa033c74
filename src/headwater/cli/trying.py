"""`headwater try`: what Headwater reads from a feed, without following it, so that anybody can compare."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from headwater import urls, wire
from headwater.crawl import discover
from headwater.crawl.statuses import judge
from headwater.errors import BadInput, NotAFeed
from headwater.model import Page, Post, Response, Source, SourceState
from headwater.sources import KINDS
from headwater.wire import Parts


async def read(parts: Parts, what: str) -> tuple[str, Page]:
    """The feed in a file or at an address: (where it was found, what it says)."""
    readers = wire.open_readers(parts)
    try:
        if Path(what).is_file():
            answer = Response("", 200, {}, Path(what).read_bytes(), parts.now())
            return what, await readers.read(Source(0, "rss", ""), SourceState(), answer)
        if "://" not in what and urls.with_scheme(what) == what:
            raise BadInput(f"{what} is neither a file nor an address.")
        client = wire.open_client(parts)
        try:
            source = Source(0, "rss", urls.canonical(urls.with_scheme(what)))
            answer = await client.fetch(KINDS["rss"].first(source, SourceState()))
            judge(answer)
            try:
                return answer.url, await readers.read(source, SourceState(), answer)
            except NotAFeed as reason:
                search = discover.Search(client.fetch, readers, parts.settings.host_gap_seconds)
                found, page = await discover.find_feed(source, answer, reason, search)
                return found.url, page
        finally:
            await client.close()
    finally:
        await readers.close()


def document(address: str, page: Page) -> dict[str, Any]:
    facts = page.facts
    return {
        "address": address,
        "format": facts.format,
        "title": facts.title,
        "link": facts.link,
        "language": facts.language,
        "truncated": facts.truncated,
        "entries": [_entry(post) for post in page.posts],
    }


def _entry(post: Post) -> dict[str, Any]:
    return {
        "id": post.source_post_id,
        "url": post.url,
        "title": post.title,
        "published": _time(post.created_at if post.dated else None),
        "updated": _time(post.updated_at),
        "author": post.author,
        "content": post.content,
        "enclosures": [enclosure._asdict() for enclosure in post.enclosures],
        "language": post.lang,
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
