"""`headwater dedup`: which posts are one story, why, and what to do if they are not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from headwater.app import groups, samples, stories
from headwater.app.groups import FoldConfiguration
from headwater.app.shapes import shaped
from headwater.app.stories import DecisionJson, GroupJson
from headwater.app.tellings import LeadsJson
from headwater.cli.session import PostId, ago, json_line, opened, say, table
from headwater.model import PostText

app = typer.Typer(help="Which posts are one story, and why.", no_args_is_help=True)

# As long as the window of folding is by default.
SAMPLE_HOURS = 72

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Method = Literal["auto", "manual", "hybrid"]
StoryId = Annotated[int, typer.Argument(help="Id of a story, or of any post in it.", min=1)]


@app.command("run")
def run(
    posts: Annotated[
        list[int] | None, typer.Option(help="Id of a post. Can be repeated. Default: all that are not decided yet.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Fold only what scores at least this.", min=0, max=1)] = None,
    exact: Annotated[bool | None, typer.Option(help="Fold exact repeats.")] = None,
    similar: Annotated[bool | None, typer.Option(help="Fold similar posts and stories.")] = None,
    method: Annotated[
        Method | None,
        typer.Option(help="auto folds. manual only says what it would fold. hybrid folds only exact repeats."),
    ] = None,
    embeddings: Annotated[bool | None, typer.Option(help="Use word embeddings.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Posts in one transaction.", min=1, max=10_000)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be folded.")] = False,
    as_json: Json = False,
) -> None:
    """Decide about posts now. Posts that are already decided are skipped.

    What no option says is as you chose for runs (`PUT /api/folding/runs`), or as the settings have it.
    """
    asked = FoldConfiguration(threshold, exact, similar, method, embeddings, batch_size=batch_size)
    with opened() as (parts, owner):
        own = parts.db.read_now(groups.chosen_configuration, owner)
        config = asked.over(own).over(parts.fold_configuration)
        how = config.options()
        how = how._replace(dry=how.dry or dry_run)
        folder = parts.folding_with(embeddings=config.use_embedding_model is True, field="--embeddings")
        decisions = groups.fold_now(parts.db, folder, posts, how, parts.now, batch_size=config.batch_size)
    joined = [one for one in decisions if one.rule != "first"]
    if as_json:
        json_line({"decided": len(decisions), "joined": [shaped(DecisionJson, one) for one in joined]})
        return
    rows = [(one.post_id, one.story_id, one.rule, one.score, one.why) for one in joined]
    table("", ("post", "story", "rule", "score", "why"), rows)
    say(f"{len(decisions)} posts decided, {len(joined)} {'would join' if how.dry else 'joined'} a story.")


@app.command("show")
def show(story_id: StoryId, as_json: Json = False) -> None:
    """Show a story: its posts, earliest first, and why each is in it. An undone story is shown as it was."""
    with opened() as (parts, owner):
        story, now = parts.db.read_now(stories.group_named, owner, story_id), parts.now()
    if as_json:
        json_line(shaped(GroupJson, story))
        return
    rows = [(one.post_id, ago(one.created_at, now), one.source, one.title, one.rule, one.why) for one in story.members]
    if story.parted:
        who = story.parted.by or "somebody who runs this Headwater"
        for_whom = " for everybody" if story.parted.for_everybody else ""
        say(f"Undone by {who} {ago(story.parted.at, now)}{for_whom}. This is how it was.")
    table(f"Story {story.story_id}", ("post", "when", "source", "title", "rule", "why"), rows)
    if story.tellings > len(story.members):
        say(f"and {story.tellings - len(story.members):,} more.")


@app.command("leads")
def leads(as_json: Json = False) -> None:
    """Show how often each source is first, and by how much, over your newest stories."""
    with opened() as (parts, owner):
        found = parts.db.read_now(stories.leads, owner)
    if as_json:
        json_line(shaped(LeadsJson, found))
        return
    rows = [
        (
            one.source,
            one.stories,
            one.first,
            "" if one.median_lead_seconds is None else _minutes(one.median_lead_seconds),
        )
        for one in found.sources
    ]
    table("", ("source", "stories", "first in", "median lead"), rows)
    say(f"{found.stories:,} stories were compared.")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min"


@app.command("undo")
def undo(
    story_id: StoryId,
    post: Annotated[int | None, typer.Option(help="Take only this post out of it.", min=1)] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Undo it for every tenant.")] = False,
    as_json: Json = False,
) -> None:
    """Take a story apart, for your tenant. Its posts are not folded together again."""
    with opened() as (parts, owner):
        if post is not None:
            apart = parts.db.write_now(stories.take_out, owner, post, parts.now(), everybody=everybody)
        else:
            apart = parts.db.write_now(stories.undo_named, owner, story_id, parts.now(), everybody=everybody)
    if as_json:
        json_line({"post_ids": apart, "for_everybody": everybody})
    else:
        say(f"{len(apart)} posts are separate now{' for everybody' if everybody else ''}, and stay so.")


@app.command("explain")
def explain(one: PostId, other: PostId, as_json: Json = False) -> None:
    """Say whether two posts have the same text or report the same event, and why."""
    with opened() as (parts, owner):
        found = parts.db.read_now(stories.explain, owner, one, other)
    if as_json:
        json_line({**found.facts, "in_one_story": found.in_one_story, "told_apart": found.told_apart})
        return
    say(found.facts["why"])
    if found.told_apart:
        say("A person has separated them, so they are not folded.")
    elif found.in_one_story:
        say("They are in one story.")


@app.command("sample")
def sample(
    file: Annotated[
        Path | None,
        typer.Argument(help="Posts, one JSON object per line; .xz works too. Default: the stored posts of the window."),
    ] = None,
    count: Annotated[int, typer.Option(help="How many merges, and how many near misses.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Seed that decides which pairs are drawn.")] = 1,
    judged: Annotated[Path | None, typer.Option(help="A sheet with verdicts, to be summed up.")] = None,
    as_json: Json = False,
) -> None:
    """Print a sheet of merges and near misses for a person to judge, or sum up a judged sheet."""
    if judged is not None:
        report = samples.judged_report(judged)
        columns = ("pairs", "number", "right", "topic", "wrong", "score says")
        json_line({"of": judged.stem, "tallies": report}) if as_json else table("", columns, report)
        return
    found = samples.posts_of_file(file) if file else _posts_of_window()
    if not as_json:
        say(samples.sample_sheet(found, count, seed))
        return
    for line in samples.sample_lines(found, count, seed):
        json_line(line)


def _posts_of_window() -> list[PostText]:
    with opened() as (parts, _):
        return parts.db.read_now(samples.posts_of_window, parts.now() - timedelta(hours=SAMPLE_HOURS))


@app.command("evaluate")
def evaluate(
    file: Annotated[Path, typer.Argument(help="Labelled posts, one JSON object per line; .xz works too.")],
    level: Annotated[str, typer.Option(help="repeats or stories.")] = "repeats",
    shuffle: Annotated[
        int | None, typer.Option(help="Seed. Takes the posts in random order, without their times.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the engine over labelled posts as in production and compare its groups with the labels."""
    result = stories.evaluate(file, level, shuffle)
    json_line(result) if as_json else table("", ("measure", "value"), list(result.items()))
