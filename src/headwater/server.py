"""The web application: the API and the pages together, served in the same process as the crawl loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from headwater import web, wire
from headwater.api import document
from headwater.api.websub import HubCallbacks
from headwater.app import account
from headwater.events.live import Live
from headwater.http import auth, connections, problems
from headwater.http.connections import Certificate, Limits
from headwater.http.edge import Edge
from headwater.http.metrics import Metrics
from headwater.http.routes import add_routes
from headwater.model import SavedVisit
from headwater.web import fleet, health, images, people, reference, sources, stream, webhooks
from headwater.web.view import show_problem
from headwater.wire import Parts, instance_name

log = structlog.get_logger()
DEFERRED_SECONDS = 60.0
STATIC = Path(web.__file__).parent / "static"
PAGES = (reference, people, stream, images, sources, webhooks, fleet, health)


def create_app(parts: Parts, metrics: Metrics | None = None) -> FastAPI:
    """Makes the application. `metrics` are shared with what else counts in this process, such as the crawl loop."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.metrics = metrics or Metrics()
    app.state.fleets = {}
    app.state.live = Live(parts.db, parts.new_events, parts.now, instance_name(parts.settings))
    app.openapi = document.openapi  # type: ignore[method-assign]
    document.include_routes(app)
    for one in (document, *PAGES):
        add_routes(app, one.router)
    for route in auth.every_route(app):
        auth.scope_of(route)  # fails at the start if a route names none
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


def certificate_of(parts: Parts) -> Certificate | None:
    """Returns the certificate with which this server speaks TLS, if it does. Raises BadSetting."""
    settings = parts.settings
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_certificate, settings.tls_key)


def web_server(app: FastAPI, parts: Parts, certificate: Certificate | None = None) -> Server:
    """Returns what serves the application, with limits on connections and on what is sent over them."""
    settings = parts.settings
    most = connections.affordable(settings.max_connections, settings.max_concurrency)
    return Server(
        uvicorn.Config(
            app,
            http=connections.protocol(Limits(most, settings.request_seconds)),  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            proxy_headers=False,  # it would believe everybody on this machine; http/auth.py asks whom to believe
            access_log=False,
            lifespan="off",
            ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
            timeout_graceful_shutdown=max(1, int(settings.shutdown_seconds)),
        )
    )


async def serve(
    parts: Parts,
    listening: socket.socket,
    *,
    crawl: bool,
    with_link: bool,
    on_ready: Callable[[str | None], None],
    on_stop: Callable[[], None],
) -> None:
    """Serves until SIGINT or SIGTERM, then finishes what is under way within the deadline.

    `on_ready` gets a link that signs the owner in, if there should be one, once it leads somewhere.
    """
    wire.share_one_heap()
    certificate = certificate_of(parts)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    owner = await asyncio.to_thread(wire.prepare_store, parts)
    await asyncio.to_thread(wire.present_keys, parts)  # a command that prints the key takes its time, and fails now
    link = None
    if with_link:
        link = await parts.db.write(account.login_link, owner, wire.home(parts.settings), parts.now())
    metrics = Metrics()
    app = create_app(parts, metrics)
    server = web_server(app, parts, certificate)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    hearing = asyncio.create_task(wire.hear_of_events(parts, stop))
    watching = [asyncio.create_task(wire.watch_store(parts, stop))]
    if certificate is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, certificate.renew)
        watching.append(asyncio.create_task(certificate.watch(stop)))
    await asyncio.to_thread(on_ready, link)
    try:
        await _crawl_until(parts, metrics, stop, serving) if crawl else await _first(stop, serving)
    finally:
        on_stop()
        stop.set()
        app.state.live.close()
        server.should_exit = True
        await asyncio.gather(serving, hearing, *watching)
        await parts.close_shared()


async def _crawl_until(parts: Parts, metrics: Metrics, stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    deferred = DeferredVisits()

    def on_saved(saved: SavedVisit) -> None:
        metrics.note_visit(saved)
        if saved.accepted and saved.visit.outcome == "deferred":
            deferred.count(saved.visit.waits_for or "")
        else:
            _log_visit(saved)
        deferred.log_if_due()

    _spare_the_collector()
    ending = asyncio.Event()
    async with wire.all_loops(parts, on_saved, ending) as loops:
        try:
            await _first(stop, serving, *loops)
        finally:
            ending.set()
    deferred.log()


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


class DeferredVisits:
    """Counts visits that had to wait, and logs them once a minute: one budget can keep hundreds waiting."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._since = 0.0

    def count(self, waits_for: str) -> None:
        if not self._counts:
            self._since = time.monotonic()
        self._counts[waits_for] += 1

    def log_if_due(self) -> None:
        if self._counts and time.monotonic() - self._since >= DEFERRED_SECONDS:
            self.log()

    def log(self) -> None:
        for waits_for, count in self._counts.items():
            log.info("visits.deferred", waits_for=waits_for, count=count)
        self._counts.clear()


def _log_visit(saved: SavedVisit) -> None:
    visit = saved.visit
    if not saved.accepted:
        log.warning("visit.refused", source=saved.address, reason="the lease was lost")
    elif visit.outcome == "failed":
        log.warning(
            "visit.failed",
            source=saved.address,
            code=visit.error_code,
            error=visit.error,
            traceparent=visit.traceparent,
        )
    elif visit.outcome != "unchanged":
        log.info(
            "visit",
            source=saved.address,
            outcome=visit.outcome,
            new=saved.count("new"),
            traceparent=visit.traceparent,
        )
