"""A Headwater that downloads images: its store, a clock to turn, a web that has pictures, and the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from headwater import wire
from headwater.model import Image, Reader
from headwater.settings import load
from headwater.store import images
from headwater.store.images import ImageRecord
from headwater.wire import Parts
from support.posts import a_post, a_source, visited
from support.web import ALLOW_LOOPBACK


@dataclass
class Saving:
    parts: Parts
    owner: Reader
    source_id: int = 0
    ahead: timedelta = timedelta(0)

    @property
    def folder(self) -> Path:
        return wire.image_folder(self.parts.settings)

    def files(self) -> list[Path]:
        return sorted(file for file in self.folder.rglob("*") if file.is_file())

    def publish(self, id: str, *urls: str) -> int:
        """A post that shows these pictures; returns its id."""
        post = a_post(id, images=tuple(Image(url, f"Picture of {id}") for url in urls))
        saved = self.parts.db.write_now(visited, self.source_id, [post], self.parts.now())
        return saved.posts[0].id

    def records(self, post_id: int) -> list[ImageRecord]:
        return self.parts.db.read_now(images.of_post, post_id)

    def states(self) -> dict[str, int]:
        return {state: count for state, count in self.parts.db.read_now(images.counts).items() if count}

    def turn_clock(self, **by: float) -> None:
        self.ahead += timedelta(**by)

    async def until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        task = asyncio.create_task(wire.save_images(self.parts, stop))
        try:
            yield
        finally:
            stop.set()
            await task


@contextmanager
def opened(environ: dict[str, str]) -> Iterator[Saving]:
    parts = wire.open_parts(load({**ALLOW_LOOPBACK, **environ}))
    made = Saving(parts, wire.prepare_store(parts))
    parts.now = lambda: wire.utc_now() + made.ahead
    made.source_id = parts.db.write_now(a_source, made.owner, "https://forum.example/", parts.now())
    yield made
    parts.close()
