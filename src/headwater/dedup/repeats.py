"""Whether two texts are the same text: the decision itself, readable and slow. `index.py` finds whom to ask it about.

Two texts are the same if nothing that carries meaning differs. What newsrooms and readers put around a text (labels,
tags, links, publishers) was set aside by `normal`. Of the words that are left, function words may come and go, a word
may have one slip of the finger, and the end may be cut off. A replaced or inserted word of meaning makes another text,
however long the rest is. Articles are too long for that: they are the same if they share most of their word runs.

The fast index decides the same in compiled code (`compare.py`); tests hold the two together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from headwater.dedup.normal import CURRENCY, FUNCTION_SIGNS, FUNCTION_WORDS, TURNING_WORDS, Normal

# "Thank you!" says nothing twice. There have to be four different words of meaning; a sign counts a bit less than one.
WORD_CONTENT = 5
SIGN_CONTENT = 4
LEAST_CONTENT = 4 * WORD_CONTENT
# From so many words on a text is an article; two signs are a word here.
LONG = 64
# Up to so many words, an article's numbers are compared as well.
NUMBERED = 256
# So many words that end where the other goes on are that text, cut off without dots, if at least so many are missing.
CUT_WITHOUT_DOTS = 20
LEAST_CUT = 3
# Addressed to nobody, or to somebody: the same only if there is this much content.
ADDRESSED_CONTENT = 8 * WORD_CONTENT
# Longer ones are not words.
LONGEST_WORD = 40
# Articles: how many words make a run, how many runs are kept, which share has to be in both.
RUN = 4
MOST_RUNS = 96
LEAST_OVERLAP = 0.5

LIGHT = FUNCTION_WORDS | FUNCTION_SIGNS
_SPACE = re.compile(r"(?<![0-9]) | (?![0-9])")
_DIGIT = re.compile("[0-9]")
_64_BITS = (1 << 64) - 1


class Difference(NamedTuple):
    """What two texts that are the same do not share.

    Counted in words: slips of the finger, light words of one only, words at the end of one only. `cut` says that dots
    stand where the shorter ends, `overlap` which share of two articles is the same (0: they were not compared so).
    """

    slips: int = 0
    light: int = 0
    rest: int = 0
    cut: bool = False
    overlap: float = 0.0


class Verdict(NamedTuple):
    """That two texts are the same: by which rule (exact, similar), how much so (0 to 1), and why, in words."""

    rule: str
    score: float
    why: str


def compare(a: Normal, b: Normal) -> Verdict | None:
    """Why two texts are the same, or None if they are not. Symmetric."""
    found = difference(a, b)
    if found is None:
        return None
    around = frozenset(a.labels) ^ frozenset(b.labels)
    return verdict(found, min(len(a.words), len(b.words)), around, a.mentions != b.mentions)


def verdict(found: Difference, words: int, labels: frozenset[str], other_audience: bool) -> Verdict:
    """A difference as a verdict: `words` has the shorter text, `labels` stand around only one of them."""
    rule = "exact" if found == _NONE else "similar"
    return Verdict(rule, score(found, words), _why(found, labels, other_audience))


def score(found: Difference, words: int) -> float:
    """How much of the shorter text is in the longer one, 0 to 1."""
    if found.overlap:
        return round(found.overlap, 3)
    return round(max(0.0, 1 - (0.5 * found.slips + 0.5 * found.light) / max(words, 1)), 3)


def difference(a: Normal, b: Normal) -> Difference | None:
    """What differs between two texts that are the same; None if they are not."""
    first, second = a.words, b.words
    if (len(second), b.core) < (len(first), a.core):
        a, b, first, second = b, a, second, first
    if not (is_foldable(a) and is_foldable(b)) or not _same_audience(a, b):
        return None
    if compact(a.core) == compact(b.core):
        return _NONE
    if min(size(first), size(second)) >= LONG:
        share = overlap(sample(first), sample(second))
        return Difference(overlap=share) if share >= LEAST_OVERLAP and _same_numbers(first, second) else None
    return _small_difference(a, b, first, second)


_NONE = Difference()


def is_foldable(text: Normal) -> bool:
    """Whether there is enough in a text, tags apart, that its coming twice means something."""
    words = text.words
    return content(words[: len(words) - text.tail]) >= LEAST_CONTENT


def content(words: list[str]) -> int:
    """How many different words of meaning there are, in fifths of a word."""
    return sum(SIGN_CONTENT if is_sign(word) else WORD_CONTENT for word in set(words) if word not in LIGHT)


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
    return min(content(a.words), content(b.words)) >= ADDRESSED_CONTENT


def _small_difference(a: Normal, b: Normal, first: list[str], second: list[str]) -> Difference | None:
    walk = aligned(first, second, a.torn, b.torn)
    if walk is None:
        return None
    shorter = min(len(first), len(second))
    if walk.slips > 1 + shorter // 12 or walk.light > 1 + shorter // 8:
        return None
    if content(first[: walk.reached]) < LEAST_CONTENT:
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
    return len(words) >= CUT_WITHOUT_DOTS and rest >= LEAST_CUT


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
        elif left in LIGHT and right in first[i + 1 : i + 3]:
            i, light = i + 1, light + 1
        elif right in LIGHT and left in second[j + 1 : j + 3]:
            j, light = j + 1, light + 1
        elif is_slip(left, right):
            i, j, slips = i + 1, j + 1, slips + 1
        elif i + 1 < len(first) and left + first[i + 1] == right and not _has_digit(right):
            i, j = i + 2, j + 1
        elif j + 1 < len(second) and right + second[j + 1] == left and not _has_digit(left):
            i, j = i + 1, j + 2
        else:
            return None
    if all(word in LIGHT for word in first[i:] + second[j:]):
        return Walk(slips, light + len(first) - i + len(second) - j, i, 0, 0)
    return Walk(slips, light, i, len(first) - i, len(second) - j)


def _same_word(a: str, b: str, a_torn: bool, b_torn: bool) -> bool:
    """Whether two words are one: a price may lack its currency, and a torn word its end."""
    if a == b or (a_torn and b.startswith(a)) or (b_torn and a.startswith(b)):
        return True
    return (a[0] in CURRENCY and a[1:] == b) or (b[0] in CURRENCY and b[1:] == a)


def is_slip(a: str, b: str) -> bool:
    """Whether one word is the other with a letter missing, wrong or swapped. No number, no short word, no ending."""
    if (
        min(len(a), len(b)) < 4
        or max(len(a), len(b)) > LONGEST_WORD
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
    if len(longer) >= NUMBERED:
        return True
    numbers = {word for word in shorter if _has_digit(word)}
    return len(numbers - set(longer)) * 4 <= len(numbers)


def sample(words: Sequence[str]) -> list[int]:
    """The runs of words of an article that have the smallest fingerprints: of a part of it, mostly the same ones."""
    hashes = [fingerprint(word) for word in words]
    return sorted({mixed(hashes[at : at + RUN]) for at in range(len(hashes) - RUN + 1)})[:MOST_RUNS]


def overlap(a: list[int], b: list[int]) -> float:
    """Which share of the smaller article's runs is in the other, as far as both samples reach."""
    reach = min(sampled[-1] if len(sampled) == MOST_RUNS else _64_BITS for sampled in (a, b))
    left = {run for run in a if run <= reach}
    right = {run for run in b if run <= reach}
    return len(left & right) / max(min(len(left), len(right)), 1)


