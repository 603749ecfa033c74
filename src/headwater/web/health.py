"""The page that shows how Headwater is doing, and the dead letters, which can be read, replayed and skipped there."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from headwater.app import health, log
from headwater.app.log import DeadLetterJson
from headwater.app.shapes import shaped
from headwater.events.health import Figure
from headwater.http import state
from headwater.http.auth import CurrentReader, only_operators
from headwater.http.inputs import Id
from headwater.http.state import WithLive, WithParts
from headwater.web import charts, formatting
from headwater.web.charts import bars
from headwater.web.formatting import StateLabel
from headwater.web.view import go, show

LETTERS = 50
MINUTES = 60
OUTCOMES = ("ok", "unchanged", "empty", "failed")

router = APIRouter()

_STATES = {
    "ok": StateLabel("Well", "good", "check"),
    "warning": StateLabel("Watch this", "busy", "alert"),
    "bad": StateLabel("Trouble", "bad", "alert"),
    "unknown": StateLabel("Not known", "quiet", "circle"),
}
_NAMES = {
    "outbox_backlog": "Events not handled yet",
    "consumer_lag": "Oldest event that waits for",
    "dlq_count": "Dead letters",
    "dlq_share": "Dead letters among all events",
    "freshness": "Since the last visit that worked",
    "write_to_visible_p95": "From write to visible, 95 of 100",
    "sources_failing": "Sources that fail",
    "sources_blocked": "Sources that block us",
    "sources_due": "Sources that wait for a visit",
    "oldest_event": "Oldest event that is kept",
    "slot_bytes": "Log that PostgreSQL keeps for Debezium",
    "cache_hit_rate": "Answers from the cache",
}


@router.get("/health")
async def health_page(request: Request, parts: WithParts, live: WithLive, reader: CurrentReader) -> Response:
    figures = await state.figures(parts, live)
    found = await parts.db.read(health.activity, reader, parts.now(), minutes=MINUTES, letters=LETTERS)
    lags = [figure for figure in figures if figure.name == "consumer_lag"]
    return show(
        request,
        "health.html",
        section="health",
        state=_STATES[health.overall(figures)],
        states=_STATES,
        figures=figures,
        name_of=name_of,
        amount=formatting.amount,
        events=bars([(f"{MINUTES - place} min ago", count) for place, count in enumerate(found.events)]),
        events_total=sum(found.events),
        visits=[(outcome, found.visits.get(outcome, 0)) for outcome in OUTCOMES],
        lags=[(figure, min(1.0, (figure.value or 0.0) / (figure.limit or 1.0))) for figure in lags],
        letters=found.letters,
        is_operator=log.is_operator(reader),
        chart=(charts.WIDTH, charts.HEIGHT),
    )


@router.get("/health/letters/{letter_id}", dependencies=[Depends(only_operators)])
async def letter_page(request: Request, parts: WithParts, letter_id: Id) -> Response:
    letter = await parts.db.read(log.dead_letter, letter_id)
    return show(request, "letter.html", letter=letter, data=shaped(DeadLetterJson, letter)["data"], section="health")


@router.post("/health/letters/replay", dependencies=[Depends(only_operators)])
async def replay_all(parts: WithParts) -> Response:
    await log.replay_dead_letters(parts.db, parts.consumers, parts.now)
    return go("/health#letters")


@router.post("/health/letters/{letter_id}/replay", dependencies=[Depends(only_operators)])
async def replay(parts: WithParts, letter_id: Id) -> Response:
    await parts.db.write(log.replay_dead_letter, parts.consumers, letter_id, parts.now())
    return go(f"/health/letters/{letter_id}")


@router.post("/health/letters/{letter_id}/skip", dependencies=[Depends(only_operators)])
async def skip(parts: WithParts, letter_id: Id) -> Response:
    await parts.db.write(log.skip_dead_letter, parts.consumers, letter_id, parts.now())
    return go(f"/health/letters/{letter_id}")


def name_of(figure: Figure) -> str:
    name = _NAMES.get(figure.name, figure.name)
    return f"{name} {figure.consumer}" if figure.consumer else name
