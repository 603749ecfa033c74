"""What makes two posts repeats of one text, and how a decision is put into words.

Two texts are the same if nothing that carries meaning differs. What newsrooms and readers put around a text (labels,
tags, links, publishers) was set aside by `normal`. Of the words that are left, function words may come and go, a word
may have one slip of the finger, and the end may be cut off. A replaced or inserted word of meaning makes another text,
however long the rest is. Articles are too long for that: they are the same if they share most of their word runs.

A post that repeats nothing becomes a leader: others may repeat it. Only leaders are kept and compared with, so groups
cannot grow into each other by chains. A leader is found by keys: its whole text, its first words, its rarest pairs of
neighbouring words (of an article: some of its word runs). Each key remembers its latest few leaders, and only the few
leaders that share most keys with a post are compared with it.

`compare.py` compares two texts by these rules, `contradictions.py` says which of those that are nearly the same
contradict each other, `repeat_index.py` finds the earlier post to compare with. A test has all of it once more in plain
Python, and holds them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from headwater.dedup.normal import CHATTER, COMMON, EVERYDAY, FUNCTION_SIGNS, FUNCTION_WORDS, Trimmed

# "Thank you!" says nothing twice. There have to be four different words of meaning; a sign counts a bit less than one.
WORD_CONTENT = 5
SIGN_CONTENT = 4
LEAST_CONTENT = 4 * WORD_CONTENT
# Fewer are enough if somebody else has written exactly the same, with so many words that are none of every day: two, or
# one beside this much. And so many if dots say that the rest is missing.
TELLING_WORDS = 2
TELLING_CONTENT = WORD_CONTENT + 2 * SIGN_CONTENT
CUT_CONTENT = 3 * WORD_CONTENT
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
# Texts that differ in one place, in at most so many words, are nearly the same.
MOST_CHANGED = 2
# Articles: how many words make a run, how many runs are kept, which share has to be in both.
RUN = 4
MOST_RUNS = 96
LEAST_OVERLAP = 0.5
# Articles of one source share what its site adds to each: more has to be in both.
OWN_OVERLAP = 0.9

LIGHT = FUNCTION_WORDS | FUNCTION_SIGNS
# Words that tell nothing by themselves.
UNTELLING = COMMON | EVERYDAY | {f"{word}s" for word in EVERYDAY} | CHATTER
_64_BITS = (1 << 64) - 1

HOUR = 3600
WINDOW_HOURS = 72
# How many keys a post is found by: its first words, its rarest pairs, or some of an article's runs. And how many
# leaders a key remembers, and a post is compared with.
LEAD = 4
MOST_PAIRS = 8
MOST_RUN_KEYS = 16
LEADERS_PER_KEY = 16
MOST_COMPARED = 16
# How often pairs were seen is counted in a table of this size, without telling apart those that share a cell.
COUNTERS = 1 << 22
# As many are decided about at once.
MOST_POSTS = 1024
MOST_CHARACTERS = 1_000_000


class Posting(NamedTuple):
    """A post as the index sees it. `id` is ours; `text` is plain; `created_at` is in Unix seconds (0: unknown).

    `repost_of` is the post that this one says it passes on; `link` the address of what it is about. `apart` are leaders
    that a person has said it does not repeat. `source` is who published it (0: somebody unknown). A reply is part of
    its thread: it may repeat a text, but it tells no story.
    """

    id: int
    title: str = ""
    text: str = ""
    created_at: float = 0.0
    link: str = ""
    repost_of: int | None = None
    apart: frozenset[int] = frozenset()
    source: int = 0
    is_reply: bool = False


class RepeatDecision(NamedTuple):
    """That `post` repeats `leader`: by which rule (exact, similar), how much so (0 to 1), and why, in words."""

    post: int
    leader: int
    rule: str
    score: float
    why: str


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


_NONE = Difference()


def verdict(found: Difference, words: int, labels: frozenset[str], other_audience: bool) -> Verdict:
    """A difference as a verdict: `words` has the shorter text, `labels` stand around only one of them."""
    rule = "exact" if found == _NONE else "similar"
    return Verdict(rule, score(found, words), _why(found, labels, other_audience))


def score(found: Difference, words: int) -> float:
    """How much of the shorter text is in the longer one, 0 to 1."""
    if found.overlap:
        return round(found.overlap, 3)
    return round(max(0.0, 1 - (0.5 * found.slips + 0.5 * found.light) / max(words, 1)), 3)


def repost(post: Posting) -> RepeatDecision:
    """A post that says itself whom it repeats."""
    assert post.repost_of is not None
    return RepeatDecision(post.id, post.repost_of, "exact", 1.0, "passes the other on")


def same_link(post: Posting, leader: int) -> RepeatDecision:
    """Two posts with the same few words, which would say nothing, about the same thing."""
    return RepeatDecision(post.id, leader, "exact", 1.0, "same words and same link")


def in_batches(posts: Sequence[Posting]) -> Iterator[Sequence[Posting]]:
    """The posts in batches that are small in every way: many articles take more room than many headlines."""
    first = characters = 0
    for at, post in enumerate(posts):
        characters += len(post.title) + len(post.text)
        if at + 1 - first == MOST_POSTS or characters > MOST_CHARACTERS:
            yield posts[first : at + 1]
            first, characters = at + 1, 0
    if first < len(posts):
        yield posts[first:]


def mentions_of(text: Trimmed) -> int:
    """Whom a text speaks to, as a number; 0: to nobody."""
    return (hash(text.mentions) & _64_BITS) or 1 if text.mentions else 0


def fingerprint(word: str) -> int:
    """64 bits that stand for a word: FNV-1a, the same in every process."""
    value = 0xCBF29CE484222325
    for byte in word.encode():
        value = ((value ^ byte) * 0x100000001B3) & _64_BITS
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
