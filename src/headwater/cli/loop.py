"""The event loop that commands run on."""

from __future__ import annotations

import asyncio
from typing import Any


def run_async(work: Any) -> Any:
    """Run on uvloop where it is installed: half the CPU of the loop itself."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
