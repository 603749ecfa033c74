"""A simulated forum: what happens in its boards, and its state.

The whole history is made in advance from a seed: threads that grow, bumps, edits, deletions, images. What a board or a
thread looks like at a moment is computed from it, so a test can compare what was stored with what could be seen.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.sim.serving import BEGINS, Clock, Faults, SimSite, is_visible, version_at

_ENGLISH = (
    "river delta stone harbour signal lantern meadow copper orbit winter ledger engine garden market violin summit"
    " hashrate firmware cooling voltage fan miner pool payout power board"
)
_CHINESE = "算力 矿机 电费 固件 散热 矿池 收益 风扇 电源 机房 温度 噪音 行情 难度 挖矿 托管 水冷 主板 频率 维修"
_VOCABULARY = {"en": tuple(_ENGLISH.split()), "zh": tuple(_CHINESE.split())}
_NAMES = {
    "en": ("alder", "birch", "cedar", "hazel", "maple", "rowan", "willow", "aspen"),
    "zh": ("老王", "小李", "矿工", "阿强", "南山", "北风", "大鹏", "石头"),
}


class ForumVersion(NamedTuple):
    since: datetime
    text: str


class SimForumPost(NamedTuple):
    """A post with its whole future. `answers` is the id of the post that it quotes."""

    id: int
    author: str
    created_at: datetime
    versions: tuple[ForumVersion, ...]
    image: int | None = None
    answers: int | None = None
    deleted_at: datetime | None = None

    def is_there(self, now: datetime) -> bool:
        return is_visible(self.created_at, self.deleted_at, now)

    def version_at(self, now: datetime) -> ForumVersion:
        return version_at(self.versions, now)


class SimThread(NamedTuple):
    id: int
    board: str
    title: str
    posts: tuple[SimForumPost, ...]
    pinned: bool = False

    def posts_at(self, now: datetime) -> list[SimForumPost]:
        """Returns the posts that can be seen. Nobody deletes the first post of a thread."""
        return [post for post in self.posts if post.is_there(now)]

    def place_of(self, id: int) -> int:
        """Returns the post's number within the thread, as Discourse counts: from 1, deleted posts included."""
        return next(place for place, post in enumerate(self.posts, 1) if post.id == id)


class ForumHabits(NamedTuple):
    """How busy a board is, and what share of its posts is edited, deleted and so on. `pinned` counts threads."""

    lang: str = "en"
    threads_per_day: float = 12.0
    replies: float = 6.0
    long: float = 0.05
    bumped: float = 0.15
    edited: float = 0.1
    deleted: float = 0.05
    images: float = 0.15
    answers: float = 0.3
    pinned: int = 1


@dataclass
class SimForum(SimSite):
    """All of a forum's state."""

    habits: Mapping[str, ForumHabits]
    threads: Mapping[int, SimThread]
    threads_a_page: int = 20
    posts_a_page: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self.boards = dict(enumerate(self.habits, 1))

    def listed(self, board: str | None, now: datetime) -> list[SimThread]:
        """Returns the threads of one board or of all in the order of the list: pinned first, then by last post."""
        there = [thread for thread in self.threads.values() if board in (None, thread.board) and thread.posts_at(now)]
        return sorted(
            there, key=lambda thread: (thread.pinned, last_post(thread, now).created_at, thread.id), reverse=True
        )


def last_post(thread: SimThread, now: datetime) -> SimForumPost:
    return max(thread.posts_at(now), key=lambda post: (post.created_at, post.id))


def simulated(
    boards: Mapping[str, ForumHabits],
    *,
    seed: int = 0,
    lasts: timedelta = timedelta(days=2),
    faults: Faults = Faults(),
    threads_a_page: int = 20,
) -> SimForum:
    """Returns a forum whose boards have a history of this length. Its clock is at the beginning."""
    drafts = [thread for name, habits in boards.items() for thread in _board(name, habits, BEGINS, lasts, seed)]
    threads = {thread.id: thread for thread in _numbered(drafts)}
    return SimForum(boards, threads, threads_a_page, clock=Clock(BEGINS), faults=faults, seed=seed)


