"""Whether two texts that are nearly the same contradict each other: then they tell of two events.

The C types are in `contradictions.pxd`.
"""

# ruff: noqa: SIM110 -- loops that become C, and no generators

from __future__ import annotations

from array import array

from headwater.dedup.normal import NEGATIONS, OPPOSITES
from headwater.dedup.repeats import LEAD, LEAST_OVERLAP, MOST_CHANGED, fingerprint

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from headwater.dedup.compare import ARTICLE, HAS_DIGIT, Comparison, Text, same_word

SLOTS = 1024
# Which question a word answers, and how: the question's number times this, plus the answer's. No answer is 0.
QUESTION = 64
NEGATION = 1


def _answering_words() -> tuple[array[int], array[int]]:
    """The fingerprints of the words that answer a question, as a hash table, and what they answer."""
    said = dict.fromkeys(NEGATIONS, NEGATION)
    for question, sides in enumerate(OPPOSITES, 1):
        said |= {word: QUESTION * question + side for side, words in enumerate(sides, 1) for word in words}
    hashes, answers = array("Q", bytes(8 * SLOTS)), array("i", bytes(4 * SLOTS))
    for word in sorted(said):
        slot = fingerprint(word) % SLOTS
        while hashes[slot]:
            slot = (slot + 1) % SLOTS
        hashes[slot], answers[slot] = fingerprint(word), said[word]
    return hashes, answers


HASHES, ANSWERS = _answering_words()


def contradicts(a: Text, b: Text, found: Comparison) -> bool:
    """Whether two texts, which `same_text` has told apart, are nearly the same and cannot both be true of one event.

    They differ in one place, or word by word in a few; and there in a number, a negation, or in how they answer a
    question (`normal.OPPOSITES`). Articles that share most of their runs were told apart by their numbers.
    """
    if a.flags & b.flags & ARTICLE:
        return found.overlap >= LEAST_OVERLAP
    if a.size != a.total or b.size != b.total:
        return False
    if a.size == b.size and one_by_one(a, b):
        return True
    head, shorter = 0, min(a.size, b.size)
    while head < shorter and a.hashes[head] == b.hashes[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a.hashes[a.size - 1 - tail] == b.hashes[b.size - 1 - tail]:
        tail += 1
    changed = max(a.size, b.size) - head - tail
    if changed > MOST_CHANGED or head + tail < 2 * changed or head + tail < LEAD:
        return False
    return opposed(a, head, a.size - tail, b, head, b.size - tail)


def one_by_one(a: Text, b: Text) -> bool:
    """Whether two texts of as many words differ in a few of them, one of which contradicts the other's."""
    changed, opposite = 0, False
    for at in range(a.size):
        if a.hashes[at] != b.hashes[at]:
            changed += 1
            opposite = opposite or opposed(a, at, at + 1, b, at, at + 1)
    return opposite and changed * 3 <= a.size and a.size - changed >= LEAD


def opposed(a: Text, i: int, i_end: int, b: Text, j: int, j_end: int) -> bool:
    """Whether some words of `a` contradict some of `b`: by a negation, by their numbers, or by opposite answers."""
    if has_negation(a, i, i_end) != has_negation(b, j, j_end):
        return True
    for left in range(i, i_end):
        for right in range(j, j_end):
            if a.kinds[left] & b.kinds[right] & HAS_DIGIT and not same_word(a, left, b, right):
                return True
            one, other = answer_of(a.hashes[left]), answer_of(b.hashes[right])
            if one != other and one > QUESTION and one // QUESTION == other // QUESTION:
                return True
    return False


def has_negation(text: Text, start: int, end: int) -> bool:
    for at in range(start, end):
        if answer_of(text.hashes[at]) == NEGATION:
            return True
    return False


def answer_of(value: int) -> int:
    slot = value & (SLOTS - 1)
    while HASHES[slot] != 0:
        if HASHES[slot] == value:
            return ANSWERS[slot]
        slot = (slot + 1) & (SLOTS - 1)
    return 0
