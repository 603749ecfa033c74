"""Compares the store after a week with the simulator's own record of what it showed. Pure.

A recorded visit must have stored exactly what its pages showed. Pages without a recorded visit belong to one that was
broken off, and may have left no trace. The watermark, the gaps and what the crawler had to see are computed here from
the simulated posts, without any of the crawler's code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headwater.sim.reddit_world import SPANS, ListedPage, RedditVersion, SimReddit, SimRedditPost
from headwater.store.posts import Contents, Visited
from headwater.text import plain

LATE = timedelta(hours=2)  # a post that was held back this long must still be found
PROMPT = timedelta(hours=1)  # a visit makes its requests within this; visits are further apart
NEVER = datetime.max.replace(tzinfo=UTC)
GOOD = ("ok", "unchanged", "empty")

Look = list[ListedPage]
Words = tuple[str, str]


@dataclass
class Differences:
    """What is wrong, in words, and counts of what there was."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def compare(reddit: SimReddit, kept: dict[str, Contents]) -> Differences:
    """Compares what is stored of each community, by name, with what was shown of it."""
    found = Differences()
    pages: dict[str, Look] = {name: [] for name in reddit.posts}
    for page in reddit.pages:
        pages[page.community].append(page)
    for name, contents in kept.items():
        community = _Community(name, reddit.posts[name], found)
        for visited, look in paired(contents.visits, looks(pages[name]), found.counts):
            community.visit(visited, look)
        community.compare(contents)
    return found


def over_budget(times: Sequence[datetime], requests: int, window: timedelta) -> int:
    """Returns how many requests came less than `window` after the one `requests` places before."""
    ordered = sorted(times)
    return sum(end - begin < window for begin, end in zip(ordered, ordered[requests:], strict=False))


def looks(pages: Iterable[ListedPage]) -> list[Look]:
    """Groups pages by visit: a first page and those that follow from it."""
    found: list[Look] = []
    for page in pages:
        if page.after is None:
            found.append([page])
            continue
        look = next((look for look in reversed(found) if look[-1].following == page.after), None)
        if look is not None:
            look.append(page)
    return found


def paired(visits: Sequence[Visited], seen: Sequence[Look], counts: Counter[str]) -> list[tuple[Visited, Look | None]]:
    """Returns each recorded visit with the pages it saw. A community has one visit at a time, with pauses between."""
    left = list(seen)
    found: list[tuple[Visited, Look | None]] = []
    next_starts = [*(visited.started_at for visited in visits[1:]), NEVER]
    for visited, next_at in zip(visits, next_starts, strict=False):
        while left and left[0][0].at < visited.started_at:
            left.pop(0)
            counts["visits broken off"] += 1
        own = bool(left) and left[0][0].at < min(visited.started_at + PROMPT, next_at)
        found.append((visited, left.pop(0) if own else None))
    counts["visits broken off"] += len(left)
    return found


def words(post: SimRedditPost, version: RedditVersion) -> Words:
    """Returns a version as it must be stored."""
    text = "" if version.text == "[removed]" else version.text or post.link or ""
    return version.title, " ".join(text.split())


