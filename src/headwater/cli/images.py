"""`headwater images`: the pictures that posts show, and what became of them."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import ago, json_line, say, table
from headwater.cli.session import opened
from headwater.settings import Settings
from headwater.store import images
from headwater.store.images import STATES, queue

MEGABYTE = 1024 * 1024

app = typer.Typer(help="The pictures that posts show, and what became of them.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
Limit = Annotated[int, typer.Option(help="At most so many.", min=1, max=10_000)]


@app.command("count")
def count(as_json: Json = False) -> None:
    """How many pictures are saved, wait, failed or were skipped, in all and for each source."""
    with opened() as (parts, _owner):
        by_state = parts.db.read_now(images.counts)
        total = parts.db.read_now(images.total_bytes)
        by_source = parts.db.read_now(images.counts_by_source)
        settings = parts.settings
    if as_json:
        json_line({**by_state, "bytes": total, "downloading": settings.images == "on"})
        for one in by_source:
            json_line({"source_id": one.source_id, "source": one.source, **one.counts})
        return
    say(", ".join(f"{by_state[state]} {state}" for state in STATES) + f"; {total / MEGABYTE:.1f} MB in files.")
    say(_whether_downloading(settings, total))
    if by_source:
        rows = [(one.source_id, one.source, *(one.counts[state] for state in STATES)) for one in by_source]
        table("", ("id", "source", *STATES), rows)


def _whether_downloading(settings: Settings, total: int) -> str:
    if settings.images == "off":
        return "Pictures are not downloaded. HEADWATER_IMAGES=on changes that."
    if total >= settings.images_total_mb * MEGABYTE:
        return f"Nothing more is downloaded: HEADWATER_IMAGES_TOTAL_MB is {settings.images_total_mb}."
    return f"A running Headwater downloads what waits, up to {settings.images_total_mb} MB in all."


@app.command("failed")
def list_failed(
    limit: Limit = 50,
    skipped: Annotated[bool, typer.Option("--skipped", help="Those that are never downloaded instead.")] = False,
    as_json: Json = False,
) -> None:
    """Pictures that could not be downloaded, and why, the newest first."""
    from headwater.api.images import image_json

    with opened() as (parts, _owner):
        found = parts.db.read_now(images.in_state, "skipped" if skipped else "failed", limit)
        now = parts.now()
    if as_json:
        for one in found:
            json_line(image_json(one))
        return
    rows = [(one.id, one.attempts, ago(one.tried_at, now), one.url, one.error) for one in found]
    table("", ("id", "attempts", "last tried", "address", "error"), rows)


@app.command("retry")
def retry(as_json: Json = False) -> None:
    """Have all pictures that failed tried again; a running Headwater does it."""
    with opened() as (parts, _owner):
        waiting = parts.db.write_now(queue.retry_failed, parts.now())
    json_line({"waiting": waiting}) if as_json else say(f"{waiting} failed pictures are tried again.")
