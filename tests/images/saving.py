"""A Headwater that downloads images: its store, a clock to turn, a web that has pictures, and the loop."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from pathlib import Path

from headwater import wire
from headwater.model import Image
from headwater.store import images
from headwater.store.images import ImageRecord
from support.living import Ahead, opened_ahead, running_loops
from support.posts import a_post, visited


class Saving(Ahead):
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

    def running(self) -> AbstractAsyncContextManager[None]:
        return running_loops(partial(wire.save_images, self.parts))


def opened(environ: dict[str, str]) -> AbstractContextManager[Saving]:
    return opened_ahead(Saving, environ, "https://forum.example/")
