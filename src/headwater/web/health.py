"""The page that shows how Headwater is doing, and the dead letters, which can be read, replayed and skipped there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from headwater.api import dead_letters as api
from headwater.api.health import examined
from headwater.api.live import live_of
from headwater.events import health
from headwater.events.health import Figure
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.store.log import dead_letters
from headwater.store.log import health as log_health
from headwater.store.log.dead_letters import DeadLetter
from headwater.web import formatting
from headwater.web.formatting import ShownState
from headwater.web.view import go, show

LETTERS = 50
MINUTES = 60
CHART_WIDTH = 600
CHART_HEIGHT = 80
OUTCOMES = ("ok", "unchanged", "empty", "failed")

router = APIRouter()

_STATES = {
    "ok": ShownState("Well", "good", "check"),
    "warning": ShownState("Watch this", "busy", "alert"),
    "bad": ShownState("Trouble", "bad", "alert"),
    "unknown": ShownState("Not known", "quiet", "circle"),
}
_NAMES = {
    "outbox_backlog": "Events not handled yet",
    "consumer_lag": "Oldest event that waits for",
    "dlq_count": "Dead letters",
    "dlq_share": "Dead letters among all events",
    "freshness": "Since the last visit that worked out",
    "write_to_visible_p95": "From write to visible, 95 of 100",
    "sources_failing": "Sources that fail",
    "sources_blocked": "Sources that block us",
    "sources_due": "Sources that wait for a visit",
    "oldest_event": "Oldest event that is kept",
    "slot_bytes": "Log that PostgreSQL keeps for Debezium",
    "cache_hit_rate": "Answers from the cache",
}


class Bar(NamedTuple):
    """A bar of a chart, in the chart's own units."""

    label: str
    value: float
    x: float
    y: float
    width: float
    height: float


class ShownLetter(NamedTuple):
    """All that the page needs besides the figures, read in one transaction."""

    events: list[int]
    visits: dict[str, int]
    letters: list[DeadLetter]


@router.get("/health")
async def health_page(request: Request, parts: WithParts, reader: Asking) -> Response:
    figures = await examined(parts, live_of(request))
    is_operator = reader.role in api.OPERATORS
    shown = await parts.db.read(_gather, parts.now(), with_letters=is_operator)
    lags = [figure for figure in figures if figure.name == "consumer_lag"]
    return show(
        request,
        "health.html",
        section="health",
        state=_STATES[health.overall(figures)],
        states=_STATES,
        figures=figures,
        name_of=name_of,
        amount=amount,
        events=bars([(f"{MINUTES - place} min ago", count) for place, count in enumerate(shown.events)]),
        events_total=sum(shown.events),
        visits=[(outcome, shown.visits.get(outcome, 0)) for outcome in OUTCOMES],
        lags=[(figure, min(1.0, (figure.value or 0.0) / (figure.limit or 1.0))) for figure in lags],
        letters=shown.letters,
        is_operator=is_operator,
        chart=(CHART_WIDTH, CHART_HEIGHT),
    )


def _gather(conn: Connection, now: datetime, *, with_letters: bool) -> ShownLetter:
    return ShownLetter(
        log_health.events_by_minute(conn, now, MINUTES),
        log_health.visits_by_outcome(conn, now - timedelta(minutes=MINUTES)),
        dead_letters.page(conn, limit=LETTERS) if with_letters else [],
    )


@router.get("/health/letters/{letter_id}", dependencies=[Depends(api.operator)])
async def letter_page(request: Request, parts: WithParts, letter_id: Id) -> Response:
    found = await api.letter(parts, letter_id)
    return show(request, "letter.html", letter=found, said=api.letter_json(found)["data"], section="health")


@router.post("/health/letters/replay", dependencies=[Depends(api.operator)])
async def replay_all(parts: WithParts) -> Response:
    await api.replay_all(parts)
    return go("/health#letters")


@router.post("/health/letters/{letter_id}/replay", dependencies=[Depends(api.operator)])
async def replay(parts: WithParts, letter_id: Id) -> Response:
    await api.replay_letter(parts, letter_id)
    return go(f"/health/letters/{letter_id}")


@router.post("/health/letters/{letter_id}/skip", dependencies=[Depends(api.operator)])
async def skip(parts: WithParts, letter_id: Id) -> Response:
    await api.skip_letter(parts, letter_id)
    return go(f"/health/letters/{letter_id}")


def name_of(figure: Figure) -> str:
    name = _NAMES.get(figure.name, figure.name)
    return f"{name} {figure.consumer}" if figure.consumer else name


def amount(value: float | None, unit: str) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if unit == "seconds":
        return _length(value)
    if unit == "bytes":
        return formatting.size(int(value))
    return f"{value:.2%}" if unit == "share" else f"{value:,.0f}"


def _length(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def bars(
    values: Sequence[tuple[str, float]], width: int = CHART_WIDTH, height: int = CHART_HEIGHT, top: float = 0
) -> list[Bar]:
    """Bars side by side; the tallest has the full height, or `top` would; whatever is not nothing can be seen."""
    most = max((value for _, value in values), default=0)
    most = max(most, top) or 1
    room = width / max(1, len(values))
    found = []
    for place, (label, value) in enumerate(values):
        tall = max(2.0, value / most * height) if value else 0.0
        found.append(Bar(label, value, round(place * room, 2), round(height - tall, 2), round(room * 0.8, 2), tall))
    return found
