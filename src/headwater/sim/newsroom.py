"""The news of the simulated internet: which story appears where and when, with repeats, edits and noise.

A seed decides all of it. `events.json` holds the possible events, each worded in several ways: the wordings of an event
share its names and numbers and little else, as reports by different people do.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, NamedTuple

_PREFIXES = {"en": ("BREAKING: ", "Just in: ", ""), "zh": ("【快讯】", "突发：", "")}
_OPEN = ("reddit", "forum", "x")
_AUTHORS = ("a.keller", "northwind", "mira_t", "old_salt", "jun", "pilar", "观潮人", "river_reader")


class Words(NamedTuple):
    """One wording of an event, with gaps for its names and numbers."""

    title: str
    text: str


class Frame(NamedTuple):
    """A kind of event: what fills its gaps, and its wordings in English and in Chinese."""

    gaps: dict[str, tuple[str, ...]]
    english: tuple[Words, ...]
    chinese: tuple[Words, ...]


def _frame(names: dict[str, list[str]], written: dict[str, Any]) -> Frame:
    return Frame(
        {gap: tuple(names[choices]) for gap, choices in written["gaps"].items()},
        tuple(Words(**words) for words in written["english"]),
        tuple(Words(**words) for words in written["chinese"]),
    )


_EVENTS = json.loads(files("headwater.sim").joinpath("events.json").read_text("utf-8"))
FRAMES = tuple(_frame(_EVENTS["names"], written) for written in _EVENTS["frames"])
MINING = tuple(_frame(_EVENTS["names"], written) for written in _EVENTS["mining"])  # about what the operator has
CHATTER = tuple(Words(**words) for words in _EVENTS["chatter"])


class Place(NamedTuple):
    """Where something is published: a `kind` of site, its name there, and its language."""

    kind: str
    name: str
    lang: str


class SimTelling(NamedTuple):
    """What a place publishes at a time. `story` is None for noise; `edited` is the later text and its time."""

    id: int
    story: int | None
    place: Place
    at: datetime
    author: str
    title: str
    text: str
    edited: tuple[datetime, str] | None = None


class Rhythm(NamedTuple):
    """How long it takes until all places have a story, and what share of tellings are reposts or edited later."""

    spread: timedelta = timedelta(minutes=25)
    reposts: float = 0.25
    edits: float = 0.1


def history(
    places: Sequence[Place], begins: datetime, lasts: timedelta, seed: int = 1, rhythm: Rhythm = Rhythm()
) -> list[SimTelling]:
    """Returns all tellings from `begins` on, ordered by time. Each event happens once; those of mining come first."""
    chance = random.Random(f"newsroom:{seed}")
    told: list[SimTelling] = []
    for story, frame in enumerate(chance.sample(FRAMES, len(FRAMES))):
        told += _tellings(story, frame, places, begins + lasts * (story / len(FRAMES)), chance, rhythm)
    for story, frame in enumerate(MINING, len(FRAMES)):  # from the beginning, for the page of the fleet
        told += _tellings(story, frame, places, begins, random.Random(f"mining:{seed}:{story}"), rhythm)
    told += _noise(places, begins, lasts, chance)
    told.sort(key=lambda telling: telling.at)
    return [telling._replace(id=number) for number, telling in enumerate(told, 1)]


def told_in(place: Place, told: Sequence[SimTelling]) -> list[SimTelling]:
    return [telling for telling in told if telling.place == place]


def _tellings(
    story: int, frame: Frame, places: Sequence[Place], at: datetime, chance: random.Random, rhythm: Rhythm
) -> Iterator[SimTelling]:
    """Yields one story in several places: each tells it at most once, in its own words or in another's."""
    filled = {gap: choices[(story + len(gap)) % len(choices)] for gap, choices in frame.gaps.items()}
    for lang in ("en", "zh"):
        theirs = [place for place in places if place.lang == lang]
        ways = list(_ways(frame, lang))
        chance.shuffle(ways)
        last: Words | None = None
        for place in chance.sample(theirs, min(len(theirs), chance.randint(1, len(ways) + 1))):
            repeated = last is not None and (not ways or chance.random() < rhythm.reposts)
            words = last if repeated and last is not None else _fill(ways.pop(), filled)
            prefix = chance.choice(_PREFIXES[lang]) if repeated else ""
            last = words
            when = at + rhythm.spread * chance.random()
            edited = None
            if chance.random() < rhythm.edits:
                edited = (when + rhythm.spread / 4, _corrected(words.text, lang))
            author = chance.choice(_AUTHORS)
            yield SimTelling(0, story, place, when, author, prefix + words.title, words.text, edited)


def _noise(places: Sequence[Place], begins: datetime, lasts: timedelta, chance: random.Random) -> Iterator[SimTelling]:
    """Yields small talk, for the places where everybody may write."""
    chatty = [place for place in places if place.kind in _OPEN]
    for words in CHATTER if chatty else ():
        yield SimTelling(
            0, None, chance.choice(chatty), begins + lasts * chance.random(), chance.choice(_AUTHORS), *words
        )


def _ways(frame: Frame, lang: str) -> tuple[Words, ...]:
    return frame.english if lang == "en" else frame.chinese


def _fill(words: Words, filled: dict[str, str]) -> Words:
    return Words(words.title.format(**filled), words.text.format(**filled))


def _corrected(text: str, lang: str) -> str:
    return (
        f"{text} （更正：此前版本时间有误。）"
        if lang == "zh"
        else f"{text} Correction: an earlier version gave a wrong time."
    )
