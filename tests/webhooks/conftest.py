from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from webhooks.receiver import Receiver, receiving
from webhooks.sending import Sending, opened


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def environ(store_url: str, tmp_path: Path) -> dict[str, str]:
    return {"HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}


@pytest.fixture
def sending(environ: dict[str, str]) -> Iterator[Sending]:
    """On each database in turn."""
    with opened(environ) as made:
        yield made
