from __future__ import annotations

from collections.abc import Iterator

import pytest

from images.saving import Saving, opened


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "HEADWATER_IMAGES": "on"}


@pytest.fixture
def saving(environ: dict[str, str]) -> Iterator[Saving]:
    """On each database in turn."""
    with opened(environ) as made:
        yield made
