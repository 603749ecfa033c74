"""Repeats as they are meant, in plain Python, readable and slow: whether two texts are one, and the index over them.

`headwater.dedup` decides the same in compiled loops (`compare.py`, `repeat_index.py`). Tests hold the two together.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from headwater.dedup import repeats
from headwater.dedup.normal import CURRENCY, NEGATIONS, OPPOSITES, TURNING_WORDS, Normal, normal_post
from headwater.dedup.repeats import (
    Difference,
    Posting,
    RepeatDecision,
    Verdict,
    fingerprint,
    repost,
    same_link,
    score,
    verdict,
)

_SPACE = re.compile(r"(?<![0-9]) | (?![0-9])")
_DIGIT = re.compile("[0-9]")
_64_BITS = (1 << 64) - 1
_NONE = Difference()


def compare(a: Normal, b: Normal) -> Verdict | None:
    """Why two texts are the same, or None if they are not. Symmetric."""
    found = difference(a, b)
    if found is None:
        return None
    around = frozenset(a.labels) ^ frozenset(b.labels)
    return verdict(found, min(len(a.words), len(b.words)), around, a.mentions != b.mentions)


def difference(a: Normal, b: Normal) -> Difference | None:
    """What differs between two texts that are the same; None if they are not."""
    first, second = a.words, b.words
    if (len(second), b.core) < (len(first), a.core):
        a, b, first, second = b, a, second, first
    if not (is_foldable(a) and is_foldable(b)) or not _same_audience(a, b):
        return None
    if compact(a.core) == compact(b.core):
        return _NONE
    if min(size(first), size(second)) >= repeats.LONG:
        share = overlap(sample(first), sample(second))
        return Difference(overlap=share) if share >= repeats.LEAST_OVERLAP and _same_numbers(first, second) else None
    return _small_difference(a, b, first, second)


def contradicts(a: Normal, b: Normal) -> bool:
    """Whether two texts that are not the same nearly are, and cannot both be true of one event."""
    first, second = a.words, b.words
    if min(size(first), size(second)) >= repeats.LONG:
        return _same_audience(a, b) and overlap(sample(first), sample(second)) >= repeats.LEAST_OVERLAP
    if len(first) > repeats.NUMBERED or len(second) > repeats.NUMBERED:
        return False
    if len(first) == len(second):
        changed = [(one, other) for one, other in zip(first, second, strict=True) if one != other]
        few = len(changed) * 3 <= len(first) and len(first) - len(changed) >= repeats.LEAD
        if few and any(_opposed([one], [other]) for one, other in changed):
            return True
    head = _in_common(first, second)
    tail = min(_in_common(first[::-1], second[::-1]), min(len(first), len(second)) - head)
    changes = max(len(first), len(second)) - head - tail
    if changes > repeats.MOST_CHANGED or head + tail < max(2 * changes, repeats.LEAD):
        return False
    return _opposed(first[head : len(first) - tail], second[head : len(second) - tail])


def _in_common(first: list[str], second: list[str]) -> int:
    """How many words two lists begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))))


def _opposed(some: list[str], others: list[str]) -> bool:
    """Whether words contradict others: by a negation, by their numbers, or by opposite answers."""
    if bool(NEGATIONS & set(some)) != bool(NEGATIONS & set(others)):
        return True
    for one in some:
        for other in others:
            if _has_digit(one) and _has_digit(other) and not _same_word(one, other, False, False):
                return True
            for sides in OPPOSITES:
                said, denied = ([word in side for side in sides] for word in (one, other))
                if any(said) and any(denied) and said != denied:
                    return True
    return False


def is_foldable(text: Normal) -> bool:
    """Whether there is enough in a text, tags apart, that its coming twice means something."""
    words = text.words[: len(text.words) - text.tail]
    if text.cut and len(telling(words)) >= repeats.TELLING_WORDS:
        return content(words) >= repeats.CUT_CONTENT
    return content(words) >= repeats.LEAST_CONTENT


