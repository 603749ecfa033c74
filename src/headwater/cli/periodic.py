"""`headwater run` and `headwater crawl --warm-up`: periodic work done by hand, now (A13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer

from headwater import wire
from headwater.cli import crawling, naming
from headwater.cli.loop import run_async
from headwater.cli.output import json_line, say, table
from headwater.cli.session import opened
from headwater.crawl.warm_up import Warmed
from headwater.errors import BadInput
from headwater.model import Reader, Source
from headwater.store import sources
from headwater.store.sources import leases
from headwater.wire import Parts
from headwater.work import periodic
from headwater.work.periodic import JOBS, Job

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]


def run_job(
    name: Annotated[str | None, typer.Argument(help="Which; none: list all.")] = None, as_json: Json = False
) -> None:
    """Do periodic work now, such as `clean-hot` or `daily-metrics`, and say what came of it."""
    if name is None:
        _list_jobs(as_json)
        return
    job = periodic.named(name)
    if job is None:
        raise BadInput(f"There is no periodic work {name}. `headwater run` lists what there is.")
    with opened() as (parts, _):
        result = run_async(job.work(wire.job_tools(parts, _visit_due)))
    result = result._asdict() if hasattr(result, "_asdict") else result
    json_line({"job": job.name, "result": result}) if as_json else say(f"{job.name}: {_words(result)}")


async def _visit_due(parts: Parts) -> dict[str, int]:
    ids = await parts.db.read(leases.due_ids, parts.now())
    failed = await crawling.crawl(parts, ids, lambda _: None)
    return {"visited": len(ids), "failed": failed}


def warm_up(which: Sequence[str], on_warmed: Callable[[Warmed], None]) -> int:
    """Cache the listings of these communities, or of the pool's, waiting for the budget; returns how many it were."""
    with opened() as (parts, owner):
        named = [_community(parts, owner, name) for name in which] if which else None
        return int(run_async(wire.warm_up(parts, named, patient=True, on_warmed=on_warmed)))


def _community(parts: Parts, owner: Reader, name: str) -> Source:
    source_id = naming.source_id(parts, owner, name)
    found = parts.db.read_now(sources.watched_one, owner, source_id, parts.now())
    assert found is not None
    if found.kind != "reddit":
        raise BadInput(f"{name} is no community: only those are warmed up.")
    return Source(found.id, found.kind, found.address, found.title)


def _list_jobs(as_json: bool) -> None:
    if as_json:
        for job in JOBS:
            json_line(_job_json(job))
        return
    table("", ("name", "every", "does"), [(job.name, span(job.every), job.does) for job in JOBS])


def _job_json(job: Job) -> dict[str, object]:
    expires = job.expires.total_seconds() if job.expires else None
    return {"name": job.name, "every_seconds": job.every.total_seconds(), "expires_seconds": expires,
            "queue": job.queue, "task": job.task, "does": job.does}  # fmt: skip


def span(length: timedelta) -> str:
    """A length of time as people say it: 5 min, 2 h, 1 day."""
    minutes = int(length.total_seconds() // 60)
    if minutes % 1440 == 0:
        return "1 day" if minutes == 1440 else f"{minutes // 1440} days"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def _words(result: Any) -> str:
    if isinstance(result, dict):
        return ", ".join(f"{value if value else 0} {name.replace('_', ' ')}" for name, value in result.items())
    return "done" if result is None else f"{result}"
