"""How things look as JSON, in the HTTP API and in `--json` on the command line: one declaration for each shape."""

from __future__ import annotations

from typing import Any

from typing_extensions import is_typeddict

from headwater.app.shapes import crawling, health, images, log, posts, sources, stories, webhooks
from headwater.app.shapes.shape import example

MODULES = (crawling, health, images, log, posts, sources, stories, webhooks)


def examples() -> dict[str, dict[str, Any]]:
    """Returns an example of every shape, by its name."""
    return {shape.__name__: example(shape) for shape in every_shape()}


def every_shape() -> list[type]:
    return [
        found
        for module in MODULES
        for found in vars(module).values()
        if is_typeddict(found) and found.__module__ == module.__name__
    ]
