"""What most commands begin with: settings, an open store with the right schema, the owner, an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import orjson
import typer

from headwater import wire
from headwater.app import instance
from headwater.cli.output import configure_logs
from headwater.errors import BadInput
from headwater.model import Reader
from headwater.settings import load
from headwater.wire import Parts

T = TypeVar("T")
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
SourceName = Annotated[str, typer.Argument(help="Address or id of a source that you follow.")]
PostId = Annotated[int, typer.Argument(help="Id of a post.", min=1)]


@contextmanager
def opened_parts(**given: Any) -> Iterator[Parts]:
    """Opens the parts with the settings of the environment, and closes them at the end."""
    loaded = load(**given)
    configure_logs(loaded.settings.log_level, loaded.settings.log_format)
    parts = wire.open_parts(loaded)
    try:
        yield parts
    finally:
        parts.close()


@contextmanager
def opened() -> Iterator[tuple[Parts, Reader]]:
    """Opens the parts and the store. A new store is made; an old one waits for `headwater db upgrade` or `up`."""
    with opened_parts() as parts:
        yield parts, wire.prepare_store(parts) if instance.is_empty(parts.db) else instance.owner(parts.db)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs on uvloop where it is installed: it takes half the CPU of asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def source_settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Reads the settings of a source as a person types them, `name=value` each. A value may be JSON."""
    found: dict[str, Any] = {}
    for pair in given or ():
        name, mark, value = pair.partition("=")
        if not mark or not name.strip():
            raise BadInput(f"{pair!r} is not a setting: write NAME=VALUE.")
        try:
            found[name.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[name.strip()] = value
    return found
