"""The state of a simulated Reddit: its communities, clock, limits, faults, and what it has given out."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headwater.sim.communities import Habits, SimPost, Version, history

BEGINS = datetime(2026, 11, 2, tzinfo=UTC)


class Clock:
    """The simulated time. It only goes forward, and only when it is told to."""

    def __init__(self, begins: datetime = BEGINS) -> None:
        self._now = begins
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> datetime:
        with self._lock:
            self._now += max(by, timedelta(0))
            return self._now

    def advance_to(self, moment: datetime) -> datetime:
        with self._lock:
            self._now = max(self._now, moment)
            return self._now


class Faults(NamedTuple):
    """What share of answers goes wrong, and how: refused as too many, an error, late, broken off half way."""

    busy: float = 0.0
    broken: float = 0.0
    unavailable: float = 0.0
    slow: float = 0.0
    cut: float = 0.0
    slow_seconds: float = 0.02

    def drawn(self, chance: random.Random) -> str | None:
        """What goes wrong with the next answer, if anything."""
        roll = chance.random()
        for name in ("busy", "broken", "unavailable", "slow", "cut"):
            roll -= getattr(self, name)
            if roll < 0:
                return name
        return None


class Limits(NamedTuple):
    """What Reddit allows: requests in a window (0: any number), posts in a whole listing, how long a token is good."""

    requests: int = 600
    window: timedelta = timedelta(minutes=10)
    listing: int = 1000
    token_life: timedelta = timedelta(hours=1)


class Asked(NamedTuple):
    at: datetime
    path: str
    status: int


class ListedPage(NamedTuple):
    """A page of a listing as it was asked for and shown. `whole` is False where it did not arrive, or not all of it."""

    at: datetime
    community: str
    sort: str
    span: str
    after: str | None
    following: str | None
    posts: tuple[SimPost, ...]
    whole: bool


@dataclass
class SimReddit:
    """The whole of it, as tests see it. `shown` says which versions of each post left in an answer that was whole.

    `keeps_record` is False where nobody will look at `shown` and `pages`, and it has to be quick.
    """

    posts: Mapping[str, list[SimPost]]
    clock: Clock
    limits: Limits
    faults: Faults
    client: tuple[str, str] = ("an id", "a secret")
    seed: int = 0
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    shown: dict[str, list[Version]] = field(default_factory=dict)
    pages: list[ListedPage] = field(default_factory=list)
    faulted: Counter[str] = field(default_factory=Counter)
    keeps_record: bool = True
    tokens: dict[str, datetime] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"faults:{self.seed}")
        self._window_began = self.clock.now()
        self._used = 0

    def new_token(self) -> str:
        with self.lock:
            token = f"token-{self.seed}-{len(self.tokens) + 1}"
            self.tokens[token] = self.clock.now() + self.limits.token_life
            return token

    def knows(self, token: str) -> bool:
        return token in self.tokens and self.tokens[token] > self.clock.now()

    def count_request(self) -> tuple[int, int]:
        """Count one; returns how many are left in this window (negative: too many) and the seconds until the next."""
        with self.lock:
            now = self.clock.now()
            if now >= self._window_began + self.limits.window:
                self._window_began, self._used = now, 0
            self._used += 1
            reset = (self._window_began + self.limits.window - now).total_seconds()
            return self.limits.requests - self._used, max(1, int(reset))

    def fault(self) -> str | None:
        with self.lock:
            name = self.faults.drawn(self.chance)
            if name:
                self.faulted[name] += 1
            return name

    def note_shown(self, posts: list[SimPost], now: datetime) -> None:
        with self.lock:
            for post in posts:
                seen = self.shown.setdefault(post.id, [])
                version = post.version_at(now)
                if not seen or seen[-1][1:] != version[1:]:
                    seen.append(version)


def simulated(
    communities: Mapping[str, Habits],
    *,
    seed: int = 0,
    lasts: timedelta = timedelta(days=1),
    begins: datetime = BEGINS,
    clock: Clock | None = None,
    limits: Limits = Limits(),
    faults: Faults = Faults(),
) -> SimReddit:
    """A Reddit whose communities have a history of this length; its clock stands at the beginning."""
    posts = {name: history(name, begins, lasts, seed, habits) for name, habits in communities.items()}
    return SimReddit(posts, clock or Clock(begins), limits, faults, seed=seed)