def is_telling(text: Normal) -> bool:
    """Whether few words, exactly the same of somebody else, are a repeat."""
    found = len(telling(text.words[: len(text.words) - text.tail]))
    return found >= repeats.TELLING_WORDS or (found > 0 and content(text.words) >= repeats.TELLING_CONTENT)


def telling(words: list[str]) -> set[str]:
    return {
        word for word in words if not (is_sign(word) or _has_digit(word) or word in repeats.UNTELLING | repeats.LIGHT)
    }


def content(words: list[str]) -> int:
    """How many different words of meaning there are, in fifths of a word."""
    return sum(
        repeats.SIGN_CONTENT if is_sign(word) else repeats.WORD_CONTENT
        for word in set(words)
        if word not in repeats.LIGHT
    )


def compact(core: str) -> str:
    """The text without the spaces between words: where they stand is a matter of taste. Numbers stay apart."""
    return _SPACE.sub("", core)


def size(words: list[str]) -> float:
    """How long a text is, in words."""
    return len(words) - 0.5 * sum(map(is_sign, words))


def is_sign(word: str) -> bool:
    return len(word) == 1 and word > "\u2fff"


def _same_audience(a: Normal, b: Normal) -> bool:
    """Whether both speak to the same people, or one of them to nobody and there is enough to tell a text by."""
    if a.mentions == b.mentions:
        return True
    if a.mentions and b.mentions:
        return False
    return min(content(a.words), content(b.words)) >= repeats.ADDRESSED_CONTENT


def _small_difference(a: Normal, b: Normal, first: list[str], second: list[str]) -> Difference | None:
    walk = aligned(first, second, a.torn, b.torn)
    if walk is None:
        return None
    shorter = min(len(first), len(second))
    if walk.slips > 1 + shorter // 12 or walk.light > 1 + shorter // 8:
        return None
    if content(first[: walk.reached]) < (repeats.CUT_CONTENT if a.cut else repeats.LEAST_CONTENT):
        return None
    if walk.left and not _may_miss(walk.left, second, b, a):
        return None
    if walk.right and not _may_miss(walk.right, first, a, b):
        return None
    rest = walk.left + walk.right
    return Difference(walk.slips, walk.light, rest, (b.cut if walk.left else a.cut) and rest > 0)


def _may_miss(rest: int, words: list[str], shorter: Normal, longer: Normal) -> bool:
    """Whether a text may end where the other goes on: with tags, after a cut, or because it is the title alone."""
    if shorter.cut or rest <= longer.tail or len(words) == longer.head:
        return True
    return len(words) >= repeats.CUT_WITHOUT_DOTS and rest >= repeats.LEAST_CUT


class Walk(NamedTuple):
    """How far two lists of words go together: slips, light words of one only, how many words of the first were reached,
    how many are left over in the first and in the second (never in both)."""

    slips: int
    light: int
    reached: int
    left: int
    right: int


def aligned(first: list[str], second: list[str], first_torn: bool, second_torn: bool) -> Walk | None:
    """Walks through both lists at once. None where a word of meaning has no partner."""
    i = j = slips = light = 0
    while i < len(first) and j < len(second):
        left, right = first[i], second[j]
        if _same_word(left, right, first_torn and i == len(first) - 1, second_torn and j == len(second) - 1):
            i, j = i + 1, j + 1
        elif left in repeats.LIGHT and right in first[i + 1 : i + 3]:
            i, light = i + 1, light + 1
        elif right in repeats.LIGHT and left in second[j + 1 : j + 3]:
            j, light = j + 1, light + 1
        elif is_slip(left, right):
            i, j, slips = i + 1, j + 1, slips + 1
        elif i + 1 < len(first) and left + first[i + 1] == right and not _has_digit(right):
            i, j = i + 2, j + 1
        elif j + 1 < len(second) and right + second[j + 1] == left and not _has_digit(left):
            i, j = i + 1, j + 2
        else:
            return None
    if all(word in repeats.LIGHT for word in first[i:] + second[j:]):
        return Walk(slips, light + len(first) - i + len(second) - j, i, 0, 0)
    return Walk(slips, light, i, len(first) - i, len(second) - j)


