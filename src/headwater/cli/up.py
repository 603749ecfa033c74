"""`headwater up`: the web server and the crawl loop in one process. `headwater demo`: the same, simulated."""

from __future__ import annotations

import socket
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater import wire
from headwater.app import instance, sources
from headwater.cli.session import Json, opened_parts, run_async, say
from headwater.errors import BadSetting
from headwater.settings import CONFIG, Settings, load
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.sim.internet import Internet, Site

HostOption = Annotated[str | None, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on.")]
CHECK_SECONDS = 15


def up(
    host: HostOption = None,
    port: PortOption = None,
    crawl: Annotated[bool, typer.Option(help="Visit sources as well, not only serve the pages.")] = True,
    as_json: Json = False,
) -> None:
    """Run Headwater: the pages, the API and the crawl loop, until Ctrl-C."""
    with opened_parts(host=host, port=port, log_format="json" if as_json else None) as parts:
        instance.upgrade_in_a_child(parts.db)
        _serve(parts, crawl=crawl)


def demo(
    host: HostOption = None,
    port: PortOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation: the same seed shows the same events.")] = 1,
    browser: Annotated[bool, typer.Option(help="Open the stream in a browser.")] = True,
) -> None:
    """Show Headwater on a simulated internet. Nothing is fetched from outside, and nothing is kept."""
    from headwater.sim.internet import internet

    with internet(seed) as there, tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        loaded = load({CONFIG: ""}, host=host, port=port, **demo_settings(there, Path(folder)))
        # More often than anybody may be asked in earnest.
        loaded = loaded._replace(settings=loaded.settings.model_copy(update={"check_interval_seconds": CHECK_SECONDS}))
        wire.configure_logs(loaded.settings.log_level, loaded.settings.log_format)
        parts = wire.open_parts(loaded)
        parts.is_demo = True
        try:
            follow_all(parts, there.sites)
            say("This is a demonstration: its sources are simulated, and its data is deleted when it ends.\n")
            _serve(parts, open_browser=browser, is_demo=True)
        finally:
            parts.close()


def demo_settings(there: Internet, folder: Path) -> dict[str, Any]:
    """Returns the settings for the simulated internet, where no host has to be spared."""
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
            sources.follow,
            owner,
            address,
            parts.now(),
            folder=sources.plural_of(kind).capitalize(),
            kind=kind,
            settings=options,
        )


def _serve(parts: Parts, *, crawl: bool = True, open_browser: bool = False, is_demo: bool = False) -> None:
    from headwater.server import serve  # loads the web framework, which no other command needs

    # Where nobody is looking, standard output ends up in a journal, and whoever reads that could sign in.
    shows_link = is_demo or sys.stdout.isatty()

    def on_ready(link: str | None) -> None:
        how = link or "`headwater login` prints a link"
        say(f"Headwater is running at {wire.home(parts.settings)}\n\n  Sign in:  {how}\n\nCtrl-C stops it.")
        if open_browser and link:
            webbrowser.open(link)

    def on_stop() -> None:
        say("Stopping: visits under way are finished or given back.")

    listening = listen(parts.settings)
    run_async(serve(parts, listening, crawl=crawl, with_link=shows_link, on_ready=on_ready, on_stop=on_stop))
    say("Stopped.")


def listen(settings: Settings) -> socket.socket:
    """Opens the listening socket before anything is started, so that a taken port is reported at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise BadSetting(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. "
            "Stop the other program or choose another port with --port or HEADWATER_PORT."
        ) from error
    return listening
