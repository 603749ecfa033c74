"""`headwater pool`, `headwater tiers` and `headwater comments`: what is watched for everybody, and how often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.app import pool
from headwater.app.pool import TierJson
from headwater.cli.session import (
    Json,
    SourceName,
    exit_if,
    json_line,
    opened,
    output,
    read_file,
    say,
    show_list,
    table,
)
from headwater.follow.pool import Assignment

app = typer.Typer(help="The pool: sources that are watched for everybody, by category and tier.", no_args_is_help=True)
tiers = typer.Typer(help="How often each source is visited, by how much it publishes.")


@app.command("import")
def import_pool(
    file: Annotated[
        Path | None, typer.Argument(help="A list in JSON or CSV. Default: the one that comes with Headwater.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Put the sources of a list into the pool and follow them. Importing a list again changes nothing."""
    candidates = pool.read_list(read_file(file) if file else None)
    with opened(or_new=True) as (parts, owner):
        done = parts.db.write_now(pool.import_list, owner, candidates, parts.now())
    inactive = sum(not one.is_active for one in candidates)
    if as_json:
        json_line({**done._asdict(), "inactive": inactive})
    else:
        left_out = f" {inactive} are not active in the list and were left out." if inactive else ""
        say(f"{done.added} added, {done.already} already in the pool, {len(done.refused)} refused.{left_out}")
        for address, reason in done.refused.items():
            say(f"  {address}: {reason}")
    exit_if(len(done.refused))


@app.command("export")
def export_pool(
    file: Annotated[Path | None, typer.Argument(help="Where to write. Default: standard output.")] = None,
    as_json: Json = False,
) -> None:
    """Write the pool as a list in JSON, which `headwater pool import` reads."""
    with opened() as (parts, _):
        document, count = parts.db.read_now(pool.exported)
    with output(file) as out:
        out.write(document)
    if file:
        json_line({"file": str(file), "sources": count}) if as_json else say(f"{count} sources in {file}.")


@app.command("list")
def list_pool(
    tier: Annotated[str | None, typer.Option(help="Only this tier: high, medium or low.")] = None,
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    as_json: Json = False,
) -> None:
    """List what is in the pool."""
    with opened() as (parts, _):
        found = parts.db.read_now(pool.members, tier, category)
    if as_json:
        for one in found:
            json_line(one._asdict())
        return
    columns = ("id", "source", "tier", "categories", "posts a day", "quality", "visited")
    rows = [
        (one.source_id, one.address, one.tier, " ".join(one.categories), _number(one.average), _share(one.quality),
         "yes" if one.active else "no")
        for one in found
    ]  # fmt: skip
    table("", columns, rows)
    if not found:
        say("The pool is empty. `headwater pool import` fills it.")


@tiers.callback(invoke_without_command=True)
def _show_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show_tiers()


@tiers.command("show")
def show_tiers(as_json: Json = False) -> None:
    """Show the tier that each source should have, and what `headwater tiers apply` would change.

    `headwater tiers` alone shows the same.
    """
    with opened() as (parts, _):
        found = parts.db.read_now(pool.tier_changes)
    _say_assignments(found, as_json)
    if not as_json:
        changes = sum(one.changes for one in found)
        say(f"{len(found)} sources, {changes} would change." if found else "No source is visited yet.")


@tiers.command("apply")
def apply_tiers(as_json: Json = False) -> None:
    """Give every source its tier, and show what changed. The new interval applies after the next visit."""
    with opened() as (parts, _):
        changed = parts.db.write_now(pool.apply_tiers)
    _say_assignments(changed, as_json)
    if not as_json:
        say(f"{len(changed)} changed.")


@tiers.command("pin")
def pin_tier(
    source: SourceName,
    tier: Annotated[str, typer.Argument(help="high, medium or low. `none` removes the pin.")],
    as_json: Json = False,
) -> None:
    """Keep a source in a tier, however much it publishes."""
    wanted = None if tier == "none" else pool.tier_named(tier)
    with opened() as (parts, owner):
        source_id = parts.db.write_now(pool.pin_tier, owner, source, wanted)
    if as_json:
        json_line({"source_id": source_id, "pinned_tier": wanted})
    else:
        say(f"{source} stays in tier {wanted}." if wanted else f"The tier of {source} follows its average again.")


def read_comments(
    source: Annotated[str, typer.Argument(help="A community that you follow.")],
    off: Annotated[bool, typer.Option("--off", help="Stop reading them.")] = False,
    as_json: Json = False,
) -> None:
    """Read the newest comments of a community too. This costs one more request per visit."""
    with opened() as (parts, owner):
        source_id = parts.db.write_now(pool.read_comments, owner, source, wanted=not off)
    if as_json:
        json_line({"source_id": source_id, "comments": not off})
    else:
        say(f"Comments of {source} are {'no longer read' if off else 'read from its next visit'}.")


def _say_assignments(found: list[Assignment], as_json: bool) -> None:
    columns = ("id", "source", "posts a day", "tier", "should be", "change")
    show_list(found, as_json, TierJson, columns, lambda one: (
        one.standing.source_id, one.standing.address, _number(one.standing.average), one.standing.tier,
        f"{one.tier.name}{' (pinned)' if one.standing.pinned else ''}" if one.tier else None,
        f"every {one.tier.interval_seconds // 3600} h" if one.tier and one.changes else None,
    ))  # fmt: skip


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
