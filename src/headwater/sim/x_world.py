"""The state of a simulated X: its accounts, clock, limits, faults, and what it has given out."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.sim.reddit_world import BEGINS, Asked, Clock, Faults
from headwater.sim.x_accounts import Habits, SimAccount, SimPost, accounts_of, history


class Limits(NamedTuple):
    """What X allows: requests of each kind in a window, posts in a timeline, how far back a search goes, posts a month.

    0 requests or posts a month are any number.
    """

    requests: int = 900
    window: timedelta = timedelta(minutes=15)
    timeline: int = 3200
    search: timedelta = timedelta(days=7)
    month: int = 0


@dataclass
class SimX:
    """The whole of it, as tests see it. `shown` says which texts of each post left in an answer that was whole."""

    accounts: Mapping[str, SimAccount]
    posts: Mapping[str, list[SimPost]]
    clock: Clock
    limits: Limits
    faults: Faults
    token: str = "a-bearer-token"
    seed: int = 0
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    shown: dict[int, list[str]] = field(default_factory=dict)
    read: int = 0
    page_keys: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"faults:{self.seed}")
        self.by_id = {version.id: post for posts in self.posts.values() for post in posts for version in post.versions}
        self._windows: dict[str, tuple[datetime, int]] = {}

    def count_request(self, kind: str) -> tuple[int, datetime]:
        """Count one; returns how many are left in this window (negative: too many) and when the next begins."""
        with self.lock:
            now = self.clock.now()
            began, used = self._windows.get(kind, (now, 0))
            if now >= began + self.limits.window:
                began, used = now, 0
            self._windows[kind] = (began, used + 1)
            return self.limits.requests - used - 1, began + self.limits.window

    def fault(self) -> str | None:
        with self.lock:
            return self.faults.drawn(self.chance)

    def note_shown(self, posts: list[SimPost], now: datetime) -> None:
        with self.lock:
            self.read += len(posts)
            for post in posts:
                texts = self.shown.setdefault(post.id, [])
                text = post.version_at(now).text
                if not texts or texts[-1] != text:
                    texts.append(text)

    def forget_pages(self) -> None:
        """From now on no token for a page that was given out before leads anywhere."""
        self.page_keys += 1


def simulated(
    accounts: Mapping[str, Habits],
    *,
    seed: int = 0,
    lasts: timedelta = timedelta(days=1),
    begins: datetime = BEGINS,
    clock: Clock | None = None,
    limits: Limits = Limits(),
    faults: Faults = Faults(),
) -> SimX:
    """An X whose accounts have a history of this length; its clock stands at the beginning."""
    known = accounts_of(accounts)
    return SimX(known, history(known, begins, lasts, seed), clock or Clock(begins), limits, faults, seed=seed)
