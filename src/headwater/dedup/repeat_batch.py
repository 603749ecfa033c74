"""Posts to decide about and their words; and, where these are few, whether they tell anything.

The C types are in `repeat_batch.pxd`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

from headwater.dedup.compare import Text, table_of
from headwater.dedup.normal import Trimmed
from headwater.dedup.repeats import UNTELLING, Posting, mentions_of
from headwater.dedup.spelling import Spelling

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from headwater.dedup.compare import (
        ALL_BITS,
        CUT,
        FNV_PRIME,
        FNV_START,
        HAS_DIGIT,
        IS_LIGHT,
        IS_SIGN,
        TORN,
        is_among,
    )

UNTELLING_SLOTS = 4096
UNTELLING_WORDS = table_of(UNTELLING, UNTELLING_SLOTS)


class Batch:
    """Posts to decide about, their words, and what was decided: a leader's number and what differs, in five counts.

    `longest` is how many words the longest has, `letters` how many bytes all words take.
    """

    def __init__(self, posts: Sequence[Posting], texts: Sequence[Trimmed]) -> None:
        spelling = Spelling([part for text in texts for part in text[:3]])
        self.text, self.starts, self.ends, self.first = spelling.text, spelling.starts, spelling.ends, spelling.first
        self.size = len(posts)
        self.ids = array("q", [post.id for post in posts])
        self.sources = array("q", [post.source for post in posts])
        self.created_at = array("d", [post.created_at for post in posts])
        self.mentions = array("Q", [mentions_of(text) for text in texts])
        self.links = array("Q", [hash(post.link) & ALL_BITS if post.link else 0 for post in posts])
        self.flags = bytearray([CUT * text.cut | TORN * text.torn for text in texts])
        self.apart = array("q", [0, *(leader for post in posts for leader in post.apart)])
        self.apart_end = array("i", accumulate((len(post.apart) for post in posts), initial=1))
        self.leaders = array("q", bytes(8 * len(posts)))
        self.counts = array("i", bytes(4 * 5 * len(posts)))
        self.overlaps = array("d", bytes(8 * len(posts)))
        self.contradicted = array("q", bytes(8 * len(posts)))
        words = spelling.first[3 * len(posts)]
        self.longest = max((end - first for first, end in pairwise(spelling.first[::3])), default=0)
        self.letters = spelling.ends[words - 1] if words else 0


def telling_words(text: Text, until: int) -> int:
    """How many of the first words, which are few, tell something: different ones, not listed, no numbers."""
    kept = 0
    for at in range(until):
        if text.kinds[at] & (IS_LIGHT | IS_SIGN | HAS_DIGIT) or is_untelling(text.hashes[at]):
            continue
        if not is_among(text.distinct, kept, text.hashes[at]):
            text.distinct[kept] = text.hashes[at]
            kept += 1
    return kept


def is_untelling(value: int) -> bool:
    slot = value & (UNTELLING_SLOTS - 1)
    while UNTELLING_WORDS[slot] != 0:
        if UNTELLING_WORDS[slot] == value:
            return True
        slot = (slot + 1) & (UNTELLING_SLOTS - 1)
    return False


def hash_without_light(text: Text) -> int:
    """The fingerprint of the text without light words and spaces, but for those between digits."""
    value, ends_in_digit = FNV_START, False
    for word in range(text.size):
        if text.kinds[word] & IS_LIGHT:
            continue
        if ends_in_digit and 48 <= text.data[text.starts[word]] <= 57:
            value = ((value ^ 32) * FNV_PRIME) & ALL_BITS
        for at in range(text.starts[word], text.ends[word]):
            value = ((value ^ text.data[at]) * FNV_PRIME) & ALL_BITS
        ends_in_digit = 48 <= text.data[text.ends[word] - 1] <= 57
    return value
