"""A simulated Reddit: what happens in its communities, and its state with limits, tokens and what it has shown.

A community's whole history is made in advance from a seed: posts, edits, deletions, late arrivals. What a listing looks
like at a moment is computed from it, so a test can compare what was stored with what could be seen.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.sim.serving import BEGINS, Clock, Faults, SimSite, is_visible, version_at

_VOCABULARY = (
    "river delta stone harbour signal lantern meadow copper orbit winter ledger engine garden market violin summit"
    " shadow carbon velvet tunnel island mirror thread canyon pepper rocket saddle temple walnut anchor"
)
_WORDS = tuple(_VOCABULARY.split())
_FLAIRS = (None, None, "Discussion", "News", "Help & Advice")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_HOURS = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "year": 365 * 24, "all": 36_500 * 24}
SPANS = {name: timedelta(hours=hours) for name, hours in _HOURS.items()}


class RedditVersion(NamedTuple):
    """What a post says from `since` on. `text` is empty for a post that is a link."""

    since: datetime
    title: str
    text: str


class SimRedditPost(NamedTuple):
    """A post with its whole future. `visible_at` is later than `created_at` if it was held back."""

    id: str
    community: str
    author: str
    created_at: datetime
    visible_at: datetime
    versions: tuple[RedditVersion, ...]
    liked: int
    link: str | None = None
    flair: str | None = None
    crosspost_parent: str | None = None
    removed_at: datetime | None = None
    deleted_at: datetime | None = None

    def is_listed(self, now: datetime) -> bool:
        return is_visible(self.visible_at, self.deleted_at, now)

    def is_removed(self, now: datetime) -> bool:
        return self.removed_at is not None and self.removed_at <= now

    def version_at(self, now: datetime) -> RedditVersion:
        said = version_at(self.versions, now)
        return said._replace(text="[removed]") if self.is_removed(now) else said

    def score_at(self, now: datetime) -> int:
        hours = max(0.0, (now - self.created_at).total_seconds() / 3600)
        return 1 + int(self.liked * (1 - math.exp(-hours / 4)))

    def comments_at(self, now: datetime) -> int:
        return self.score_at(now) // 3

    def comment_at(self, place: int) -> datetime:
        """Returns when the comment at this place (0 is the first) was written: when the score first allows it."""
        share = (3 * (place + 1) - 1) / self.liked
        return self.created_at + timedelta(hours=-4 * math.log(1 - share)) if share < 1 else self.created_at


class CommunityHabits(NamedTuple):
    """How busy a community is, and what share of its posts is late, edited, deleted and so on.

    `flood` is how many posts come at once about the middle of the history, perhaps more than a listing shows.
    """

    posts_per_day: float = 60.0
    late: float = 0.05
    edited: float = 0.15
    deleted: float = 0.05
    removed: float = 0.03
    links: float = 0.3
    crossposts: float = 0.05
    bursts: float = 0.1
    flood: int = 0


def history(name: str, begins: datetime, lasts: timedelta, seed: int, habits: CommunityHabits) -> list[SimRedditPost]:
    """Returns every post of a community from `begins` on, ordered by time."""
    chance = random.Random(f"{seed}:{name}")
    gap = 86_400 / habits.posts_per_day
    posts: list[SimRedditPost] = []
    flood_at, flooded = begins + lasts * random.Random(f"flood:{seed}:{name}").uniform(0.3, 0.7), 0
    at = begins.replace(microsecond=0)
    while at < begins + lasts:
        posts.append(_post(name, len(posts), at, posts, chance, habits))
        if at >= flood_at and flooded < habits.flood:
            flooded += 1
            at += timedelta(seconds=flooded % 2)
            continue
        # Now and then several in one second, as after a piece of news: a time alone does not tell posts apart.
        pause = 0 if chance.random() < habits.bursts else 1 + int(chance.expovariate(1 / gap))
        at += timedelta(seconds=pause)
    return posts


def listed(posts: Iterable[SimRedditPost], now: datetime, sort: str, span: str) -> list[SimRedditPost]:
    """Returns the community's listing at a moment, best first."""
    there = [post for post in posts if post.is_listed(now)]
    if sort == "new":
        return sorted(there, key=_by_time, reverse=True)
    if sort == "top":
        there = [post for post in there if now - post.created_at <= SPANS[span]]
        return sorted(there, key=lambda post: (post.score_at(now), post.id), reverse=True)
    if sort == "rising":
        there = [post for post in there if now - post.created_at <= timedelta(hours=6)]
    return sorted(there, key=lambda post: (_heat(post, now), post.id), reverse=True)


