"""`headwater up`: the web server and the crawl loop in one process. `headwater demo`: the same, simulated."""

from __future__ import annotations

import contextlib
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater import wire
from headwater.app import instance, sources
from headwater.app.fleet import miners, telemetry, treasury
from headwater.app.fleet.miners import NewMiner
from headwater.app.fleet.treasury import NewTrade
from headwater.cli.session import Json, noted_as_running, opened_parts, run_async, say
from headwater.errors import BadSetting, StoreUnavailable
from headwater.model import Reader
from headwater.settings import CONFIG, load
from headwater.settings.table import Settings
from headwater.store.fleet.telemetry import MachineReading
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.sim.fleet import SimReading
    from headwater.sim.internet import Internet, Site

HostOption = Annotated[str | None, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on.")]
CHECK_SECONDS = 15
REPORT_SECONDS = 60.0
FLEET_HISTORY = timedelta(days=2)


def up(
    host: HostOption = None,
    port: PortOption = None,
    crawl: Annotated[bool, typer.Option(help="Visit sources, not only serve the pages.")] = True,
    as_json: Json = False,
) -> None:
    """Run Headwater: the pages, the API and the crawl loop, until Ctrl-C."""
    with opened_parts(host=host, port=port, log_format="json" if as_json else None) as parts:
        instance.upgrade_in_a_child(parts.db)
        _serve(parts, crawl=crawl)


def demo(
    host: HostOption = None,
    port: PortOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation. The same seed shows the same events.")] = 1,
    browser: Annotated[bool, typer.Option(help="Open the stream in a browser.")] = True,
) -> None:
    """Show Headwater on a simulated internet. Nothing is fetched from outside, and nothing is kept."""
    from headwater.sim.internet import internet

    with internet(seed) as there, tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        loaded = load({CONFIG: ""}, host=host, port=port, **demo_settings(there, Path(folder)))
        # More often than the settings allow for real servers.
        loaded = loaded._replace(settings=loaded.settings.model_copy(update={"check_interval_seconds": CHECK_SECONDS}))
        wire.configure_logs(loaded.settings.log_level, loaded.settings.log_format)
        parts = wire.open_parts(loaded)
        parts.is_demo = True
        try:
            follow_all(parts, there.sites)
            stop = threading.Event()
            fleet = set_up_fleet(parts, seed)
            telling = threading.Thread(target=keep_reporting, args=(parts, fleet, seed, stop), daemon=True)
            telling.start()
            say("This is a demo. Its sources are simulated, and its data is deleted when it ends.\n")
            try:
                _serve(parts, open_browser=browser, is_demo=True)
            finally:
                stop.set()
                telling.join()
        finally:
            parts.close()


def demo_settings(there: Internet, folder: Path) -> dict[str, Any]:
    """Returns the settings for the simulated internet, whose hosts need no gap between requests."""
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


def set_up_fleet(parts: Parts, seed: int) -> list[int]:
    """Gives the owner the simulated machines, their readings of two days and trades. Returns the machines' ids."""
    from headwater.sim import fleet

    owner, now = wire.prepare_store(parts), parts.now()
    machines = [NewMiner.model_validate(one._asdict()) for one in fleet.MACHINES]
    ids = [parts.db.write_now(miners.add, owner, one, now).id for one in machines]
    for number, trade in enumerate(fleet.TRADES):
        at = now - timedelta(days=trade.days_ago)
        entered = NewTrade(side=trade.side, btc=trade.btc, usd=trade.usd, traded_at=at)
        parts.db.write_now(treasury.trade, owner, entered, f"demo {number}", now)
    _report_history(parts, owner, ids, seed, now)
    return ids


def _report_history(parts: Parts, owner: Reader, ids: list[int], seed: int, now: datetime) -> None:
    """Sends the readings of the last two days in their order, and lets the watch look at the last hour."""
    from headwater.sim import fleet

    times = [now - fleet.EVERY * back for back in range(FLEET_HISTORY // fleet.EVERY, 0, -1)]
    came = [one for at in times for one in fleet.readings_at(at, now, seed)]
    for since, until in ((now - 2 * FLEET_HISTORY, now - fleet.SILENT_FOR), (now - fleet.SILENT_FOR, now)):
        batch = _batch(ids, (one for one in came if since < one.at <= until))
        parts.db.write_now(telemetry.take, owner, batch, 2 * FLEET_HISTORY, until)
    for back in range(12, -1, -1):
        parts.db.write_now(telemetry.look, now - timedelta(minutes=5 * back))


def keep_reporting(parts: Parts, ids: list[int], seed: int, stop: threading.Event) -> None:
    """Lets the simulated machines report until `stop` is set."""
    from headwater.sim import fleet

    begins, owner = parts.now(), instance.owner(parts.db)
    while not stop.wait(REPORT_SECONDS):
        at = parts.now()
        with contextlib.suppress(StoreUnavailable):  # the next report comes in a minute
            batch = _batch(ids, fleet.readings_at(at, begins, seed))
            parts.db.write_now(telemetry.take, owner, batch, FLEET_HISTORY, at)


def _batch(ids: list[int], readings: Iterable[SimReading]) -> list[MachineReading]:
    return [MachineReading(ids[one.place], one.at, one.hashrate_th, one.power_w, one.temperature_c) for one in readings]


def _serve(parts: Parts, *, crawl: bool = True, open_browser: bool = False, is_demo: bool = False) -> None:
    from headwater.server import serve  # loads the web framework, which no other command needs

    # Without a terminal, the output ends up in a journal. Anybody who reads it could sign in with the link.
    shows_link = is_demo or sys.stdout.isatty()

    def on_ready(link: str | None) -> None:
        how = link or "`headwater login` prints a link"
        say(f"Headwater is running at {wire.home(parts.settings)}\n\n  Sign in:  {how}\n\nCtrl-C stops it.")
        if open_browser and link:
            webbrowser.open(link)

    def on_stop() -> None:
        say("Stopping. Running visits finish or go back to the schedule.")

    listening = listen(parts.settings)
    with noted_as_running(parts.settings):
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