def fingerprint(word: str) -> int:
    """64 bits that stand for a word: FNV-1a, the same in every process."""
    value = 0xCBF29CE484222325
    for byte in word.encode():
        value = ((value ^ byte) * 0x100000001B3) & _64_BITS
    return value


def mixed(hashes: Sequence[int]) -> int:
    """64 bits that stand for several fingerprints in their order."""
    value = 0
    for item in hashes:
        value = ((value ^ item) * 0x9E3779B97F4A7C15) & _64_BITS
        value ^= value >> 29
    return value


@lru_cache(maxsize=4096)
def _why(found: Difference, labels: frozenset[str], other_audience: bool) -> str:
    if found.overlap:
        return f"{found.overlap:.0%} of the shorter text is in the other"
    parts = []
    if found.slips:
        parts.append("a slip in one word" if found.slips == 1 else f"slips in {found.slips} words")
    if found.light:
        parts.append("a small word" if found.light == 1 else f"{found.light} small words")
    if found.rest:
        parts.append("its end, which is cut off" if found.cut else "what follows it")
    if "rt" in labels:
        parts.append("being passed on")
    if named := sorted(labels - {"rt"}):
        parts.append("the label " + ", ".join(named))
    if other_audience:
        parts.append("whom it speaks to")
    return "same text but for " + " and ".join(parts) if parts else "same text"
