"""By what a post is recognised as telling of an event: the words of its title and of the beginning of its text.

Words are cut to a stem so that "stocks" and "stock" meet; signs of Chinese and Japanese go in pairs. A term is known
by a fingerprint; each has a place, a small number, as long as it is in use.
"""

# ruff: noqa: SIM110 -- numba compiles loops, and no generators

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled
from headwater.dedup.spelling import COMMA, DIGIT, SIGN, classes, end_of_word, kind_of, parts_thousands
from headwater.dedup.stories_places import BITS, EMPTY, slot_of, slots_for
from headwater.dedup.stories_texts import Texts, codes_of

MOST_TERMS = 64
TITLE_WEIGHT = 1.0
LEAD_WEIGHT = 0.6
# How much of a coincidence a shared term excludes: a pair of signs is often half a name.
WORD_EVIDENCE = 1.0
PAIR_EVIDENCE = 0.5
# A long run of letters in a script without spaces is a whole phrase.
PHRASE_EVIDENCE = 2.0
PHRASE_LETTERS = 8

# Thai and Lao, Burmese, Khmer.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_NOWHERE = -1
_FNV_START = 0x0BF29CE484222325
_FNV_PRIME = 0x100000001B3
_S, _I, _E, _U, _Y = (ord(letter) for letter in "sieuy")
_SHORTEST_WITH_ENDING = 4

