"""Visits and periodic work, now and in this process, and how far the crawls of lists got."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from headwater import wire
from headwater.app import crawling, instance, posts, refresh, sources
from headwater.app.crawling import CheckpointJson, StatisticsJson
from headwater.app.shapes import shaped
from headwater.cli.session import (
    Json,
    SourceName,
    ago,
    every,
    exit_if,
    json_line,
    opened,
    progress,
    run_async,
    say,
    say_aside,
    show_list,
    table,
)
from headwater.crawl.warm_up import Warmed
from headwater.errors import BadInput
from headwater.store.sources.leases import Wait
from headwater.wire import JOBS, Job, Parts

WORTH_SAYING_SECONDS = 2
checkpoints = typer.Typer(help="How far the crawls of lists got: boards, news sites, accounts.", no_args_is_help=True)


def crawl(
    which: Annotated[list[str] | None, typer.Argument(help="Addresses or ids. Default: all that are due.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything you follow, due or not.")] = False,
    tier: Annotated[str | None, typer.Option(help="Everything you follow in a tier: high, medium or low.")] = None,
    warm_up: Annotated[
        bool,
        typer.Option(
            "--warm-up",
            help="Only cache the best of the month, of these communities or of the pool. No watermark moves.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Visit sources now and show what each visit found."""
    if warm_up:
        _warm_up(which or [], as_json)
        return
    with opened() as (parts, owner):
        ids = parts.db.read_now(refresh.chosen, owner, parts.now(), names=which or (), tier=tier, everything=everything)
        with progress() as bar:
            task = bar.add_task("visiting", total=len(ids))

            def on_report(report: dict[str, Any]) -> None:
                bar.advance(task)
                json_line(report) if as_json else _say_report(report)

            failures = run_async(visit_now(parts, ids, on_report, first=bool(which)))
    if not as_json:
        say(f"{len(ids)} visited, {failures} failed.")
    exit_if(failures)


async def visit_now(
    parts: Parts,
    source_ids: Sequence[int],
    on_report: Callable[[dict[str, Any]], None] = lambda _: None,
    *,
    whole: bool = True,
    first: bool = False,
) -> int:
    """Visits sources, then lets the consumers handle the new events. Returns how many visits failed.

    Says on standard error what a visit waits for, once for each reason.
    """
    said: set[str] = set()

    def on_wait(wait: Wait) -> None:
        seconds = math.ceil((wait.until - parts.now()).total_seconds())
        if seconds >= WORTH_SAYING_SECONDS and wait.why not in said:
            said.add(wait.why)
            say_aside(
                f"Waiting {seconds} s: {wait.why}. Ctrl-C leaves the visit to `headwater up` or `headwater crawl`."
            )

    failures = await refresh.visit_now(
        parts.db,
        partial(wire.crawling, parts),
        source_ids,
        parts.now,
        on_report,
        whole=whole,
        on_wait=on_wait,
        first=first,
        **wire.pace(parts.settings)._asdict(),
    )
    await wire.catch_up(parts)
    return failures


def _say_report(report: dict[str, Any]) -> None:
    counts = ", ".join(f"{report[name]} {name}" for name in ("new", "updated", "duplicates") if report[name])
    say(f"{report['outcome']:9} {report['source']}  {report['error'] or counts}")


def _warm_up(names: Sequence[str], as_json: bool) -> None:
    failures = 0

    def on_warmed(one: Warmed) -> None:
        nonlocal failures
        failures += one.error is not None
        json_line(one._asdict()) if as_json else say(f"{one.cached:4} cached  {one.source}  {one.error or ''}")

    cached = warm_up(names, on_warmed)
    if not as_json:
        say(f"{cached} listings cached, {failures} failed. No post was stored and no watermark moved.")
    exit_if(failures)


def warm_up(names: Sequence[str], on_warmed: Callable[[Warmed], None]) -> int:
    """Caches the listings of these communities, or of the pool's, within the budget. Returns how many were cached."""
    with opened() as (parts, owner):
        named = [parts.db.read_now(refresh.community, owner, name, parts.now()) for name in names] or None
        return run_async(wire.warm_up(parts, named, patient=True, on_warmed=on_warmed))


