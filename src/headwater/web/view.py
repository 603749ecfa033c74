"""A template as an answer, with what every page knows: who is signed in, what time it is, and where.

In templates everything is escaped unless it is marked as safe HTML, and a missing value is an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from headwater import __version__
from headwater.app.fleet import desk
from headwater.app.sources import KIND_CHOICES
from headwater.app.tellings import told_by
from headwater.http.auth import Caller, local_path
from headwater.http.problems import Problem
from headwater.http.routes import GUARDS
from headwater.http.state import parts_of
from headwater.store.posts.stream import Story
from headwater.web import formatting
from headwater.web.language import ENGLISH, gettext, ngettext, preferred, speaking

ZONE_COOKIE = "headwater_zone"
MOST_REMEMBERED = 10_000
FOR_LONG, SOON = 60.0, 5.0  # seconds for which it is believed that a reader has a fleet, or has none


class KnownFleet(NamedTuple):
    """Whether a reader has machines or trades, and until when that is believed."""

    has_fleet: bool
    ends_at: float


class StreamDay(NamedTuple):
    day: str
    stories: list[Story]


def groupby_day(stories: Sequence[Story], now: datetime, zone: tzinfo) -> Iterator[StreamDay]:
    for day, group in groupby(stories, lambda story: formatting.day(story.at.created_at, now, zone)):
        yield StreamDay(day, list(group))


# What is for those who run Headwater or mine is in English alone, from the first word to the last.
ENGLISH_PAGES = frozenset(
    f"{name}.html"
    for name in ("audit", "crawling", "dead_letter", "fleet", "health", "reference", "webhook", "webhooks")
)

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    extensions=["jinja2.ext.i18n"],
)
_environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
_environment.filters.update(groupby_day=groupby_day, in_language=gettext)
_environment.globals.update(version=__version__, text=formatting, told_by=told_by, kind_choices=KIND_CHOICES)


async def note_fleet(request: Request) -> None:
    """Notes on the request whether its reader has machines or trades, so that the pages link to this one."""
    caller = getattr(request.state, "caller", None)
    if caller is None or not caller.may("miners:read"):
        return
    fleets, now = request.app.state.fleets, time.monotonic()
    known: KnownFleet | None = fleets.get(caller.reader.user_id)
    if known is None or known.ends_at <= now:
        if len(fleets) >= MOST_REMEMBERED:
            fleets.clear()
        found = await parts_of(request).db.read(desk.has_something, caller.reader)
        known = fleets[caller.reader.user_id] = KnownFleet(found, now + (FOR_LONG if found else SOON))
    request.state.has_fleet = known.has_fleet


def page_router() -> APIRouter:
    """Returns a router for pages."""
    return APIRouter(dependencies=[*GUARDS, Depends(note_fleet)])


def show(request: Request, template: str, status: int = 200, *, section: str = "", **context: Any) -> HTMLResponse:
    """Renders a page. `section` is the part of the site that it belongs to."""
    caller: Caller | None = getattr(request.state, "caller", None)
    parts = parts_of(request)
    with speaking(language_of(request, template)) as language:
        page = _environment.get_template(template).render(
            section=section,
            has_fleet=getattr(request.state, "has_fleet", False),
            signed_in=caller is not None,
            may=caller.may if caller else _nothing,
            form_key=caller.form_key if caller else "",
            here=here(request),
            now=parts.now(),
            is_demo=parts.is_demo,
            store_problem=next((problem.detail for problem in parts.db.condition.problems()), None) if caller else None,
            zone=formatting.zone_named((caller and caller.time_zone) or request.cookies.get(ZONE_COOKIE)),
            theme=(caller and caller.theme) or "",
            language=language,
            in_english=Markup("" if language.is_english else ' lang="en"'),
            **context,
        )
    return HTMLResponse(page, status)


def language_of(request: Request, template: str = "") -> str:
    """Returns the language of a page: the one that its reader chose, or that the browser asks for."""
    if template in ENGLISH_PAGES:
        return ENGLISH
    caller: Caller | None = getattr(request.state, "caller", None)
    return (caller and caller.language) or preferred(request.headers.get("accept-language"))


def _nothing(scope: str) -> bool:
    """What somebody may do who is not signed in."""
    return False


def show_problem(request: Request, problem: Problem) -> HTMLResponse:
    return show(request, "problem.html", problem.status, problem=problem)


def here(request: Request) -> str:
    """Returns the address of this page, to come back to."""
    query = request.scope["query_string"].decode("latin-1")
    return quote(request.scope["path"]) + (f"?{query}" if query else "")


def go(path: str | None) -> RedirectResponse:
    """Redirects to a page of ours after a form was sent."""
    return RedirectResponse(local_path(path), status_code=303)
