"""What a process of ours begins with: its log and its event loop."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import structlog
import structlog.tracebacks

from headwater.urls import without_secrets

# Local variables stay out of the log: a token may be among them.
_tracebacks = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def new_runner() -> asyncio.Runner:
    """Returns what runs an event loop: on uvloop where it is installed, which takes half the CPU of asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


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
            _without_secrets,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if as_text else [_tracebacks]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _without_secrets(_logger: Any, _method: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Leaves passwords and tokens out of the addresses in a line of the log."""
    return {name: without_secrets(value) if isinstance(value, str) else value for name, value in line.items()}
