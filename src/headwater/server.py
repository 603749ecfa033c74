"""The web application: the API and the pages, put together around the parts it is given."""

from __future__ import annotations

import logging
from pathlib import Path

from fastapi import Depends, FastAPI
from starlette.staticfiles import StaticFiles

from headwater import web
from headwater.api import document, reference
from headwater.api.websub import HubDoor
from headwater.events.live import Live
from headwater.http import auth, problems
from headwater.http.edge import Edge
from headwater.http.metrics import Metrics
from headwater.web import crawling, health, images, login, pages, source, stories, watching, webhooks
from headwater.wire import Parts, instance_name

STATIC = Path(web.__file__).parent / "static"


def create_app(parts: Parts, metrics: Metrics | None = None) -> FastAPI:
    """`metrics` is shared with whoever else counts in this process, such as the crawl loop."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(auth.refuse_forged)],
    )
    app.state.parts = parts
    app.state.metrics = metrics or Metrics()
    app.state.live = Live(parts.db, parts.new_events, parts.now, instance_name(parts.settings))
    document.include_routes(app)
    for page in (reference, login, pages, images, stories, watching, source, webhooks, health, crawling):
        app.include_router(page.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    problems.install(app)
    app.add_middleware(Edge, parts=parts, metrics=app.state.metrics)
    app.add_middleware(HubDoor, parts=parts)
    # The server's own log of requests writes whole addresses, and a login link's secret is in one (H67).
    logging.getLogger("uvicorn.access").disabled = True
    return app