class _Community:
    """Follows one community visit by visit."""

    def __init__(self, name: str, everything: Sequence[SimRedditPost], found: Differences) -> None:
        self._name = name
        self._everything = everything
        self._found = found
        self._known: dict[str, list[Words]] = {}
        self._mark: datetime | None = None
        self._gaps: list[tuple[datetime, datetime]] = []

    def visit(self, visited: Visited, look: Look | None) -> None:
        self._found.counts["visits"] += 1
        self._found.counts[f"visits {visited.outcome}"] += 1
        good = visited.outcome in GOOD
        if look is None:
            self._expect(not good and not visited.posts, visited, "brought posts that were never shown")
            return
        pages = look if good else _stored_of(look, visited.posts)
        self._expect(pages is not None, visited, f"failed and stored {visited.posts} posts, which are no whole pages")
        self._expect(all(page.whole for page in pages or []), visited, "took a broken page for a whole one")
        for page in pages or []:
            self._show(page)
        if good:
            self._move_on(visited, look)
        else:
            self._expect(not visited.watermark_updated and not visited.gap, visited, "failed, and moved the watermark")

    def compare(self, contents: Contents) -> None:
        stored = Counter(post.source_post_id for post in contents.posts)
        self._say(any(count > 1 for count in stored.values()), "posts are stored twice")
        self._say(bool(set(self._known) - set(stored)), f"not stored: {sorted(set(self._known) - set(stored))[:3]}")
        self._say(bool(set(stored) - set(self._known)), f"never shown: {sorted(set(stored) - set(self._known))[:3]}")
        for post in contents.posts:
            texts = [(title, plain(content)) for title, content in post.texts]
            self._say(texts != self._known.get(post.source_post_id, texts), f"other versions of {post.source_post_id}")
        self._say(contents.watermark != self._mark, f"the watermark is {contents.watermark} instead of {self._mark}")
        self._found.counts["posts"] += len(self._known)
        self._found.counts["versions"] += sum(map(len, self._known.values()))

    def _show(self, page: ListedPage) -> None:
        for post in page.posts:
            said = words(post, post.version_at(page.at))
            texts = self._known.setdefault(post.id, [])
            if not texts or texts[-1] != said:
                texts.append(said)

    def _move_on(self, visited: Visited, look: Look) -> None:
        before, newest = self._mark, _newest(look)
        by_time = look[0].sort == "new"
        hidden = self._hidden(look, before)
        missing = [post for post in hidden if post.id not in self._known and not self._is_in_a_gap(post)]
        if by_time:
            self._expect(visited.gap == bool(hidden), visited, f"told of a gap, or not, and {len(hidden)} were hidden")
        if visited.gap and before:
            self._gaps.append((before - LATE, min(post.created_at for page in look for post in page.posts)))
            self._found.counts["gaps"] += 1
            self._found.counts["posts in gaps"] += len(missing)
            missing = [post for post in missing if not self._is_in_a_gap(post)]
        if by_time:
            self._expect(not missing, visited, f"overlooked {len(missing)} posts")
        may_move = visited.outcome != "unchanged" and (by_time or _is_all_since(look, before))
        moves = may_move and newest is not None and (before is None or newest > before)
        self._expect(visited.watermark_updated == moves, visited, "moved the watermark, or did not, against the rule")
        if moves:
            self._mark = newest
            passed = [post for post in missing if before and newest and before < post.created_at <= newest]
            self._expect(by_time or not passed, visited, f"moved the watermark past {len(passed)} posts")

    def _hidden(self, look: Look, mark: datetime | None) -> list[SimRedditPost]:
        """Returns recent posts that were listed during the whole visit and not shown."""
        if mark is None:
            return []
        begin, end = look[0].at, look[-1].at
        shown = {post.id for page in look for post in page.posts}
        recent = (post for post in self._everything if mark - LATE <= post.created_at <= begin)
        return [post for post in recent if post.id not in shown and post.is_listed(begin) and post.is_listed(end)]

    def _is_in_a_gap(self, post: SimRedditPost) -> bool:
        """Tests whether a visit reported a gap at this time."""
        return any(begin <= post.created_at <= end for begin, end in self._gaps)

    def _expect(self, is_right: bool, visited: Visited, otherwise: str) -> None:
        self._say(not is_right, f"the visit of {visited.started_at:%d %H:%M:%S} ({visited.outcome}) {otherwise}")

    def _say(self, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self._found.wrong.append(f"r/{self._name}: {what}")


def _stored_of(look: Look, posts: int) -> Look | None:
    """Returns the first pages that have exactly so many posts together, or None."""
    ids: set[str] = set()
    for count, page in enumerate([None, *look]):
        ids.update(post.id for post in page.posts) if page else None
        if len(ids) == posts:
            return look[:count]
    return None


def _newest(look: Look) -> datetime | None:
    return max((post.created_at for page in look for post in page.posts), default=None)


def _is_all_since(look: Look, mark: datetime | None) -> bool:
    """Tests whether a listing that is not by time showed everything back to the watermark."""
    [page] = look
    return page.sort == "top" and page.following is None and (mark is None or page.at - SPANS[page.span] <= mark)