def _same_word(a: str, b: str, a_torn: bool, b_torn: bool) -> bool:
    """Whether two words are one: a number may lack its currency or its percent sign, a torn word its end."""
    if a == b or (a_torn and b.startswith(a)) or (b_torn and a.startswith(b)):
        return True
    return a.removesuffix("%").lstrip(CURRENCY) == b or b.removesuffix("%").lstrip(CURRENCY) == a


def is_slip(a: str, b: str) -> bool:
    """Whether one word is the other with a letter missing, wrong or swapped. No number, no short word, no ending."""
    if (
        min(len(a), len(b)) < 4
        or max(len(a), len(b)) > repeats.LONGEST_WORD
        or abs(len(a) - len(b)) > 1
        or (a in TURNING_WORDS and b in TURNING_WORDS)
    ):
        return False
    if _has_digit(a) or _has_digit(b):
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    left, right = a[start:], b[start:]
    if len(left) == len(right):
        swapped = left[:2] == right[1::-1] and left[2:] == right[2:]
        return swapped or (left[1:] == right[1:] and len(a) > 4)
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    return longer[1:] == shorter and longer not in ("s", "d")


def _has_digit(word: str) -> bool:
    return _DIGIT.search(word) is not None


def _same_numbers(shorter: list[str], longer: list[str]) -> bool:
    """Whether an article's numbers are the other's too. Long ones gather numbers (dates, counts) that mean nothing."""
    if len(longer) >= repeats.NUMBERED:
        return True
    numbers = {word for word in shorter if _has_digit(word)}
    return len(numbers - set(longer)) * 4 <= len(numbers)


def sample(words: Sequence[str]) -> list[int]:
    """The runs of words of an article that have the smallest fingerprints: of a part of it, mostly the same ones."""
    hashes = [fingerprint(word) for word in words]
    return sorted({mixed(hashes[at : at + repeats.RUN]) for at in range(len(hashes) - repeats.RUN + 1)})[
        : repeats.MOST_RUNS
    ]


def overlap(a: list[int], b: list[int]) -> float:
    """Which share of the smaller article's runs is in the other, as far as both samples reach."""
    reach = min(sampled[-1] if len(sampled) == repeats.MOST_RUNS else _64_BITS for sampled in (a, b))
    left = {run for run in a if run <= reach}
    right = {run for run in b if run <= reach}
    return len(left & right) / max(min(len(left), len(right)), 1)


def mixed(hashes: Sequence[int]) -> int:
    """64 bits that stand for several fingerprints in their order."""
    value = 0
    for item in hashes:
        value = ((value ^ item) * 0x9E3779B97F4A7C15) & _64_BITS
        value ^= value >> 29
    return value


class _Leader(NamedTuple):
    post: int
    number: int
    created_at: float
    text: Normal
    source: int
    link: str
    few_words: str


