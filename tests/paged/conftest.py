from __future__ import annotations

import pytest

from headwater import wire
from headwater.model import Reader
from headwater.wire import Parts
from support.boards import Board, follow_board
from support.web import Web


@pytest.fixture
def owner(parts: Parts) -> Reader:
    return wire.prepare_store(parts)


@pytest.fixture
def board(world: Web) -> Board:
    return Board(world)


@pytest.fixture
def source_id(parts: Parts, owner: Reader, board: Board) -> int:
    return follow_board(parts, owner, board.address)
