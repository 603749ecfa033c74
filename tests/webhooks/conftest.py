from __future__ import annotations

from collections.abc import Iterator

import pytest

from webhooks.receiver import Receiver, receiving
from webhooks.sending import Sending, opened


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    """With the usual gap between requests to a host."""
    return {name: value for name, value in environ.items() if name != "HEADWATER_HOST_GAP_SECONDS"}


@pytest.fixture
def sending(environ: dict[str, str]) -> Iterator[Sending]:
    """On each database in turn."""
    with opened(environ) as made:
        yield made
