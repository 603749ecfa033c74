"""`headwater up`: the web server and the crawl loop in one process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator

import structlog
import uvicorn

from headwater import wire
from headwater.cli.listening import listen
from headwater.cli.output import say
from headwater.http.metrics import Metrics
from headwater.model import SavedVisit
from headwater.server import create_app
from headwater.wire import Parts
from headwater.work import crawl_loop, periodic

log = structlog.get_logger()


class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve` below handles them: the crawl loop has to stop as well


async def serve(parts: Parts, *, crawl: bool, on_ready: Callable[[str], object] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is under way within the deadline.

    `on_ready` is given the link that signs the owner in, once it leads somewhere.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    listening = listen(parts.settings)
    owner = await asyncio.to_thread(wire.prepare_store, parts)
    link = await asyncio.to_thread(wire.login_link, parts, owner)
    metrics = Metrics()
    app = create_app(parts, metrics)
    server = Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=max(1, int(parts.settings.shutdown_seconds)),
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    hearing = asyncio.create_task(wire.hear_of_events(parts, stop))
    say(f"Headwater is running at {wire.home(parts.settings)}\n\n  Sign in:  {link}\n\nCtrl-C stops it.")
    if on_ready:
        await asyncio.to_thread(on_ready, link)
    try:
        await _crawl_until(parts, metrics, stop, serving) if crawl else await _first(stop, serving)
    finally:
        say("Stopping: visits under way are finished or given back.")
        stop.set()
        app.state.live.close()
        server.should_exit = True
        await asyncio.gather(serving, hearing)
    say("Stopped.")


def _spare_the_collector() -> None:
    """What start-up made stays; looking through it again while posts come by the ten thousand is wasted."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _crawl_until(parts: Parts, metrics: Metrics, stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    def on_saved(saved: SavedVisit) -> None:
        metrics.visits.labels(saved.visit.outcome).inc()
        _log_visit(saved)

    _spare_the_collector()
    async with wire.crawling(parts, on_saved) as crawler:
        ending = asyncio.Event()
        loop = asyncio.create_task(
            crawl_loop.run(parts.db, crawler, wire.pace(parts.settings), parts.now, parts.woken, ending)
        )
        jobs = asyncio.create_task(periodic.run_periodic(wire.job_tools(parts), ending))
        log_readers = asyncio.create_task(wire.follow_log(parts, ending))
        senders = asyncio.create_task(wire.deliver_webhooks(parts, ending))
        savers = asyncio.create_task(wire.save_images(parts, ending))
        try:
            await _first(stop, serving, loop, jobs, log_readers, senders, savers)
        finally:
            ending.set()
            await asyncio.gather(loop, jobs, log_readers, senders, savers)


async def _first(stop: asyncio.Event, *tasks: asyncio.Task[None]) -> None:
    """Until we are told to stop, or something that should run for good has ended."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()


def _log_visit(saved: SavedVisit) -> None:
    visit = saved.visit
    if not saved.accepted:
        log.warning("visit.refused", source=saved.address, reason="the lease was lost")
    elif visit.outcome == "failed":
        log.warning("visit.failed", source=saved.address, code=visit.error_code, error=visit.error)
    elif visit.outcome != "unchanged":
        log.info("visit", source=saved.address, outcome=visit.outcome, new=saved.count("new"))
