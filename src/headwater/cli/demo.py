"""`headwater demo`: Headwater on a small simulated internet, with data of its own that is gone afterwards."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater import wire
from headwater.cli.logs import configure
from headwater.cli.loop import run_async
from headwater.cli.output import say
from headwater.follow import add as following
from headwater.settings import load
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.sim.internet import Internet, Site

CHECK_SECONDS = 15
_FOLDERS = {"rss": "Newspapers", "reddit": "Communities", "forum": "Boards", "news": "News sites", "x": "Accounts"}


def demo(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    seed: Annotated[int, typer.Option(help="Which of the possible courses of events.")] = 1,
    browser: Annotated[bool, typer.Option(help="Open the stream in a browser.")] = True,
) -> None:
    """Show it all on a simulated internet: nothing is fetched from outside, and nothing is kept."""
    from headwater.cli.up import serve
    from headwater.sim.internet import internet

    with internet(seed) as there, tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        loaded = load({}, host=host, port=port, **settings(there, Path(folder)))
        # More often than anybody may be asked in earnest.
        loaded = loaded._replace(settings=loaded.settings.model_copy(update={"check_interval_seconds": CHECK_SECONDS}))
        configure(loaded.settings.log_level, loaded.settings.log_format)
        parts = wire.open_parts(loaded)
        parts.is_demo = True
        try:
            follow_all(parts, there.sites)
            say("This is a demonstration: its sources are simulated, and its data are gone when it ends.\n")
            run_async(serve(parts, crawl=True, on_ready=opener() if browser else None))
        finally:
            parts.close()


def settings(there: Internet, folder: Path) -> dict[str, Any]:
    """How Headwater has to be set to live in the simulated internet. Nobody there has to be spared."""
    return {
        **there.settings,
        "data_dir": folder,
        "allow_private_networks": "127.0.0.0/8",
        "host_gap_seconds": 0,
        "images": "on",
        "log_level": "warning",
    }


def follow_all(parts: Parts, sites: list[Site]) -> None:
    owner = wire.prepare_store(parts)
    for kind, address, options in sites:
        parts.db.write_now(
            following.follow, owner, address, parts.now(), folder=_FOLDERS[kind], kind=kind, settings=options
        )


def opener() -> Callable[[str], object]:
    """Opens a page in the browser of whoever sits here, if anybody does."""
    return lambda link: webbrowser.open(link)
