"""How commands speak: JSON lines for programs, text and tables for people, errors in one shape, and the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
import structlog
import structlog.tracebacks
import typer

from headwater.errors import BadInput, HeadwaterError

# rich is loaded only where something is drawn: `headwater up` runs for months and draws nothing.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

EXIT_FAILED = 1
EXIT_USAGE = 2

# Local variables stay out of the log: a token may be among them.
_tracebacks = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))

# Bell, backspace and the like. A title must not play tricks with the terminal.
_CONTROL_CODES = dict.fromkeys((7, 8, 11, 12, 13))


@cache
def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def json_line(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, default=str).decode() + "\n")
    sys.stdout.flush()


def say(words: str) -> None:
    sys.stdout.write(words.translate(_CONTROL_CODES) + "\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.table import Table

    shown = Table(*columns, title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    _console().print(shown, markup=False)


def fail(error: HeadwaterError) -> int:
    """Says what went wrong and what to do. Returns the exit code."""
    if "--json" in sys.argv:
        sys.stderr.write(orjson.dumps({"error": error.code, "detail": error.detail}).decode() + "\n")
    else:
        errors = _console(stderr=True)
        errors.print(f"headwater: {error.detail}", markup=False, style="red" if errors.is_terminal else None)
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


def exit_if(failures: int) -> None:
    """Ends the command with a failure, if there was one."""
    if failures:
        raise typer.Exit(EXIT_FAILED)


def progress() -> Progress:
    """Returns a progress bar, which shows on a terminal and not in a pipe."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    errors = _console(stderr=True)
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


def every(length: timedelta) -> str:
    """Formats an interval: 5 min, 2 h, 1 day."""
    minutes = int(length.total_seconds() // 60)
    if minutes % 1440 == 0:
        return "1 day" if minutes == 1440 else f"{minutes // 1440} days"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def configure_logs(level: str, form: str) -> None:
    """Logs one line an event to standard error: text on a terminal, JSON elsewhere."""
    as_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if as_text else [_tracebacks]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _cell(value: object) -> str:
    return "" if value is None else str(value)
