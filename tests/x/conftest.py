from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater import wire
from headwater.settings import load
from headwater.sim.x import serving
from headwater.sim.x_world import SimX
from headwater.wire import Parts
from support.web import ALLOW_LOOPBACK

OpenParts = Callable[..., Parts]


@pytest.fixture
def serve() -> Iterator[Callable[[SimX], SimX]]:
    with ExitStack() as stack:
        yield lambda x: stack.enter_context(serving(x))


@pytest.fixture
def open_parts(store_url: str, tmp_path: Path) -> Iterator[OpenParts]:
    """A Headwater that lives in the time of a simulated X; `given` are more settings."""
    opened = []

    def open(x: SimX, **given: str) -> Parts:
        environ = {
            **ALLOW_LOOPBACK,
            "HEADWATER_DATABASE_URL": store_url,
            "HEADWATER_DATA_DIR": str(tmp_path / "data"),
            "HEADWATER_HOST_GAP_SECONDS": "0",
            "HEADWATER_READER_PROCESSES": "1",
            "HEADWATER_X_API_URL": x.url,
            "HEADWATER_X_BEARER_TOKEN": x.token,
            **{f"HEADWATER_{name}": value for name, value in given.items()},
        }
        parts = wire.open_parts(load(environ))
        parts.now = x.clock.now
        wire.prepare_store(parts)
        opened.append(parts)
        return parts

    yield open
    for parts in opened:
        parts.close()
