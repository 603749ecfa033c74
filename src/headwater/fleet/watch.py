"""Which machines need a look: those that have gone silent, and those that are under their rate. Pure.

A machine is silent by when we last received something from it, on our own clock: the clocks of machines differ. A watch
that has not looked for a while, because it was stopped or its clock was set, begins anew: it knows nothing about the
time in between, and blames no machine for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

State = Literal["ok", "silent", "low"]

SILENT_AFTER = timedelta(minutes=30)
LOW, RIGHT = 0.8, 0.9  # of the rate: below the one it is low, and from the other on it is right again
LOOKS = 3  # in a row that have to see a change before it counts
SOON = timedelta(seconds=30)  # several processes may look; within this, one of them does
LONGEST_PAUSE = timedelta(minutes=10)


class Heard(NamedTuple):
    """What was last heard of a machine, and what is expected of it. `hashrate_th` is its average of late."""

    received_at: datetime
    hashrate_th: float | None
    expected_th: float


class Judgement(NamedTuple):
    """What is thought of a machine. `doubts` are the looks in a row that saw something else."""

    state: State
    doubts: int = 0


def is_pause(looked_at: datetime | None, now: datetime) -> bool:
    """Whether nobody looked for too long, or the clock was set back."""
    return looked_at is None or not timedelta(0) <= now - looked_at <= LONGEST_PAUSE


def seen(heard: Heard, before: State, watching_since: datetime, now: datetime) -> State:
    """Returns what one look sees."""
    if now - max(heard.received_at, watching_since) > SILENT_AFTER:
        return "silent"
    if now - heard.received_at > SILENT_AFTER or heard.hashrate_th is None:
        return before  # it may have been heard while nobody looked
    enough = heard.expected_th * (RIGHT if before == "low" else LOW)
    return "low" if heard.hashrate_th < enough else "ok"


def judged(before: Judgement, saw: State) -> Judgement:
    """Returns what is thought after a look. A change counts after several looks in a row."""
    if saw == before.state:
        return Judgement(before.state)
    if before.doubts + 1 < LOOKS:
        return Judgement(before.state, before.doubts + 1)
    return Judgement(saw)