def run_job(
    name: Annotated[str | None, typer.Argument(help="Which job. Default: list all.")] = None,
    force_refresh: Annotated[
        bool, typer.Option("--force-refresh", help="With a warm-up: cache every listing of the pool again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a periodic job now, such as `clean-hot` or `daily-metrics`, and show its result."""
    if name is None:
        _list_jobs(as_json)
        return
    job = wire.job_named(name)
    if job is None:
        raise BadInput(f"There is no job {name}. `headwater run` lists all jobs.")
    if force_refresh and job.task != wire.BATCH:
        raise BadInput(f"--force-refresh is for `headwater run warm-up`: {job.name} does not cache listings.")
    with opened() as (parts, _):
        parts.db.write_now(instance.note_job, job.name)
        result = run_async(_result(job, parts, force_refresh))
    json_line({"job": job.name, "result": result}) if as_json else say(f"{job.name}: {_result_text(result)}")


async def _result(job: Job, parts: Parts, force_refresh: bool) -> object:
    result = await job.work(wire.periodic_tools(parts, _visit_due, force_refresh=force_refresh))
    return result._asdict() if hasattr(result, "_asdict") else result


async def _visit_due(parts: Parts) -> dict[str, int]:
    ids = await parts.db.read(refresh.due, parts.now())
    return {"visited": len(ids), "failed": await visit_now(parts, ids)}


def _list_jobs(as_json: bool) -> None:
    if as_json:
        for job in JOBS:
            json_line(_job_json(job))
        return
    table("", ("name", "every", "does"), [(job.name, every(job.every), job.does) for job in JOBS])


def _job_json(job: Job) -> dict[str, object]:
    expires = job.expires.total_seconds() if job.expires else None
    return {"name": job.name, "every_seconds": job.every.total_seconds(), "expires_seconds": expires,
            "queue": job.queue, "task": job.task, "does": job.does}  # fmt: skip


def _result_text(result: Any) -> str:
    if isinstance(result, dict):
        return ", ".join(f"{_amount(value)} {name.replace('_', ' ')}" for name, value in result.items())
    return "done" if result is None else f"{result}"


def _amount(value: Any) -> str:
    """Returns a number, or how many there are of what a job lists, with what each says."""
    if not isinstance(value, list):
        return str(value or 0)
    details = "; ".join(str(getattr(one, "detail", one)) for one in value)
    return f"{len(value)} ({details})" if value else "0"


@checkpoints.command("list")
def list_checkpoints(as_json: Json = False) -> None:
    """List the checkpoints of all lists you follow."""
    with opened() as (parts, owner):
        found, now = parts.db.read_now(crawling.every_checkpoint, owner), parts.now()
    columns = ("id", "site", "board", "status", "page", "last item", "updated", "problem")
    show_list(
        found, as_json, CheckpointJson, columns,
        lambda one: (one.source_id, one.site, one.board, one.status, one.current_page, one.last_thread_id,
                     ago(one.updated_at, now), one.error),
        if_empty="There are none. Either no list was crawled yet, or its checkpoint was cleared.",
    )  # fmt: skip


@checkpoints.command("show")
def show_checkpoint(source: SourceName, as_json: Json = False) -> None:
    """Show the whole checkpoint of a source."""
    with opened() as (parts, owner):
        source_id = parts.db.read_now(sources.named, owner, source)
        found = shaped(CheckpointJson, parts.db.read_now(crawling.checkpoint, owner, source_id, parts.now()))
    json_line(found) if as_json else table("", ("field", "value"), list(found.items()))


@checkpoints.command("clear")
def clear_checkpoint(source: SourceName, as_json: Json = False) -> None:
    """Forget how far the crawl of a source got. The next crawl reads the whole list again. Stored posts stay."""
    with opened() as (parts, owner):
        source_id = parts.db.read_now(sources.named, owner, source)
        row = parts.db.write_now(crawling.clear_checkpoint, owner, source_id, parts.now())
    json_line({"cleared": row.source_id}) if as_json else say(f"{row.site}{row.board} will be read from its start.")


def show_statistics(as_json: Json = False) -> None:
    """Count what was read from the lists you follow: threads, articles, images and failures, board by board."""
    with opened() as (parts, owner):
        found = parts.db.read_now(crawling.statistics, owner)
        downloading = parts.settings.images == "on"
    if as_json:
        json_line(shaped(StatisticsJson, found))
        return
    read = " and ".join(f"{count} {items}" for items, count in crawling.items_read(found).items())
    say(f"{read} read, {found.failed} failed.")
    if found.images:
        images = posts.image_words(dict(sorted(found.images.items())), downloading=downloading)
        say("Images: " + ", ".join(f"{count} {state}" for state, count in images.items()) + ".")
        if not downloading:
            say("Images are not downloaded. HEADWATER_IMAGES=on changes that.")
    columns = ("id", "kind", "site", "board", "crawl", "read", "failed", "waiting", "posts", "images")
    table("", columns, [
        (
            *(one.source_id, one.kind, one.site, one.board, one.status),
            *(one.done, one.failed, one.waiting, one.posts, sum(one.images.values())),
        )
        for one in found.boards
    ])  # fmt: skip
