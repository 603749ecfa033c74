from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from headwater.sim.x import serving
from headwater.wire import Parts
from support.living import open_simulated, serve_fixture

OpenParts = Callable[..., Parts]


serve = serve_fixture(serving)


@pytest.fixture
def open_parts(until_the_end: ExitStack, environ: dict[str, str]) -> OpenParts:
    """A Headwater that lives in the time of a simulated X; `given` are more settings."""
    return lambda x, **given: open_simulated(
        until_the_end, environ, x.clock, **{"X_API_URL": x.url, "X_BEARER_TOKEN": x.token, **given}
    )
