from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import wire
from headwater.model import Reader
from headwater.settings import load
from headwater.wire import Parts
from support.boards import Board, follow_board
from support.web import ALLOW_LOOPBACK, Web, web


@pytest.fixture
def world() -> Iterator[Web]:
    with web() as made:
        yield made


@pytest.fixture
def environ(store_url: str, tmp_path: Path) -> dict[str, str]:
    """The settings of a Headwater that may visit loopback, with no politeness between its requests."""
    return {
        **ALLOW_LOOPBACK,
        "HEADWATER_DATABASE_URL": store_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
        "HEADWATER_HOST_GAP_SECONDS": "0",
    }


@pytest.fixture
def parts(environ: dict[str, str]) -> Iterator[Parts]:
    opened = wire.open_parts(load(environ))
    wire.prepare_store(opened)
    yield opened
    opened.close()


@pytest.fixture
def owner(parts: Parts) -> Reader:
    return wire.prepare_store(parts)


@pytest.fixture
def board(world: Web) -> Board:
    return Board(world)


@pytest.fixture
def source_id(parts: Parts, owner: Reader, board: Board) -> int:
    return follow_board(parts, owner, board.address)
