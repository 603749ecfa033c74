"""The course of a simulated week, decided by a seed: communities of every size, faults, processes that come and go."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater import wire
from headwater.follow import pool
from headwater.follow.pool import Candidate
from headwater.sim.reddit import serving
from headwater.sim.reddit_world import CommunityHabits, RedditLimits, SimReddit, simulated
from headwater.sim.serving import BEGINS, Faults
from headwater.sim.week.life import BLINK, Life, Time
from headwater.sim.week.truth import Differences, compare, over_budget
from headwater.store.posts import contents
from headwater.store.sources import leases
from headwater.store.sources import pool as pool_store
from headwater.wire import Parts

DAY = timedelta(days=1)
WEEK = 7 * DAY
BEFORE = DAY  # of history, when the first visit comes
AFTER = timedelta(hours=6)
WINDOW = timedelta(seconds=60)
TROUBLE = Faults(busy=0.01, broken=0.02, unavailable=0.01, slow=0.02, cut=0.02, slow_seconds=0.01)
SITE = "https://www.reddit.com/r/"
INTERRUPTIONS = 6
TIERS_EVERY, QUIET_EVERY = DAY, timedelta(hours=4)


class Size(NamedTuple):
    """How large a week is: `requests` is the budget per minute, `listing` how many posts Reddit shows at most."""

    communities: int = 200
    requests: int = 60
    listing: int = 1000


class Interruption(NamedTuple):
    """A process stops or crashes in the middle of its visits and comes back some time later."""

    at: datetime
    who: int
    crashes: bool
    lasts: timedelta
    after_requests: int


class Report(NamedTuple):
    seed: int
    findings: Differences
    requests: int
    over_budget: int
    faults: Counter[str]
    crashes: int
    stops: int
    seconds: float

    @property
    def is_right(self) -> bool:
        return not self.findings.wrong and not self.over_budget


async def live_through(seed: int, size: Size, environ: Mapping[str, str]) -> Report:
    """Runs a whole week on the store that `environ` names, which must have its schema."""
    began = time.monotonic()
    limits = RedditLimits(listing=size.listing)
    habits = communities(seed, size)
    reddit = simulated(habits, seed=seed, lasts=BEFORE + WEEK + AFTER, limits=limits, faults=TROUBLE)
    reddit.clock.advance(BEFORE)
    with serving(reddit):
        week = Week(reddit, {**environ, **_settings(reddit, size)}, seed)
        await week.live(habits)
    kept = {address.removeprefix(SITE): one for address, one in week.kept.items()}
    return Report(
        seed=seed,
        findings=compare(reddit, kept),
        requests=len(reddit.asked),
        over_budget=over_budget([asked.at for asked in reddit.asked], size.requests, WINDOW),
        faults=reddit.faulted,
        crashes=week.crashes,
        stops=week.stops,
        seconds=time.monotonic() - began,
    )


def communities(seed: int, size: Size) -> dict[str, CommunityHabits]:
    """Returns a few busy communities, two with a flood that no listing holds, some slower ones and many quiet ones."""
    chance = random.Random(f"week:{seed}")
    found = {}
    for number in range(size.communities):
        place = number / size.communities
        each_day = chance.uniform(25, 150) if place < 0.2 else chance.uniform(10, 20) if place < 0.5 else 0
        each_day = each_day or chance.uniform(0.5, 9)
        flood = int(size.listing * chance.uniform(1.05, 1.5)) if number < 2 else 0
        found[f"c{number:03}"] = CommunityHabits(
            posts_per_day=each_day, late=0.08, edited=0.2, removed=0.05, flood=flood
        )
    return found


def interruptions(seed: int) -> list[Interruption]:
    chance = random.Random(f"interruptions:{seed}")
    return sorted(
        Interruption(
            at=BEGINS + BEFORE + WEEK * chance.uniform(0.02, 0.95),
            who=chance.randrange(2),
            crashes=bool(number % 2),
            lasts=timedelta(hours=chance.choice([0.1, 2, 8])),
            after_requests=chance.choice([1, 1, 1, 2, 4]),
        )
        for number in range(INTERRUPTIONS)
    )


def _settings(reddit: SimReddit, size: Size) -> dict[str, str]:
    return {
        "HEADWATER_ALLOW_PRIVATE_NETWORKS": "127.0.0.0/8",
        "HEADWATER_HOST_GAP_SECONDS": "0",  # the budget is the limit here
        "HEADWATER_PARSER_PROCESSES": "1",
        "HEADWATER_REDDIT_RATE_LIMIT": str(size.requests),
        "HEADWATER_REDDIT_URL": reddit.url,
        "HEADWATER_REDDIT_API_URL": reddit.url,
    }


class Week:
    """Two processes on one store; the second starts after a third of the week. `kept` is what is stored at the end."""

    def __init__(self, reddit: SimReddit, environ: dict[str, str], seed: int) -> None:
        self.crashes = self.stops = 0
        self._reddit = reddit
        self._environ = environ
        self._time = Time(reddit.clock)
        begins = reddit.clock.now()
        self._ends = begins + WEEK
        self._lives: dict[int, Life] = {}
        self._returns = {0: begins, 1: begins + WEEK / 3}
        self._ahead = interruptions(seed)
        self._chores = {TIERS_EVERY: begins + TIERS_EVERY, QUIET_EVERY: begins + QUIET_EVERY}

    async def live(self, habits: Mapping[str, CommunityHabits]) -> None:
        keeper = Life(self._reddit, self._time, self._environ)  # maintains the store and visits nothing
        try:
            await self._follow(keeper.parts, habits)
            while self._now() < self._ends:
                self._begin_lives()
                await self._keep_house(keeper.parts)
                await self._round()
                await self._pass_time(keeper.parts)
            await self._end_well(keeper)
            self.kept = await keeper.parts.db.read(contents)
        finally:
            for life in self._lives.values():
                await life.stop()
            await keeper.stop()

    def _now(self) -> datetime:
        return self._reddit.clock.now()

    async def _follow(self, parts: Parts, habits: Mapping[str, CommunityHabits]) -> None:
        owner = wire.prepare_store(parts)
        found = [Candidate(f"{SITE}{name}", _first_tier(one), ()) for name, one in habits.items()]
        await parts.db.write(pool.bring_in, owner, found, self._now())

    def _begin_lives(self) -> None:
        for who in [who for who, at in self._returns.items() if at <= self._now()]:
            del self._returns[who]
            self._lives[who] = Life(self._reddit, self._time, self._environ)

    async def _keep_house(self, parts: Parts) -> None:
        """Recomputes the tiers every day and revisits the quiet communities."""
        for every, at in self._chores.items():
            if at <= self._now():
                self._chores[every] = at + every
                await (
                    parts.db.write(pool.apply_tiers)
                    if every == TIERS_EVERY
                    else parts.db.write(pool_store.revisit_quiet, self._now())
                )

    async def _round(self) -> None:
        due = self._ahead[0] if self._ahead and self._ahead[0].at <= self._now() else None
        rounds = {who: asyncio.create_task(life.round()) for who, life in self._lives.items()}
        if due and due.who in rounds:
            await self._interrupt(due, rounds.pop(due.who))
        elif due:
            self._ahead.pop(0)  # it is not running
        await asyncio.gather(*rounds.values())

    async def _interrupt(self, how: Interruption, round: asyncio.Task[None]) -> None:
        """Ends the process after so many requests. If it makes fewer, the interruption waits for a later round."""
        enough = len(self._reddit.asked) + how.after_requests
        while not round.done() and len(self._reddit.asked) < enough:
            await asyncio.sleep(BLINK)
        if round.done():
            await round
            return
        round.cancel()
        await asyncio.wait([round])
        self._ahead.pop(0)
        life = self._lives.pop(how.who)
        await (life.crash() if how.crashes else life.stop())
        self.crashes += how.crashes
        self.stops += not how.crashes
        self._returns[how.who] = self._now() + how.lasts

    async def _pass_time(self, parts: Parts) -> None:
        """Moves the clock to the next moment at which there is something to do."""
        due_at = await parts.db.read(leases.next_due) if self._lives else None
        others = [*self._returns.values(), *self._chores.values(), self._ends]
        ahead = min([due_at, *others] if due_at else others)
        self._reddit.clock.advance_to(max(ahead, self._now() + timedelta(seconds=1)))

    async def _end_well(self, keeper: Life) -> None:
        """Visits everything once more after the week, by time and without faults."""
        self._reddit.faults = Faults()
        self._reddit.clock.advance(keeper.parts.settings.lease_seconds * timedelta(seconds=1))
        waiting = [one.source_id for one in (await keeper.parts.db.read(contents)).values()]
        for source_id in waiting:
            await keeper.parts.db.write(pool.pin_tier, source_id, "high")
        while waiting:
            waiting = await keeper.visit(waiting)
            self._reddit.clock.advance(WINDOW)


def _first_tier(habits: CommunityHabits) -> str:
    return "high" if habits.posts_per_day >= 20 else "medium" if habits.posts_per_day >= 10 else "low"
