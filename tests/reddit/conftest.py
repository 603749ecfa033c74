from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater import wire
from headwater.settings import load
from headwater.sim.reddit import serving
from headwater.sim.reddit_world import SimReddit
from headwater.wire import Parts
from support.web import ALLOW_LOOPBACK

OpenParts = Callable[..., Parts]


@pytest.fixture
def serve() -> Iterator[Callable[[SimReddit], SimReddit]]:
    with ExitStack() as stack:
        yield lambda reddit: stack.enter_context(serving(reddit))


@pytest.fixture
def open_parts(store_url: str, tmp_path: Path) -> Iterator[OpenParts]:
    """A Headwater that lives in the time of a simulated Reddit; `given` are more settings."""
    opened = []

    def open(reddit: SimReddit, **given: str) -> Parts:
        key = {"HEADWATER_REDDIT_CLIENT_ID": reddit.client[0], "HEADWATER_REDDIT_CLIENT_SECRET": reddit.client[1]}
        environ = {
            **ALLOW_LOOPBACK,
            **key,
            "HEADWATER_DATABASE_URL": store_url,
            "HEADWATER_DATA_DIR": str(tmp_path / "data"),
            "HEADWATER_HOST_GAP_SECONDS": "0",
            "HEADWATER_READER_PROCESSES": "1",
            "HEADWATER_REDDIT_URL": reddit.url,
            "HEADWATER_REDDIT_API_URL": reddit.url,
            **{f"HEADWATER_{name}": value for name, value in given.items()},
        }
        parts = wire.open_parts(load(environ))
        parts.now = reddit.clock.now
        wire.prepare_store(parts)
        opened.append(parts)
        return parts

    yield open
    for parts in opened:
        parts.close()
