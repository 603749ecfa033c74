from __future__ import annotations

import pytest

from headwater import wire
from headwater.model import Reader
from headwater.wire import Parts


@pytest.fixture
def owner(parts: Parts) -> Reader:
    return wire.prepare_store(parts)