def page_of(
    posts: Sequence[SimRedditPost], everything: Iterable[SimRedditPost], sort: str, after: str | None, limit: int
) -> tuple[list[SimRedditPost], str | None]:
    """Returns a page of a listing and the `after` of the next. A deleted post still marks its place by time."""
    if after:
        mark = next((post for post in everything if post.id == after), None)
        if mark is None:
            return [], None
        if sort == "new":
            posts = [post for post in posts if _by_time(post) < _by_time(mark)]
        else:
            ids = [post.id for post in posts]
            posts = posts[ids.index(after) + 1 :] if after in ids else []
    return list(posts[:limit]), posts[limit - 1].id if len(posts) > limit else None


def _post(
    name: str,
    number: int,
    at: datetime,
    before: Sequence[SimRedditPost],
    chance: random.Random,
    habits: CommunityHabits,
) -> SimRedditPost:
    def happens(share: float, longest: timedelta) -> datetime | None:
        return at + longest * (0.05 + 0.95 * chance.random()) if chance.random() < share else None

    id = f"t3_{_base36(chance.randrange(36**4) * 100_000 + number)}"
    visible_at = happens(habits.late, timedelta(hours=2)) or at
    is_link = chance.random() < habits.links
    versions = [RedditVersion(at, _words(chance, 6), "" if is_link else _text(chance))]
    edited_at = happens(0.0 if is_link else habits.edited, timedelta(hours=6))
    if edited_at:
        versions.append(RedditVersion(edited_at, versions[0].title, _text(chance)))
    return SimRedditPost(
        id=id,
        community=name,
        author=f"{chance.choice(_WORDS)}_{chance.randrange(1000)}",
        created_at=at,
        visible_at=visible_at,
        versions=tuple(versions),
        liked=int(chance.paretovariate(1.2) * 5) % 20_000,
        link=f"https://news.example/{name}/{number}" if is_link else None,
        flair=chance.choice(_FLAIRS),
        crosspost_parent=chance.choice(before).id if before and chance.random() < habits.crossposts else None,
        removed_at=happens(0.0 if is_link else habits.removed, timedelta(hours=8)),
        deleted_at=happens(habits.deleted, timedelta(hours=12)),
    )


def _by_time(post: SimRedditPost) -> tuple[datetime, str]:
    return post.created_at, post.id


def _heat(post: SimRedditPost, now: datetime) -> float:
    return math.log10(post.score_at(now) + 1) - (now - post.created_at).total_seconds() / 45_000


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(count)).capitalize()


def _text(chance: random.Random) -> str:
    return "\n\n".join(f"{_words(chance, 12)} <{_words(chance, 1)}> & more." for _ in range(chance.randint(1, 3)))


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


class RedditLimits(NamedTuple):
    """What Reddit allows: requests per window (0: no limit), posts in a whole listing, the life of a token."""

    requests: int = 600
    window: timedelta = timedelta(minutes=10)
    listing: int = 1000
    token_life: timedelta = timedelta(hours=1)


class ListedPage(NamedTuple):
    """A page of a listing as it was requested and shown. `whole` is False if not all of it was sent."""

    at: datetime
    community: str
    sort: str
    span: str
    after: str | None
    following: str | None
    posts: tuple[SimRedditPost, ...]
    whole: bool


@dataclass
class SimReddit(SimSite):
    """All of a Reddit's state. `shown` holds the versions of each post that left in a complete response.

    `keeps_record` is False where nobody will read `shown` and `pages` and speed matters.
    """

    posts: Mapping[str, list[SimRedditPost]]
    limits: RedditLimits = field(default_factory=RedditLimits)
    client: tuple[str, str] = ("an id", "a secret")
    shown: dict[str, list[RedditVersion]] = field(default_factory=dict)
    pages: list[ListedPage] = field(default_factory=list)
    faulted: Counter[str] = field(default_factory=Counter)
    keeps_record: bool = True
    tokens: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
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
        """Counts a request. Returns how many are left in this window (negative: too many) and seconds to the next."""
        with self.lock:
            now = self.clock.now()
            if now >= self._window_began + self.limits.window:
                self._window_began, self._used = now, 0
            self._used += 1
            reset = (self._window_began + self.limits.window - now).total_seconds()
            return self.limits.requests - self._used, max(1, int(reset))

    def fault(self) -> str | None:
        with self.lock:
            name = super().fault()
            if name:
                self.faulted[name] += 1
            return name

    def note_shown(self, posts: Sequence[SimRedditPost], now: datetime) -> None:
        with self.lock:
            for post in posts:
                seen = self.shown.setdefault(post.id, [])
                version = post.version_at(now)
                if not seen or seen[-1][1:] != version[1:]:
                    seen.append(version)


def simulated(
    communities: Mapping[str, CommunityHabits],
    *,
    seed: int = 0,
    lasts: timedelta = timedelta(days=1),
    limits: RedditLimits = RedditLimits(),
    faults: Faults = Faults(),
) -> SimReddit:
    """Returns a Reddit whose communities have a history of this length. Its clock is at the beginning."""
    posts = {name: history(name, BEGINS, lasts, seed, habits) for name, habits in communities.items()}
    return SimReddit(posts, limits, clock=Clock(BEGINS), faults=faults, seed=seed)
