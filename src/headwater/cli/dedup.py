"""`headwater dedup`: which posts are one story, why, and what to do if they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Connection

from headwater.cli.output import ago, json_line, say, table
from headwater.cli.session import opened
from headwater.consumers.fold import FoldOptions
from headwater.errors import BadInput, NotFound
from headwater.model import PostText
from headwater.store import stories
from headwater.wire import Parts

ROUND = 1000

app = typer.Typer(help="Which posts are one story, and why.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PostId = Annotated[int, typer.Argument(help="Id of a post.", min=1)]
StoryId = Annotated[int, typer.Argument(help="Id of a story, or of any post in it.", min=1)]


@app.command("run")
def run(
    posts: Annotated[list[int] | None, typer.Option(help="Id of a post; none: all that are not decided yet.")] = None,
    threshold: Annotated[float, typer.Option(help="Fold only what scores at least this.", min=0, max=1)] = 0.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be folded.")] = False,
    as_json: Json = False,
) -> None:
    """Decide about posts now. Those that were decided about are skipped."""
    from headwater.api import stories as asked

    wanted = FoldOptions(threshold=threshold, dry=dry_run)
    decided, joined = 0, []
    with opened() as (parts, _):
        for ids in _in_rounds(posts) if posts else _undecided(parts):
            decisions = parts.db.write_now(parts.folding.fold, ids, parts.now(), wanted)
            decided += len(decisions)
            joined += [one for one in decisions if one.rule != "first"]
    if as_json:
        json_line({"decided": decided, "joined": [asked.decision_json(one) for one in joined]})
        return
    table(
        "", ("post", "story", "rule", "score", "why"), [(d.post_id, d.story_id, d.rule, d.score, d.why) for d in joined]
    )
    say(f"{decided} posts decided, {len(joined)} {'would join' if dry_run else 'joined'} a story.")


@app.command("show")
def show(story_id: StoryId, as_json: Json = False) -> None:
    """A story: its members, the earliest first, and why each is in it."""
    from headwater.api import stories as asked

    with opened() as (parts, owner):
        story = parts.db.read_now(asked.group_json, owner, parts.db.read_now(_story_of, story_id))
        now = parts.now()
        members = parts.db.read_now(asked.group_of, owner, story["group_id"])
    if as_json:
        json_line(story)
        return
    rows = [(one.post_id, ago(one.created_at, now), one.source, one.title, one.rule, one.why) for one in members]
    table(f"Story {story['group_id']}", ("post", "when", "source", "title", "rule", "why"), rows)


@app.command("undo")
def undo(
    story_id: StoryId,
    post: Annotated[int | None, typer.Option(help="Take only this post out of it.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """Let the posts of a story stand alone again. They are not folded together any more."""
    from headwater.api import stories as asked

    with opened() as (parts, owner):
        if post is not None:
            left = parts.db.write_now(asked.part, owner, post, parts.now())
        else:
            story = parts.db.read_now(_story_of, story_id)
            left = parts.db.write_now(asked.undo, owner, story, parts.now())
    if as_json:
        json_line({"post_ids": left})
    else:
        say(f"{len(left)} posts stand apart now, and stay so.")


@app.command("explain")
def explain(one: PostId, other: PostId, as_json: Json = False) -> None:
    """Whether two posts are the same text or tell of one event, and why."""
    from headwater.dedup.explain import explained

    with opened() as (parts, _):
        found = {post.id: post for post in parts.db.read_now(stories.texts, [one, other])}
        places = parts.db.read_now(stories.decided, [one, other])
        apart = other in parts.db.read_now(stories.apart_from, [one]).get(one, set())
    said = explained(_there(found, one), _there(found, other))
    together = one in places and other in places and places[one].decision.story_id == places[other].decision.story_id
    if as_json:
        json_line({**said._asdict(), "in_one_story": together, "told_apart": apart})
        return
    say(said.why)
    if apart:
        say("A person has told them apart: they are not folded.")
    elif together:
        say("They are in one story.")


@app.command("evaluate")
def evaluate(
    file: Annotated[Path, typer.Argument(help="Labelled posts, a JSON object a line; .xz is decompressed.")],
    level: Annotated[str, typer.Option(help="repeats or stories.")] = "repeats",
    shuffle: Annotated[int | None, typer.Option(help="Seed: posts in random order, without their times.")] = None,
    as_json: Json = False,
) -> None:
    """Run the engine over labelled posts as in production and compare its groups with the labels."""
    from headwater.dedup.evaluate import evaluate as measure

    if level not in ("repeats", "stories"):
        raise BadInput(f"--level {level}: choose repeats or stories.")
    if not file.is_file():
        raise BadInput(f"There is no file {file}.")
    result = measure(file, level, shuffle=shuffle)
    if as_json:
        json_line(result)
    else:
        table("", ("measure", "value"), list(result.items()))


def _in_rounds(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), ROUND):
        yield ids[start : start + ROUND]


def _undecided(parts: Parts) -> Iterator[list[int]]:
    after = 0
    while ids := parts.db.read_now(stories.undecided_after, after, ROUND):
        yield ids
        after = ids[-1]


def _story_of(conn: Connection, some_id: int) -> int:
    place = stories.decided(conn, [some_id]).get(some_id)
    return place.decision.story_id if place else some_id


def _there(found: dict[int, PostText], post_id: int) -> PostText:
    if post_id not in found:
        raise NotFound(f"There is no post {post_id}.")
    return found[post_id]
