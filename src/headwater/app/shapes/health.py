"""How Headwater is doing."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time

State = Literal["ok", "warning", "bad", "unknown"]


class Alive(TypedDict):
    status: Annotated[Literal["ok"], Example("ok")]


class FigureJson(TypedDict):
    """One figure: its value, what it should stay below, and what to do when it does not."""

    name: Annotated[str, Example("consumer_lag")]
    consumer: Annotated[str | None, Example("search", "whose figure it is, where each consumer has one")]
    value: Annotated[float | None, Example(0.4, "null: not known; `advice` says why")]
    limit: Annotated[float | None, Example(6.0)]
    unit: Annotated[str, Example("seconds")]
    state: Annotated[State, Example("ok")]
    advice: Annotated[str, Example("")]


class HealthJson(TypedDict):
    """How Headwater is doing. `state` is that of the worst figure."""

    state: Annotated[State, Example("ok")]
    checked_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    figures: list[FigureJson]
