"""`headwater checkpoints` and `headwater stats`: how far the crawls of lists got, and what they brought."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.app.shapes.checkpoints import checkpoint_json, statistics_json
from headwater.cli import naming
from headwater.cli.output import ago, json_line, say, table
from headwater.cli.session import opened
from headwater.crawl.checkpoint import Checkpoint
from headwater.errors import NotFound
from headwater.model import Reader
from headwater.store.visits import checkpoints, statistics
from headwater.store.visits.checkpoints import CheckpointRow
from headwater.wire import Parts

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
Named = Annotated[str, typer.Argument(help="Address or id of a source that you follow.")]

app = typer.Typer(help="How far the crawls of lists got: boards, news sites, accounts.", no_args_is_help=True)


@app.command("list")
def list_checkpoints(as_json: Json = False) -> None:
    """The checkpoints of all lists that you follow."""
    with opened() as (parts, owner):
        found, now = parts.db.read_now(checkpoints.followed, owner), parts.now()
    if as_json:
        for row in found:
            json_line(checkpoint_json(row))
        return
    columns = ("id", "site", "board", "status", "page", "last item", "updated", "problem")
    table("", columns, [
        (row.source_id, row.site, row.board, row.status, row.current_page, row.last_thread_id,
         ago(row.updated_at, now), row.error) for row in found
    ])  # fmt: skip
    if not found:
        say("None: no list was crawled yet. `headwater add ADDRESS --kind forum` follows one.")


@app.command("show")
def show_checkpoint(source: Named, as_json: Json = False) -> None:
    """All that the checkpoint of a source says."""
    with opened() as (parts, owner):
        row = _checkpoint(parts, owner, source)
    shown = checkpoint_json(row)
    json_line(shown) if as_json else table("", ("what", "is"), list(shown.items()))


@app.command("clear")
def clear_checkpoint(source: Named, as_json: Json = False) -> None:
    """Forget how far the crawl of a source got. It looks through the whole list again; what is stored stays."""
    with opened() as (parts, owner):
        row = _checkpoint(parts, owner, source)
        parts.db.write_now(Checkpoint(row).clear)
    json_line({"cleared": row.source_id}) if as_json else say(f"{row.site}{row.board} is looked through again.")


def show_statistics(as_json: Json = False) -> None:
    """What the lists that you follow have brought: threads, articles, pictures, what failed, board by board."""
    with opened() as (parts, owner):
        found = parts.db.read_now(statistics.gather, owner)
    if as_json:
        json_line(statistics_json(found))
        return
    say(f"{found.total('forum')} threads and {found.total('news')} articles read, {found.failed} failed.")
    if found.images:
        say("Pictures: " + ", ".join(f"{count} {state}" for state, count in sorted(found.images.items())) + ".")
    columns = ("id", "kind", "site", "board", "crawl", "read", "failed", "waiting", "posts", "pictures")
    table("", columns, [
        (
            *(one.source_id, one.kind, one.site, one.board, one.status),
            *(one.done, one.failed, one.waiting, one.posts, sum(one.images.values())),
        )
        for one in found.boards
    ])  # fmt: skip


def _checkpoint(parts: Parts, owner: Reader, source: str) -> CheckpointRow:
    row = parts.db.read_now(checkpoints.of_source, naming.source_id(parts, owner, source))
    if row is None:
        raise NotFound(f"{source} has no checkpoint: no list of it was crawled.")
    return row
