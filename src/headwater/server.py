"""The web application, the API and the pages put together, and serving it beside the crawl loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog
import uvicorn
from fastapi import Depends, FastAPI
from starlette.staticfiles import StaticFiles

from headwater import web, wire
from headwater.api import document
from headwater.api.websub import HubCallbacks
from headwater.app import instance
from headwater.events.live import Live
from headwater.http import auth, problems, routes
from headwater.http.edge import Edge
from headwater.http.state import Metrics
from headwater.model import SavedVisit
from headwater.web import health, images, login, reference, sources, stream, webhooks
from headwater.web.view import show_problem
from headwater.wire import Parts, instance_name

log = structlog.get_logger()
STATIC = Path(web.__file__).parent / "static"
PAGES = (reference, login, stream, images, sources, webhooks, health)


def create_app(parts: Parts, metrics: Metrics | None = None) -> FastAPI:
    """Makes the application. `metrics` are shared with what else counts in this process, such as the crawl loop."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(auth.refuse_forged), Depends(routes.refuse_unknown_parameters)],
    )
    app.state.parts = parts
    app.state.metrics = metrics or Metrics()
    app.state.live = Live(parts.db, parts.new_events, parts.now, instance_name(parts.settings))
    app.openapi = document.openapi  # type: ignore[method-assign]
    document.include_routes(app)
    app.include_router(document.router)
    for page in PAGES:
        app.include_router(page.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    problems.install(app, show_problem)
    app.add_middleware(Edge, parts=parts, metrics=app.state.metrics)
    app.add_middleware(HubCallbacks, parts=parts)
    # The server's own log of requests writes whole addresses, and a login link's secret is in one.
    logging.getLogger("uvicorn.access").disabled = True
    return app


class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve` below handles them: the crawl loop has to stop as well


async def serve(
    parts: Parts,
    listening: socket.socket,
    *,
    crawl: bool,
    on_ready: Callable[[str], None],
    on_stop: Callable[[], None],
) -> None:
    """Serves until SIGINT or SIGTERM, then finishes what is under way within the deadline.

    `on_ready` gets the link that signs the owner in, once it leads somewhere.
    """
    wire.share_one_heap()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    owner = await asyncio.to_thread(wire.prepare_store, parts)
    link = await parts.db.write(instance.login_link, owner, wire.home(parts.settings), parts.now())
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
    await asyncio.to_thread(on_ready, link)
    try:
        await _crawl_until(parts, metrics, stop, serving) if crawl else await _first(stop, serving)
    finally:
        on_stop()
        stop.set()
        app.state.live.close()
        server.should_exit = True
        await asyncio.gather(serving, hearing)


async def _crawl_until(parts: Parts, metrics: Metrics, stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    def on_saved(saved: SavedVisit) -> None:
        metrics.visits.labels(saved.visit.outcome).inc()
        _log_visit(saved)

    _spare_the_collector()
    ending = asyncio.Event()
    async with wire.all_loops(parts, on_saved, ending) as loops:
        try:
            await _first(stop, serving, *loops)
        finally:
            ending.set()


def _spare_the_collector() -> None:
    """Keeps the garbage collector from scanning what start-up made again and again while posts arrive."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _first(stop: asyncio.Event, *tasks: asyncio.Task[None]) -> None:
    """Waits until `stop` is set, or until a task ends that should run for good."""
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
