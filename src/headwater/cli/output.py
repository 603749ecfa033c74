"""How commands speak: JSON lines for programs, plain words and tables for people, errors in one shape."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from headwater.errors import BadInput, HeadwaterError

EXIT_FAILED = 1
EXIT_USAGE = 2

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def json_line(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, default=str).decode() + "\n")
    sys.stdout.flush()


def say(words: str) -> None:
    console.print(words, markup=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    shown = Table(*columns, title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    console.print(shown, markup=False)


def fail(error: HeadwaterError) -> int:
    """Say what went wrong and what to do; returns the exit code."""
    if "--json" in sys.argv:
        sys.stderr.write(orjson.dumps({"error": error.code, "detail": error.detail}).decode() + "\n")
    else:
        errors.print(f"headwater: {error.detail}", markup=False, style="red" if errors.is_terminal else None)
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


def progress() -> Progress:
    """A bar on a terminal, nothing in a pipe."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def ago(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    future = seconds < 0
    words = _span(abs(seconds))
    return f"in {words}" if future else f"{words} ago"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _cell(value: object) -> str:
    return "" if value is None else str(value)
