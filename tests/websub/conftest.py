from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from support.hub import Hub, hub_on_loopback
from support.web import Web
from websub.instance import Instance, instance


@pytest.fixture
def hub() -> Iterator[Hub]:
    with hub_on_loopback() as made:
        yield made


@pytest.fixture
async def headwater(store_url: str, hub: Hub, world: Web) -> AsyncIterator[Instance]:
    async with instance(store_url, hub, world) as made:
        yield made
