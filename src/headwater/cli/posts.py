"""Posts: the stream, searching, what a post said before, and its images."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, cast

import typer

from headwater.app import posts, sources
from headwater.app.posts import ImageJson, PostJson, VersionJson
from headwater.app.shapes import shaped
from headwater.app.tellings import StoryJson
from headwater.cli.session import Json, PostId, ago, json_line, opened, say, show_list, table
from headwater.settings.table import Settings
from headwater.store.posts.stream import Filter, PostVersion, Story
from headwater.text import excerpt, headline, plain

MEGABYTE = 1024 * 1024

images = typer.Typer(help="The images that posts show, and what became of them.", no_args_is_help=True)


def show_stream(
    limit: Annotated[int, typer.Option(help="How many stories.", min=1, max=100_000)] = 30,
    unread: Annotated[bool, typer.Option("--unread", help="Only what you have not read.")] = False,
    source: Annotated[str | None, typer.Option(help="Only this source (address or id).")] = None,
    as_json: Json = False,
) -> None:
    """Show the newest stories, each once."""
    with opened() as (parts, owner):
        source_id = parts.db.read_now(sources.named, owner, source) if source else None
        wanted = Filter(source_id=source_id, unread=unread)
        found, now = parts.db.read_now(posts.read_stream, owner, wanted, limit=limit), parts.now()
    show_list(
        found, as_json, StoryJson, ("when", "source", "title"), lambda story: _story_row(story, now),
        if_empty="Nothing here yet. `headwater sources` shows what you follow and how it is doing.",
    )  # fmt: skip


def _story_row(story: Story, now: datetime) -> tuple[str, str, str]:
    first = story.post
    more = f" (+{story.tellings - 1:,})" if story.tellings > 1 else ""
    title = headline(first.title, first.content, first.url)
    updated = f"Updated: {story.news[0].title or title}" if story.news else title
    return ago(story.at.created_at, now), first.source + more, updated + _replies(story)


def _replies(story: Story) -> str:
    if story.thread is None:
        return ""
    known, new = story.thread.replies, story.thread.new_replies
    return f" ({known:,} {'reply' if known == 1 else 'replies'}{f', {new:,} new' if new else ''})"


def search(
    words: Annotated[
        list[str], typer.Argument(help="Words that a post must contain. `mine*` also finds mines and mined.")
    ],
    limit: Annotated[int, typer.Option(help="How many posts.", min=1, max=10_000)] = 30,
    as_json: Json = False,
) -> None:
    """Find posts by their words. The latest published come first."""
    with opened() as (parts, owner):
        found = parts.db.read_now(posts.find_words, owner, " ".join(words), limit=limit)
        now = parts.now()
    show_list(
        found, as_json, PostJson, ("when", "source", "title"),
        lambda one: (ago(one.created_at, now), one.source, headline(one.title, one.content, one.url)),
        if_empty="Nothing found.",
    )  # fmt: skip


def show_post(
    post_id: PostId,
    at: Annotated[
        str | None,
        typer.Option(help="Only what it said at this time: 2026-01-07 (the end of that day, UTC) or 2026-01-07T09:00."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a post says and said before: each text with the time it was current, newest first."""
    with opened() as (parts, owner):
        found = parts.db.read_now(posts.versions, owner, post_id, at)
    for one in found.versions:
        json_line({"post_id": post_id, **shaped(VersionJson, one)}) if as_json else _say_version(one)
    if found.thinned and not as_json:
        say(f"{found.thinned} more texts are not kept (HEADWATER_POST_VERSIONS).")


def show_replies(
    post_id: PostId,
    limit: Annotated[int, typer.Option(help="How many replies.", min=1, max=100_000)] = 100,
    as_json: Json = False,
) -> None:
    """Show the replies in the thread of a post, oldest first."""
    with opened() as (parts, owner):
        found, now = parts.db.read_now(posts.replies, owner, post_id, limit=limit), parts.now()
    show_list(
        found,
        as_json,
        PostJson,
        ("id", "when", "who", "text"),
        lambda one: (one.id, ago(one.created_at, now), one.author or "", excerpt(one.content, "")),
        if_empty="There are no replies yet.",
    )


def _say_version(one: PostVersion) -> None:
    until = f"until {one.valid_to.astimezone(UTC):%Y-%m-%d %H:%M}" if one.valid_to else "until now"
    say(f"Version {one.version}, from {one.valid_from.astimezone(UTC):%Y-%m-%d %H:%M} {until} (UTC)")
    say(f"  {one.title or 'Without a title'}")
    for words in (one.url, one.author, plain(one.content)):
        if words:
            say(f"  {words}")
    say("")


@images.command("count")
def count_images(as_json: Json = False) -> None:
    """Count the images that are saved, wait, failed or were skipped, in all and for each source."""
    with opened() as (parts, _):
        counts = parts.db.read_now(posts.count_images)
        by_source = parts.db.read_now(posts.count_images_by_source)
        settings = parts.settings
    if as_json:
        json_line({**counts, "downloading": settings.images == "on"})
        for one in by_source:
            json_line({"source_id": one.source_id, "source": one.source, **one.counts})
        return
    states, total = posts.IMAGE_STATES, counts["bytes"]
    by_state = {state: count for state, count in cast(dict[str, int], counts).items() if state in states}
    shown = posts.image_words(by_state, downloading=settings.images == "on")
    numbers = ", ".join(f"{count} {name}" for name, count in shown.items())
    say(f"{numbers}; {total / MEGABYTE:.1f} MB in files.")
    say(_whether_downloading(settings, total))
    if by_source:
        rows = [(one.source_id, one.source, *(one.counts[state] for state in states)) for one in by_source]
        table("", ("id", "source", *shown), rows)


def _whether_downloading(settings: Settings, total: int) -> str:
    if settings.images == "off":
        return "Images are not downloaded. HEADWATER_IMAGES=on changes that."
    if total >= settings.images_total_mb * MEGABYTE:
        return f"Nothing more is downloaded: HEADWATER_IMAGES_TOTAL_MB is {settings.images_total_mb}."
    return f"A running Headwater downloads what waits, up to {settings.images_total_mb} MB in all."


@images.command("failed")
def list_failed_images(
    limit: Annotated[int, typer.Option(help="How many images at most.", min=1, max=10_000)] = 50,
    skipped: Annotated[bool, typer.Option("--skipped", help="Those that are never downloaded instead.")] = False,
    as_json: Json = False,
) -> None:
    """List images that could not be downloaded, and why, the newest first."""
    with opened() as (parts, _):
        found = parts.db.read_now(posts.settled_images, "skipped" if skipped else "failed", limit)
        now = parts.now()
    columns = ("id", "attempts", "last tried", "address", "error")
    show_list(
        found, as_json, ImageJson, columns,
        lambda one: (one.id, one.attempts, ago(one.tried_at, now), one.url, one.error),
    )  # fmt: skip


@images.command("retry")
def retry_images(as_json: Json = False) -> None:
    """Have all images that failed tried again; a running Headwater does it."""
    with opened() as (parts, _):
        waiting = parts.db.write_now(posts.retry_images, parts.now())
    json_line({"waiting": waiting}) if as_json else say(f"{waiting} failed images are tried again.")
