"""`headwater try`: what Headwater reads from a source, without following it, so that anybody can compare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from headwater import urls, wire
from headwater.cli.output import ago, say, table
from headwater.errors import BadInput, NotAFeed, SourceFailure
from headwater.fetch.statuses import judge
from headwater.follow import discovery
from headwater.follow.add import chosen
from headwater.model import Item, Page, Post, Request, Response, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import KINDS
from headwater.wire import Parts

Fetch = Callable[[Request], Awaitable[Response]]


class Tried(NamedTuple):
    """What is at an address: a page, and, where that is a list, what one of its items says or why it cannot be read."""

    kind: str
    address: str
    page: Page
    item: Item | None = None
    told: Page | None = None
    trouble: str | None = None


async def read(parts: Parts, what: str, kind: str | None = None, settings: Mapping[str, Any] = {}) -> Tried:
    """What a file or an address says."""
    parsers = wire.open_parsers(parts)
    try:
        if Path(what).is_file():
            source = Source(0, kind or "rss", "", settings=settings)
            answer = Response("", 200, {}, Path(what).read_bytes(), parts.now())
            return Tried(source.kind, what, await parsers.read(source, SourceState(), answer))
        if "://" not in what and urls.with_scheme(what) == what:
            raise BadInput(f"{what} is neither a file nor an address.")
        client = wire.open_client(parts)
        try:
            known, address = chosen(what, kind, settings)
            source = Source(0, known, address, settings=settings)
            return await _look(source, client.fetch, parsers, parts.settings.host_gap_seconds)
        finally:
            await client.close()
    finally:
        await parsers.close()


async def _look(source: Source, fetch: Fetch, parsers: Parsers, gap: float) -> Tried:
    answer = await fetch(KINDS[source.kind].first(source, SourceState()))
    judge(answer)
    if KINDS[source.kind].paged:
        return await _list(source, answer, fetch, parsers)
    try:
        return Tried(source.kind, answer.url, await parsers.read(source, SourceState(), answer))
    except NotAFeed as reason:
        try:
            found, page = await discovery.find_feed(source, answer, reason, discovery.Search(fetch, parsers, gap))
            return Tried(source.kind, found.url, page)
        except NotAFeed:
            becomes = await parsers.recognise(source, answer)
            if becomes is None:
                raise
    source = source._replace(kind=becomes.kind, settings=becomes.settings)
    return await _look(source, fetch, parsers, gap)


async def _list(source: Source, answer: Response, fetch: Fetch, parsers: Parsers) -> Tried:
    """A list, and the first of its items that stands in its order."""
    page = await parsers.read(source, SourceState(), answer)
    tried = Tried(source.kind, answer.url, page)
    item = next((one for one in page.items if not one.pinned), None)
    if item is None:
        return tried
    try:
        told = await fetch(Request(item.url))
        judge(told)
        return tried._replace(item=item, told=await parsers.read_item(source, item, told))
    except SourceFailure as error:
        return tried._replace(item=item, trouble=error.detail)


def tell(tried: Tried, now: datetime) -> None:
    """For people."""
    page = tried.page
    count = f"{len(page.items)} items" if page.items else f"{len(page.posts)} posts"
    say(f"{page.facts.format}: {page.facts.title or 'no title'} ({tried.address}), {count}")
    if page.items:
        table("", ("id", "title", "mark", "address"), [(one.id, one.title, one.mark, one.url) for one in page.items])
        say(f"The list goes on at {page.next.url}." if page.next else "The list ends here.")
    if tried.item:
        say(f"Its item {tried.item.title or tried.item.id} ({tried.item.url}):")
        if tried.trouble:
            say(f"  {tried.trouble}")
    posts = [*page.posts, *(tried.told.posts if tried.told else [])]
    if posts or not page.items:
        rows = [(ago(post.created_at, now) if post.dated else "no date", post.title, post.url) for post in posts]
        table("", ("published", "title", "address"), rows)


def document(tried: Tried) -> dict[str, Any]:
    """For programs."""
    facts, page = tried.page.facts, tried.page
    said = {
        "address": tried.address,
        "kind": tried.kind,
        "format": facts.format,
        "title": facts.title,
        "link": facts.link,
        "language": facts.language,
        "truncated": facts.truncated,
        "note": facts.note,
        "entries": [_entry(post) for post in page.posts],
    }
    if not KINDS[tried.kind].paged:
        return said
    item = {**tried.item._asdict(), "created_at": _time(tried.item.created_at)} if tried.item else None
    return {
        **said,
        "items": [{**one._asdict(), "created_at": _time(one.created_at)} for one in page.items],
        "next": page.next.url if page.next else None,
        "item": item and {**item, "entries": [_entry(post) for post in (tried.told.posts if tried.told else [])]},
        "error": tried.trouble,
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
