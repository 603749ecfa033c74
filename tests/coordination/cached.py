"""A process that asks the cache for a number once, and computes it slowly: it notes in a file that it did."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from headwater.coordination.cache import Cache, CachedKind
from headwater.coordination.redis_cache import RedisEntries

NUMBER: CachedKind[int] = CachedKind("number", int, fresh_for=60)
SECRET = b"of the tests"


async def ask(url: str, key: str, file: Path) -> None:
    cache = Cache(RedisEntries(url, patience=10), SECRET)

    async def compute() -> int:
        with file.open("a") as note:
            note.write("computed\n")
        await asyncio.sleep(0.1)
        return 7

    found = await cache.get(NUMBER, key, compute, version="1")
    print(found.value)
    await cache.close()


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
