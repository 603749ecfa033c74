"""What is followed: adding and removing, lists as OPML, how each source is doing, and trying one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import orjson
import typer
from sqlalchemy import Connection

from headwater import wire
from headwater.app import posts, sources, stories
from headwater.app.sources import SourceJson
from headwater.cli import crawl
from headwater.cli.session import (
    Json,
    SourceName,
    ago,
    exit_if,
    fail,
    json_line,
    json_lines,
    opened,
    opened_parts,
    output,
    progress,
    run_async,
    say,
    show_list,
    source_settings,
    table,
)
from headwater.errors import BadInput
from headwater.follow.discovery import Tried
from headwater.model import Post, Reader
from headwater.store.sources import Added, WatchedSource
from headwater.wire import Parts

KindOption = Annotated[str | None, typer.Option("--kind", help="How to read it, such as forum. Default: find out.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the kind, NAME=VALUE. Can be repeated.")
]


def add(
    addresses: Annotated[list[str], typer.Argument(help="Addresses of feeds, or of sites that have one.")],
    folder: Annotated[str | None, typer.Option(help="Folder to put them in.")] = None,
    kind: KindOption = None,
    given: SetOption = None,
    every: Annotated[int | None, typer.Option(help="How often to visit them, in minutes. Default: as usual.")] = None,
    as_json: Json = False,
) -> None:
    """Follow sources, and visit them at once. `headwater up` or `headwater crawl` continues a long crawl.

    A retired source is visited again.
    """
    settings = source_settings(given)
    chosen: dict[str, Any] = {"folder": folder, "kind": kind, "settings": settings, "refresh_interval": every}
    failed = 0
    with opened(or_new=True) as (parts, owner):
        for address in addresses:
            try:
                added = parts.db.write_now(
                    sources.follow_at, owner, address, parts.now(), **chosen, **parts.follow_terms
                )
            except BadInput as error:
                if len(addresses) == 1:
                    raise
                failed += bool(fail(error))
                continue
            if added.new_source or added.changed or added.revived:
                run_async(crawl.visit_now(parts, [added.source_id], whole=False))
            failed += _say_added(parts, owner, address, added, as_json)
    exit_if(failed)


def _say_added(parts: Parts, owner: Reader, address: str, added: Added, as_json: bool) -> bool:
    source = parts.db.read_now(sources.one_of, owner, added.source_id, address, parts.now())
    posts = parts.db.read_now(sources.count_posts, source.id)
    already = not added.new_subscription or source.id != added.source_id
    if as_json:
        json_line({"source_id": source.id, "address": source.address, "title": source.title, "posts": posts,
                   "status": source.status, "already_there": already, "visited_again": added.revived,
                   "error": source.last_error})  # fmt: skip
    elif source.last_error:
        again = f"It will be tried again {ago(source.next_check_at, parts.now())}."
        again = again if source.active else "It is retired. It is not visited until you add it again."
        say(f"Following {source.address}, but: {source.last_error} {again}")
    else:
        words = "Visiting again" if added.revived else "Already following" if already else "Following"
        say(f"{words} {source.title} ({source.address}): {posts} {'post' if posts == 1 else 'posts'}.")
    return bool(source.last_error)


def set_interval(
    source: SourceName,
    minutes: Annotated[int | None, typer.Argument(help="How often to visit it, in minutes. Default: as usual.")] = None,
    as_json: Json = False,
) -> None:
    """Choose how often a source is visited. It is never visited more often than the source allows."""
    with opened() as (parts, owner):
        source_id = parts.db.read_now(sources.named, owner, source)
        changes = {"refresh_interval": minutes}
        changed = parts.db.write_now(
            sources.arrange, owner, source_id, changes, parts.now(), usual=parts.usual_interval
        )
        now = parts.now()
    if as_json:
        json_lines(SourceJson, [changed])
        return
    often = "as often as usual" if minutes is None else f"every {minutes} {'minute' if minutes == 1 else 'minutes'}"
    say(f"{changed.title} is visited {often}. Next check: {_next_check(changed, now)}.")


def remove(source: SourceName, as_json: Json = False) -> None:
    """Stop following a source. Its posts stay in the store."""
    with opened() as (parts, owner):
        source_id = parts.db.read_now(sources.named, owner, source)
        parts.db.write_now(sources.unfollow, owner, source_id, parts.now())
    json_line({"removed": source_id}) if as_json else say(f"No longer following {source}.")


def list_sources(as_json: Json = False) -> None:
    """List what you follow, how each source is doing, and when it was checked and will be checked next."""
    with opened() as (parts, owner):
        now = parts.now()
        found = parts.db.read_now(sources.every, owner, now)
    columns = ("id", "title", "status", "last check", "next check", "problem")
    show_list(
        found, as_json, SourceJson, columns,
        lambda one: (one.id, one.title, one.status, ago(one.last_crawled_at, now), _next_check(one, now),
                     one.last_error),
        if_empty="You follow nothing yet. Try `headwater add ADDRESS` or `headwater import FILE.opml`.",
    )  # fmt: skip


def _next_check(source: WatchedSource, now: datetime) -> str:
    if not source.active:
        return "never"
    if source.checking:
        return "being checked"
    due = "now" if source.next_check_at <= now else ago(source.next_check_at, now)
    return f"{due}, {source.waits_for}" if source.waits_for else due


def import_opml(
    file: Annotated[Path, typer.Argument(help="An OPML file, or - for standard input.")], as_json: Json = False
) -> None:
    """Follow everything in an OPML file. `headwater up` or `headwater crawl` visits the sources."""
    outlines = sources.read_opml(sys.stdin.buffer.read() if str(file) == "-" else _content(file))
    with opened(or_new=True) as (parts, owner), progress() as bar:
        listed = bar.track(outlines, description="adding")
        most = parts.settings.max_sources
        counts = parts.db.write_now(sources.follow_all, owner, listed, parts.now(), parts.credential, most)
    if as_json:
        json_line({"added": counts.added, "already_there": counts.already, "refused": counts.refused})
        return
    say(f"{counts.added} added, {counts.already} already there, {len(counts.refused)} refused.")
    for address, why in counts.refused.items():
        say(f"  {address[:100]}: {why}")


def export(
    file: Annotated[Path | None, typer.Argument(help="Where to write. Default: standard output.")] = None,
    what: Annotated[
        Literal["opml", "posts", "stories"],
        typer.Option(help="What you follow (OPML), or posts with your marks or stories (JSON lines)."),
    ] = "opml",
    as_json: Json = False,
) -> None:
    """Write what you follow as OPML, or posts or stories as JSON lines, for use elsewhere."""
    with opened() as (parts, owner):
        if what == "opml":
            document, count = parts.db.read_now(sources.export_opml, owner, parts.now())
            with output(file) as out:
                out.write(document)
        else:
            rows = posts.export if what == "posts" else stories.export
            with output(file) as out:
                count = parts.db.snapshot_now(_write_lines, owner, rows, out)
    if file is not None:
        words = "sources" if what == "opml" else what
        json_line({"file": str(file), words: count}) if as_json else say(f"{count} {words} in {file}.")


def _write_lines(conn: Connection, owner: Reader, rows: Callable[..., Iterator[Any]], out: BinaryIO) -> int:
    """Writes one JSON object a line. Returns how many."""
    count = 0
    for count, row in enumerate(rows(conn, owner), start=1):  # noqa: B007  # the last one is how many there were
        out.write(orjson.dumps(row) + b"\n")
    return count


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error


def try_source(
    what: Annotated[str, typer.Argument(help="A file, or the address of a feed or site.")],
    kind: KindOption = None,
    given: SetOption = None,
    as_json: Json = False,
) -> None:
    """Show what Headwater reads from a feed, or from a list and one of its items, without following it."""
    with opened_parts() as parts:
        tried = run_async(try_it(parts, what, kind, source_settings(given)))
    json_line(tried_json(tried)) if as_json else _say_tried(tried, parts.now())


async def try_it(parts: Parts, what: str, kind: str | None = None, settings: Mapping[str, Any] = {}) -> Tried:
    """Reads a file or what is at an address."""
    client, parsers = wire.open_client(parts), wire.open_parsers(parts)
    try:
        if Path(what).is_file():
            return await sources.try_file(parsers, what, Path(what).read_bytes(), parts.now(), kind, settings)
        gap = parts.settings.host_gap_seconds
        return await sources.try_address(client.fetch, parsers, what, kind, settings, gap=gap)
    finally:
        await client.close()
        await parsers.close()


def _say_tried(tried: Tried, now: datetime) -> None:
    page = tried.page
    count, what = len(page.items or page.posts), "item" if page.items else "post"
    title = page.facts.title or "no title"
    say(f"{page.facts.format}: {title} ({tried.address}), {count} {what if count == 1 else what + 's'}")
    if page.items:
        table("", ("id", "title", "mark", "address"), [(one.id, one.title, one.mark, one.url) for one in page.items])
        say(f"The list goes on at {page.next.url}." if page.next else "The list ends here.")
    if tried.item:
        say(f"Its item {tried.item.title or tried.item.id} ({tried.item.url}):")
        if tried.error:
            say(f"  {tried.error}")
    posts = [*page.posts, *(tried.item_page.posts if tried.item_page else [])]
    if posts or not page.items:
        rows = [(ago(post.created_at, now) if post.dated else "no date", post.title, post.url) for post in posts]
        table("", ("published", "title", "address"), rows)


def tried_json(tried: Tried) -> dict[str, Any]:
    facts, page = tried.page.facts, tried.page
    found = {
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
    if not tried.is_list:
        return found
    item = {**tried.item._asdict(), "created_at": _time(tried.item.created_at)} if tried.item else None
    posts = tried.item_page.posts if tried.item_page else []
    return {
        **found,
        "items": [{**one._asdict(), "created_at": _time(one.created_at)} for one in page.items],
        "next": page.next.url if page.next else None,
        "item": item and {**item, "entries": [_entry(post) for post in posts]},
        "error": tried.error,
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
