"""Work that is begun before its turn: while one result is put away, the next ones are on their way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@asynccontextmanager
async def prefetched(
    work: Callable[[T], Coroutine[Any, Any, R]], things: Sequence[T], at_once: int
) -> AsyncIterator[Iterator[tuple[T, asyncio.Task[R]]]]:
    """Each thing, in order, with the work on it under way; at most `at_once` are. What nobody took is given up."""
    under_way: deque[asyncio.Task[R]] = deque()

    def in_order() -> Iterator[tuple[T, asyncio.Task[R]]]:
        following = iter(things)
        for thing in things:
            under_way.extend(asyncio.create_task(work(one)) for one in islice(following, at_once - len(under_way)))
            yield thing, under_way.popleft()

    try:
        yield in_order()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
