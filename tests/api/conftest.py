from __future__ import annotations

import pytest

from api.running import Client, Running


@pytest.fixture
def program(headwater: Running) -> Client:
    return headwater.program()