def _board(name: str, habits: ForumHabits, begins: datetime, lasts: timedelta, seed: int) -> list[SimThread]:
    chance = random.Random(f"{seed}:{name}")
    threads: list[SimThread] = []
    at = begins.replace(microsecond=0)
    while at < begins + lasts:
        title = _words(chance, habits.lang, 5)
        posts = _posts(chance, habits, at, begins + lasts)
        threads.append(SimThread(0, name, title, tuple(posts), pinned=len(threads) < habits.pinned))
        at += timedelta(seconds=1 + int(chance.expovariate(habits.threads_per_day / 86_400)))
    return threads


def _posts(chance: random.Random, habits: ForumHabits, begins: datetime, ends: datetime) -> list[SimForumPost]:
    count = int(chance.expovariate(1 / max(habits.replies, 0.01)))
    if chance.random() < habits.long:
        count = count * 8 + 25
    posts: list[SimForumPost] = []
    at = begins
    for place in range(count + 1):
        if place and at >= ends:
            break
        posts.append(_post(chance, habits, at, place))
        # Most replies come within the hour; a few come much later and bump the thread.
        hours = chance.uniform(6, 30) if chance.random() < habits.bumped else chance.expovariate(2)
        at += timedelta(seconds=1 + int(hours * 3_600))
    return posts


def _post(chance: random.Random, habits: ForumHabits, at: datetime, place: int) -> SimForumPost:
    def happens(share: float) -> datetime | None:
        return at + timedelta(minutes=chance.randint(5, 600)) if chance.random() < share else None

    versions = [ForumVersion(at, _text(chance, habits.lang))]
    edited_at = happens(habits.edited)
    if edited_at:
        versions.append(ForumVersion(edited_at, _text(chance, habits.lang)))
    answered = chance.randrange(place) if place and chance.random() < habits.answers else None
    return SimForumPost(
        id=0,
        author=f"{chance.choice(_NAMES[habits.lang])}{chance.randrange(100)}",
        created_at=at,
        versions=tuple(versions),
        image=chance.randrange(1, 1_000_000) if chance.random() < habits.images else None,
        answers=answered,
        deleted_at=happens(habits.deleted) if place else None,
    )


def _numbered(drafts: Sequence[SimThread]) -> list[SimThread]:
    """Returns threads and posts with ids as a database assigns them: in order of time, over all boards."""
    by_time = sorted(drafts, key=lambda thread: (thread.posts[0].created_at, thread.board))
    waiting = [
        (post.created_at, which, place) for which, one in enumerate(by_time) for place, post in enumerate(one.posts)
    ]
    ids = {(which, place): number for number, (_, which, place) in enumerate(sorted(waiting), 1001)}
    return [
        thread._replace(
            id=which + 101, posts=tuple(_with_ids(thread.posts, [ids[which, n] for n in range(len(thread.posts))]))
        )
        for which, thread in enumerate(by_time)
    ]


def _with_ids(posts: Sequence[SimForumPost], ids: Sequence[int]) -> list[SimForumPost]:
    return [
        post._replace(id=ids[place], answers=None if post.answers is None else ids[post.answers])
        for place, post in enumerate(posts)
    ]


def _words(chance: random.Random, lang: str, count: int) -> str:
    words = [chance.choice(_VOCABULARY[lang]) for _ in range(count)]
    return "".join(words) if lang == "zh" else " ".join(words).capitalize()


def _text(chance: random.Random, lang: str) -> str:
    end = "。" if lang == "zh" else " <ok> & more."
    return "\n\n".join(_words(chance, lang, chance.randint(6, 14)) + end for _ in range(chance.randint(1, 3)))