class PlainIndex:
    """The index in plain Python: some thousand posts a second."""

    def __init__(
        self, *, window_seconds: float = repeats.WINDOW_HOURS * repeats.HOUR, threshold: float = repeats.LEAST_OVERLAP
    ) -> None:
        self._window = window_seconds
        self._threshold = threshold
        self._leaders: dict[int, _Leader] = {}
        self._by_key: dict[int, deque[int]] = {}
        self._seen = array("I", bytes(4 * repeats.COUNTERS))
        self._number = 0
        self.contradicted: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._leaders)

    def add(self, post: Posting) -> RepeatDecision | None:
        if post.repost_of is not None:
            return repost(post)
        text = normal_post(post.title, post.text)
        few_words = "" if is_foldable(text) else compact(" ".join(w for w in text.words if w not in repeats.LIGHT))
        keys = self._keys(text, post.link, few_words)
        if not keys:
            return None
        decision = self._decide(post, text, keys, few_words)
        if decision is None:
            self._lead(post, text, keys, few_words)
        return decision

    def add_many(self, posts: Sequence[Posting]) -> list[RepeatDecision | None]:
        self.contradicted = {}
        return [self.add(post) for post in posts]

    def forget(self, post: int) -> None:
        """Compares with this post no more: it was edited, deleted, or undone. Unknown posts are nothing to forget."""
        for number in [number for number, leader in self._leaders.items() if leader.post == post]:
            del self._leaders[number]

    def expire(self, before: float) -> None:
        """Forgets the leaders that are older than `before`."""
        kept = {number: leader for number, leader in self._leaders.items() if leader.created_at >= before}
        if len(kept) < len(self._leaders):
            self._leaders = kept
            self._by_key = {
                key: alive
                for key, numbers in self._by_key.items()
                if (alive := deque((number for number in numbers if number in kept), repeats.LEADERS_PER_KEY))
            }

    def _keys(self, text: Normal, link: str, few_words: str) -> list[int]:
        """What a text is found by; the first key is the whole text's."""
        whole = fingerprint(compact(text.core))
        if not is_foldable(text):
            if is_telling(text):
                return [fingerprint(f"{few_words} {text.mentions}")]
            return [fingerprint(f"{few_words} {link}")] if link and text.core else []
        words = text.words
        heavy = [fingerprint(word) for word in words if word not in repeats.LIGHT]
        keys = [whole, mixed(heavy[: repeats.LEAD])]
        if size(words) >= repeats.LONG:
            return keys + sample(words)[: repeats.MOST_RUN_KEYS]
        pairs = [mixed(pair) for pair in pairwise(heavy)]
        for pair in pairs:
            self._seen[pair % repeats.COUNTERS] += 1
        return (
            keys
            + sorted(set(pairs), key=lambda pair: (self._seen[pair % repeats.COUNTERS], pair))[: repeats.MOST_PAIRS]
        )

    def _decide(self, post: Posting, text: Normal, keys: list[int], few_words: str) -> RepeatDecision | None:
        best: RepeatDecision | None = None
        highest = -1.0
        for number in self._candidates(keys):
            leader = self._leaders[number]
            if abs(leader.created_at - post.created_at) > self._window or leader.post in post.apart:
                continue
            if len(keys) == 1:
                is_own = post.source and post.source == leader.source
                if leader.few_words != few_words or (is_own and not (post.link and post.link == leader.link)):
                    continue
                if not is_telling(text):
                    return same_link(post, leader.post)
                labels = frozenset(text.labels) ^ frozenset(leader.text.labels)
                return RepeatDecision(post.id, leader.post, *verdict(_NONE, len(text.words), labels, False))
            found = difference(text, leader.text)
            if found is None:
                if post.id not in self.contradicted and contradicts(text, leader.text):
                    self.contradicted[post.id] = leader.post
                continue
            if 0 < found.overlap < repeats.OWN_OVERLAP and post.source and post.source == leader.source:
                continue
            words = min(len(text.words), len(leader.text.words))
            likeness = score(found, words)
            if likeness >= self._threshold and likeness > highest:
                highest = likeness
                labels = frozenset(text.labels) ^ frozenset(leader.text.labels)
                other_audience = text.mentions != leader.text.mentions
                best = RepeatDecision(post.id, leader.post, *verdict(found, words, labels, other_audience))
        if best is not None:
            self.contradicted.pop(post.id, None)
        return best

    def _candidates(self, keys: list[int]) -> list[int]:
        """The leaders that share most keys, the earlier first among equals."""
        shared = Counter(number for key in keys for number in self._by_key.get(key, ()) if number in self._leaders)
        return sorted(shared, key=lambda number: (-shared[number], number))[: repeats.MOST_COMPARED]

    def _lead(self, post: Posting, text: Normal, keys: list[int], few_words: str) -> None:
        self._leaders[self._number] = _Leader(
            post.id, self._number, post.created_at, text, post.source, post.link, few_words
        )
        for key in keys:
            self._by_key.setdefault(key, deque(maxlen=repeats.LEADERS_PER_KEY)).append(self._number)
        self._number += 1
