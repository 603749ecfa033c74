"""A simulated X: what happens in its accounts, and its state with limits and what it has shown.

The whole history is made in advance from a seed: posts, reposts, quotes, replies, edits, deletions. What a timeline
looks like at a moment is computed from it, so a test can compare what was stored with what could be seen.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headwater.sim.serving import BEGINS, Clock, Faults, SimSite, is_visible, version_at

NUMBERED_SINCE = datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=UTC)
LATEST_EDIT = timedelta(hours=1)
LATEST_ARRIVAL = timedelta(seconds=90)
LONGER_THAN_USUAL = 280
_ENGLISH = (
    "harbour signal lantern meadow copper orbit winter ledger engine garden market violin summit shadow carbon velvet"
    " tunnel island mirror thread canyon pepper rocket saddle temple walnut anchor #mining $BTC"
)
_CHINESE = "市场 今天 价格 上涨 矿机 算力 难度 电费 比特币 新闻 公司 发布 芯片 产量 下降 投资 报告 增长 公告 数据"
_WORDS = {"en": tuple(_ENGLISH.split()), "zh": tuple(_CHINESE.split())}


class TweetVersion(NamedTuple):
    """What a post says from `since` on, and its id from then on."""

    id: int
    since: datetime
    text: str


class SimTweet(NamedTuple):
    """A post with its whole future. `visible_at` is a little later than its time if X was slow."""

    author: str
    versions: tuple[TweetVersion, ...]
    visible_at: datetime
    lang: str
    liked: int
    link: str | None = None
    relation: str | None = None
    other: int | None = None
    images: int = 0
    deleted_at: datetime | None = None

    @property
    def id(self) -> int:
        return self.versions[0].id

    @property
    def created_at(self) -> datetime:
        return self.versions[0].since

    def is_listed(self, now: datetime) -> bool:
        return is_visible(self.visible_at, self.deleted_at, now)

    def version_at(self, now: datetime) -> TweetVersion:
        """Returns the newest visible version. A post that becomes visible late shows its edits at once."""
        return version_at(self.versions, max(now, self.created_at))

    def history_at(self, now: datetime) -> list[str]:
        return [str(version.id) for version in self.versions if version.since <= max(now, self.created_at)]


class AccountHabits(NamedTuple):
    """How busy an account is, and what share of its posts is a repost, edited, deleted and so on."""

    posts_per_day: float = 20.0
    reposts: float = 0.15
    quotes: float = 0.1
    replies: float = 0.15
    images: float = 0.2
    long: float = 0.1
    edited: float = 0.1
    deleted: float = 0.05
    late: float = 0.05
    bursts: float = 0.1
    lang: str = "en"
    protected: bool = False
    suspended: bool = False


class SimAccount(NamedTuple):
    id: int
    handle: str
    name: str
    habits: AccountHabits


def number_at(moment: datetime, sequence: int) -> int:
    """Returns the id of a post that was made at this moment."""
    return (int((moment - NUMBERED_SINCE).total_seconds() * 1000) << 22) | (sequence & 0x3FFFFF)


def accounts_of(habits: Mapping[str, AccountHabits]) -> dict[str, SimAccount]:
    return {
        handle.lower(): SimAccount(1_000_000 + place, handle, f"{handle.title()} of X", one)
        for place, (handle, one) in enumerate(habits.items())
    }


def history(
    accounts: Mapping[str, SimAccount], begins: datetime, lasts: timedelta, seed: int
) -> dict[str, list[SimTweet]]:
    """Returns every post of all accounts from `begins` on. Posts refer to earlier ones of any account."""
    times = sorted((at, handle) for handle, account in accounts.items() for at in _times(account, begins, lasts, seed))
    chance = random.Random(f"{seed}:posts")
    posts: dict[str, list[SimTweet]] = {handle: [] for handle in accounts}
    everything: list[SimTweet] = []
    for sequence, (at, handle) in enumerate(times):
        post = _post(accounts[handle], sequence, at, everything, chance)
        everything.append(post)
        posts[handle].append(post)
    return posts


def _times(account: SimAccount, begins: datetime, lasts: timedelta, seed: int) -> list[datetime]:
    chance = random.Random(f"{seed}:{account.id}")  # a world is the same whatever its accounts are called
    gap, at, times = 86_400 / account.habits.posts_per_day, begins, []
    while at < begins + lasts:
        times.append(at)
        # Now and then several within a second, as after a piece of news.
        pause = 0.3 if chance.random() < account.habits.bursts else 1 + chance.expovariate(1 / gap)
        at += timedelta(milliseconds=int(pause * 1000))
    return times


def _post(
    account: SimAccount, sequence: int, at: datetime, before: Sequence[SimTweet], chance: random.Random
) -> SimTweet:
    habits = account.habits
    relation = _relation(habits, chance) if before else None
    other = chance.choice(before[-200:]) if relation else None
    if relation == "retweeted" and other and other.relation == "retweeted":
        relation, other = None, None  # X shows a repost of a repost as one of the original
    repost = relation == "retweeted"
    versions = [TweetVersion(number_at(at, sequence), at, "" if repost else _text(habits, chance))]
    if not repost and chance.random() < habits.edited:
        edited_at = at + LATEST_EDIT * (0.01 + 0.98 * chance.random())
        versions.append(TweetVersion(number_at(edited_at, sequence), edited_at, _text(habits, chance)))
    late = LATEST_ARRIVAL * chance.random() if chance.random() < habits.late else timedelta(0)
    gone = timedelta(hours=12) * chance.random() if chance.random() < habits.deleted else None
    return SimTweet(
        author=account.handle.lower(),
        versions=tuple(versions),
        visible_at=at + late,
        lang=habits.lang,
        liked=int(chance.paretovariate(1.2) * 5) % 20_000,
        link=f"https://news.example/story/{sequence}?a=1&b=2" if not repost and chance.random() < 0.3 else None,
        relation=relation,
        other=other.id if other else None,
        images=0 if repost or chance.random() >= habits.images else chance.randint(1, 4),
        deleted_at=at + gone if gone else None,
    )


def _relation(habits: AccountHabits, chance: random.Random) -> str | None:
    roll = chance.random()
    for name, share in (("retweeted", habits.reposts), ("quoted", habits.quotes), ("replied_to", habits.replies)):
        roll -= share
        if roll < 0:
            return name
    return None


def _text(habits: AccountHabits, chance: random.Random) -> str:
    words = 90 if chance.random() < habits.long else chance.randint(6, 18)
    said = [chance.choice(_WORDS[habits.lang]) for _ in range(words)]
    return ("" if habits.lang == "zh" else " ").join(said) + (" <3 & more" if chance.random() < 0.2 else "")


class XLimits(NamedTuple):
    """What X allows: requests per kind and window, posts in a timeline, the reach of a search, posts per month.

    0 requests or posts per month mean no limit.
    """

    requests: int = 900
    window: timedelta = timedelta(minutes=15)
    timeline: int = 3200
    search: timedelta = timedelta(days=7)
    month: int = 0


@dataclass
class SimX(SimSite):
    """All of an X's state. `shown` holds the texts of each post that left in a complete response."""

    accounts: Mapping[str, SimAccount]
    posts: Mapping[str, list[SimTweet]]
    limits: XLimits = field(default_factory=XLimits)
    token: str = "a-bearer-token"
    shown: dict[int, list[str]] = field(default_factory=dict)
    read: int = 0
    page_keys: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.by_id = {version.id: post for posts in self.posts.values() for post in posts for version in post.versions}
        self._windows: dict[str, tuple[datetime, int]] = {}

    def count_request(self, kind: str) -> tuple[int, datetime]:
        """Counts a request. Returns how many are left in this window (negative: too many) and when the next begins."""
        with self.lock:
            now = self.clock.now()
            began, used = self._windows.get(kind, (now, 0))
            if now >= began + self.limits.window:
                began, used = now, 0
            self._windows[kind] = (began, used + 1)
            return self.limits.requests - used - 1, began + self.limits.window

    def note_shown(self, posts: Sequence[SimTweet], now: datetime) -> None:
        with self.lock:
            self.read += len(posts)
            for post in posts:
                texts = self.shown.setdefault(post.id, [])
                text = post.version_at(now).text
                if not texts or texts[-1] != text:
                    texts.append(text)

    def forget_pages(self) -> None:
        """Makes every page token invalid that was given out before."""
        self.page_keys += 1


def simulated(
    accounts: Mapping[str, AccountHabits],
    *,
    seed: int = 0,
    lasts: timedelta = timedelta(days=1),
    begins: datetime = BEGINS,
    limits: XLimits = XLimits(),
    faults: Faults = Faults(),
) -> SimX:
    """Returns an X whose accounts have a history of this length. Its clock is at the beginning."""
    known = accounts_of(accounts)
    return SimX(known, history(known, begins, lasts, seed), limits, clock=Clock(begins), faults=faults, seed=seed)
