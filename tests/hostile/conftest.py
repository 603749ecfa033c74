from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.target import Target, attacked
from support.web import Web, web


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A Headwater that may visit loopback."""
    with attacked(tmp_path_factory.mktemp("target")) as made:
        yield made


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A Headwater as it is installed: it may visit public addresses only."""
    with attacked(tmp_path_factory.mktemp("strict"), HEADWATER_ALLOW_PRIVATE_NETWORKS="false") as made:
        yield made


@pytest.fixture(scope="module")
def world() -> Iterator[Web]:
    """One web for a whole module, so that no two of its sources have the same address: each test has its own paths."""
    with web() as made:
        yield made
