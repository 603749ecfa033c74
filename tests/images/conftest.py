from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from images.saving import Saving, opened
from support.web import Web, web


@pytest.fixture
def world() -> Iterator[Web]:
    with web() as made:
        yield made


@pytest.fixture
def environ(store_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "HEADWATER_DATABASE_URL": store_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
        "HEADWATER_IMAGES": "on",
        "HEADWATER_HOST_GAP_SECONDS": "0",
    }


@pytest.fixture
def saving(environ: dict[str, str]) -> Iterator[Saving]:
    """On each database in turn."""
    with opened(environ) as made:
        yield made