# Half a line of the processor's cache. `newest` is a term's newest note, `notes` how many can be read from there on.
TERM = np.dtype(
    [("key", np.int64), ("newest", np.int64), ("seen", np.float32), ("evidence", np.float32), ("notes", np.int32)],
    align=True,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that any two headlines may share. Rarer ones weigh little by themselves once enough posts have been seen.
COMMON = _words(
    "a about after again against all also am amid among an and any are around as at away back be became because been"
    " before behind being between both but by came can come could day days did do does doesnt doing done dont down"
    " during each even ever every few first for from get gets getting give go goes going gone got had has have having"
    " he her here him himself his how i if im in into is isnt it its itself just keep last less let like look made"
    " make makes making many may me might more most much must my near never new next no not now of off on once one"
    " only onto or other our out over own per put said same saw say saying says see she should since so some still"
    " such take takes than that the their them then there these they thing things this those though three through to"
    " today told tomorrow tonight too took two under until up upon us use used very via vs want wants was wasnt way we"
    " week well went were what when where which while who whom whose why will with within without wont would year"
    " years yes yet yesterday you your monday tuesday wednesday thursday friday saturday sunday amp rt"
)


class Vocabulary(NamedTuple):
    """The terms that have a place, the table in which to find them, and in `size` how many they are.

    `evidence` says how much of a coincidence a term excludes; the rest of a term is for others to fill.
    """

    terms: NDArray[np.void]
    slots: NDArray[np.int32]
    size: NDArray[np.int64]


class Tables(NamedTuple):
    """Kinds of characters, and common words as fingerprints with their slots."""

    classes: NDArray[np.uint8]
    common: NDArray[np.int64]
    common_slots: NDArray[np.int32]


class Terms(NamedTuple):
    """The terms of posts: those of post `i` are at `starts[i]:starts[i + 1]`.

    `weights` say where each stood; the word that it was read from is at `begins:ends` of the texts.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int32]
    weights: NDArray[np.float32]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]


class Reading(NamedTuple):
    """All that reading needs: the characters, what is known of words, and where the terms go."""

    codes: NDArray[np.int32]
    tables: Tables
    vocabulary: Vocabulary
    terms: Terms


def room_for_terms(texts: Texts) -> Terms:
    posts = len(texts.bounds)
    most = min(posts * MOST_TERMS, len(texts.codes))
    places, begins, ends = (np.zeros(most, np.int32) for _ in range(3))
    return Terms(np.zeros(posts + 1, np.int64), places, np.zeros(most, np.float32), begins, ends)


@cache
def tables() -> Tables:
    words = [codes_of(word) for word in sorted(COMMON)]
    kinds = classes()
    keys = np.array([fingerprint(word, 0, len(word), kinds) for word in words], np.int64)
    return Tables(kinds, keys, slots_for(keys, len(keys), 2 * len(keys)))


@compiled
def read_posts(reading: Reading, bounds: Any) -> None:
    """Finds the terms of posts and gives a place to those that are new. A post without a title has its text for one."""
    starts = reading.terms.starts
    for post in range(len(bounds)):
        title, lead, end = bounds[post]
        at = read_part(reading, title, lead, starts[post], starts[post], TITLE_WEIGHT)
        weight = TITLE_WEIGHT if at == starts[post] else LEAD_WEIGHT
        starts[post + 1] = read_part(reading, lead, end, starts[post], at, weight)


@compiled
def read_part(reading: Reading, start: int, end: int, first: int, at: int, weight: float) -> int:
    """Reads one part of a post whose terms begin at `first`; the next one goes to `at`. Returns where it goes then."""
    codes, classes, terms = reading.codes, reading.tables.classes, reading.terms
    here, sign = start, _NOWHERE
    while here < end and at - first < MOST_TERMS:
        until = end_of_word(codes, start, here, end, classes)
        if until == here:
            here += 1
            continue
        place, begin = _NOWHERE, here
        if kind_of(codes[here], classes) != SIGN:
            place = place_of_word(reading, here, until)
            sign = _NOWHERE
        else:
            if sign != _NOWHERE:
                pair = extended(extended(_FNV_START, codes[sign]), codes[here])
                place, begin = place_of(reading.vocabulary, pair, PAIR_EVIDENCE), sign
            sign = here
        if place != _NOWHERE and not is_among(terms.places, first, at, place):
            terms.places[at], terms.weights[at] = place, weight
            terms.begins[at], terms.ends[at] = begin, until
            at += 1
        here = until
    return at


@compiled
def place_of_word(reading: Reading, start: int, end: int) -> int:
    """The place of a word's stem; common words and single letters have none."""
    codes, tables = reading.codes, reading.tables
    if end - start == 1 and kind_of(codes[start], tables.classes) != DIGIT:
        return _NOWHERE
    key = fingerprint(codes, start, end, tables.classes)
    if is_common(tables, key):
        return _NOWHERE
    ending = length_of_ending(codes, start, end)
    if ending:
        key = fingerprint(codes, start, end - ending, tables.classes)
        if ending > 1:
            key = extended(key, _Y)
        if is_common(tables, key):
            return _NOWHERE
    evidence = PHRASE_EVIDENCE if end - start >= PHRASE_LETTERS and is_unspaced(codes[start]) else WORD_EVIDENCE
    return place_of(reading.vocabulary, key, evidence)


@compiled
def is_common(tables: Tables, key: int) -> bool:
    return bool(tables.common_slots[slot_of(tables.common_slots, tables.common, key)] != EMPTY)


@compiled
def place_of(vocabulary: Vocabulary, key: int, evidence: float) -> int:
    terms, slots = vocabulary.terms, vocabulary.slots
    slot = slot_of(slots, terms["key"], key)
    if slots[slot] == EMPTY:
        place = vocabulary.size[0]
        vocabulary.size[0] += 1
        slots[slot] = place
        terms["key"][place] = key
        terms["newest"][place] = _NOWHERE
        terms["seen"][place] = 0.0
        terms["notes"][place] = 0
        terms["evidence"][place] = evidence
    return int(slots[slot])


@compiled
def fingerprint(codes: Any, start: int, end: int, table: Any) -> int:
    """A number for a word, the same for numbers with and without signs between thousands."""
    key = _FNV_START
    for at in range(start, end):
        if codes[at] != COMMA or not parts_thousands(codes, at, end, table):
            key = extended(key, codes[at])
    return key


@compiled
def extended(key: int, code: int) -> int:
    """The fingerprint with one more character."""
    return ((key ^ int(code)) * _FNV_PRIME) & BITS


@compiled
def length_of_ending(codes: Any, start: int, end: int) -> int:
    """How long the ending of a plural or of a verb's third person is, if the word is an English one and not short.

    3 is "ies", for which a "y" is to be put.
    """
    if end - start < _SHORTEST_WITH_ENDING or codes[end - 1] != _S or codes[end - 2] in (_S, _U, _I):
        return 0
    for at in range(start, end):
        if codes[at] >= 128:
            return 0
    is_ies = codes[end - 2] == _E and codes[end - 3] == _I and end - start > _SHORTEST_WITH_ENDING
    return 3 if is_ies else 1


@compiled
def is_unspaced(code: int) -> bool:
    """Whether a letter is of a script without spaces, and no sign."""
    for first, last in _UNSPACED:
        if first <= code <= last:
            return True
    return False


@compiled
def is_among(places: Any, start: int, end: int, place: int) -> bool:
    for at in range(start, end):
        if places[at] == place:
            return True
    return False
