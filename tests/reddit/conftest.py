from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from headwater.sim.reddit import serving
from headwater.sim.reddit_world import SimReddit
from headwater.wire import Parts
from support.living import open_simulated, serve_fixture

OpenParts = Callable[..., Parts]


serve = serve_fixture(serving)


@pytest.fixture
def open_parts(until_the_end: ExitStack, environ: dict[str, str]) -> OpenParts:
    """A Headwater that lives in the time of a simulated Reddit; `given` are more settings."""

    def open(reddit: SimReddit, **given: str) -> Parts:
        found = {"REDDIT_URL": reddit.url, "REDDIT_API_URL": reddit.url}
        key = dict(zip(("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"), reddit.client, strict=True))
        return open_simulated(until_the_end, environ, reddit.clock, **{**found, **key, **given})

    return open
