"""`repeats.difference` in compiled code, over words that lie as UTF-8 in a row of bytes.

Each function is its namesake in `repeats.py`, where it is explained. Words are compared by fingerprint; bytes are read
only where two words differ.
"""

# ruff: noqa: SIM110 -- numba compiles loops, and no generators

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headwater.dedup.compiled import compiled
from headwater.dedup.repeats import (
    ADDRESSED_CONTENT,
    CUT_WITHOUT_DOTS,
    LEAST_CONTENT,
    LEAST_CUT,
    LEAST_OVERLAP,
    LIGHT,
    LONGEST_WORD,
    MOST_RUNS,
    NUMBERED,
    RUN,
    SIGN_CONTENT,
    WORD_CONTENT,
    fingerprint,
)
from headwater.dedup.words import TURNING_WORDS

# What kind of word it is.
IS_LIGHT, IS_TURNING, IS_SIGN, HAS_DIGIT = 1, 2, 4, 8
# What is known of a text.
CUT, TORN, ARTICLE, BY_LINK, GONE = 1, 2, 4, 8, 16

_SETS = 1024
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)


class Words(NamedTuple):
    """The words of one text: where they lie in `bytes`, fingerprints, kinds. The rest is room to work in."""

    bytes: Any
    starts: Any
    ends: Any
    hashes: Any
    kinds: Any
    letters: Any
    distinct: Any


class Shape(NamedTuple):
    """What else there is to know of a text. Of its `total` words `size` are at hand: of articles the first ones."""

    size: int
    total: int
    head: int
    tail: int
    flags: int
    mentions: Any
    whole: Any


class Found(NamedTuple):
    """A difference, or that there is none to speak of because the texts are not the same (`same` is False)."""

    same: bool
    slips: int
    light: int
    rest: int
    cut: bool
    overlap: float


def room_for_words(data: Any, count: int) -> Words:
    return Words(
        data,
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint8),
        np.zeros(LONGEST_WORD, np.int64),
        np.zeros(ADDRESSED_CONTENT, np.uint64),
    )


def known_words() -> tuple[Any, Any]:
    """The fingerprints of the light and the turning words, as a hash table, and which they are."""
    hashes, kinds = np.zeros(_SETS, np.uint64), np.zeros(_SETS, np.uint8)
    for word in sorted(LIGHT | TURNING_WORDS):
        value = fingerprint(word)
        at = value % _SETS
        while hashes[at]:
            at = (at + 1) % _SETS
        hashes[at] = value
        kinds[at] = (IS_LIGHT if word in LIGHT else 0) | (IS_TURNING if word in TURNING_WORDS else 0)
    return hashes, kinds


@compiled
def mix(value: Any, item: Any) -> Any:
    value = (value ^ item) * _GOLDEN
    return value ^ (value >> _SHIFT)


@compiled
def read_words(data: Any, start: int, end: int, into: Words, known: Any, known_kinds: Any) -> int:
    """Fills `into` with the words of data[start:end], as many as there is room for. Returns how many."""
    count, at = 0, start
    while at < end and count < len(into.starts):
        first, value, kind = at, _FNV_START, 0
        while at < end and data[at] != 32:
            byte = data[at]
            value = (value ^ np.uint64(byte)) * _FNV_PRIME
            if 48 <= byte <= 57:
                kind = HAS_DIGIT
            at += 1
        if data[first] >= 0xE3 and at - first == (4 if data[first] >= 0xF0 else 3):
            kind |= IS_SIGN
        cell = np.int64(value % np.uint64(_SETS))
        while known[cell] != _NONE:
            if known[cell] == value:
                kind |= known_kinds[cell]
                break
            cell = (cell + 1) % _SETS
        into.starts[count], into.ends[count] = first, at
        into.hashes[count], into.kinds[count] = value, kind
        count += 1
        at += 1
    return count


@compiled
def compact_hash(data: Any, start: int, end: int) -> Any:
    """The fingerprint of the text without its spaces, but for those between digits."""
    value = _FNV_START
    for at in range(start, end):
        byte = data[at]
        if byte == 32 and not (48 <= data[at - 1] <= 57 and 48 <= data[at + 1] <= 57):
            continue
        value = (value ^ np.uint64(byte)) * _FNV_PRIME
    return value


@compiled
def content(words: Words, until: int, enough: int) -> int:
    """How much content there is in the first words; it stops counting at `enough`."""
    kept, total = 0, 0
    for at in range(until):
        if words.kinds[at] & IS_LIGHT:
            continue
        new = True
        for each in range(kept):
            if words.distinct[each] == words.hashes[at]:
                new = False
                break
        if new:
            total += SIGN_CONTENT if words.kinds[at] & IS_SIGN else WORD_CONTENT
            if total >= enough:
                break
            words.distinct[kept] = words.hashes[at]
            kept += 1
    return total


@compiled
def double_size(words: Words, count: int) -> int:
    total = 0
    for at in range(count):
        total += 1 if words.kinds[at] & IS_SIGN else 2
    return total


@compiled
def sample(words: Words, count: int, out: Any) -> int:
    """Fills `out` with the smallest fingerprints of runs, in order. Returns how many."""
    kept = 0
    for at in range(count - RUN + 1):
        value = _NONE
        for step in range(RUN):
            value = mix(value, words.hashes[at + step])
        if kept == MOST_RUNS and value >= out[kept - 1]:
            continue
        place = np.searchsorted(out[:kept], value)
        if place < kept and out[place] == value:
            continue
        last = kept if kept < MOST_RUNS else kept - 1
        for each in range(last, place, -1):
            out[each] = out[each - 1]
        out[place] = value
        kept = last + 1
    return kept


@compiled
def overlap(a: Any, a_count: int, b: Any, b_count: int) -> float:
    reach = _ALL
    if a_count == MOST_RUNS:
        reach = min(reach, a[a_count - 1])
    if b_count == MOST_RUNS:
        reach = min(reach, b[b_count - 1])
    i, j, both, left, right = 0, 0, 0, 0, 0
    while i < a_count and a[i] <= reach:
        i += 1
    left = i
    while j < b_count and b[j] <= reach:
        j += 1
    right = j
    i = j = 0
    while i < left and j < right:
        if a[i] == b[j]:
            both, i, j = both + 1, i + 1, j + 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return both / max(min(left, right), 1)


@compiled
def same_bytes(a: Any, a_start: int, b: Any, b_start: int, length: int) -> bool:
    for step in range(length):
        if a[a_start + step] != b[b_start + step]:
            return False
    return True


@compiled
def begins_with(a: Words, i: int, b: Words, j: int) -> bool:
    """Whether word i of `a` begins with word j of `b`."""
    length = b.ends[j] - b.starts[j]
    return a.ends[i] - a.starts[i] >= length and same_bytes(a.bytes, a.starts[i], b.bytes, b.starts[j], length)


@compiled
def currency_length(words: Words, at: int) -> int:
    data, start = words.bytes, words.starts[at]
    if data[start] == 0x24:
        return 1
    if data[start] == 0xC2 and data[start + 1] in (0xA3, 0xA5):
        return 2
    if data[start] == 0xE2 and data[start + 1] == 0x82 and data[start + 2] in (0xAC, 0xBF):
        return 3
    return 0


@compiled
def lacks_currency(a: Words, i: int, b: Words, j: int) -> bool:
    """Whether word j of `b` is word i of `a` without its currency."""
    sign = currency_length(a, i)
    length = b.ends[j] - b.starts[j]
    if sign == 0 or a.ends[i] - a.starts[i] - sign != length:
        return False
    return same_bytes(a.bytes, a.starts[i] + sign, b.bytes, b.starts[j], length)


@compiled
def same_word(a: Words, i: int, b: Words, j: int, a_torn: bool, b_torn: bool) -> bool:
    if a.hashes[i] == b.hashes[j] or (a_torn and begins_with(b, j, a, i)) or (b_torn and begins_with(a, i, b, j)):
        return True
    return lacks_currency(a, i, b, j) or lacks_currency(b, j, a, i)


@compiled
def spread(words: Words, at: int) -> int:
    """Puts the characters of a word into `letters`, as numbers. Returns how many; -1 if it is longer than words are."""
    data, here, end, count = words.bytes, words.starts[at], words.ends[at], 0
    while here < end:
        if count == LONGEST_WORD:
            return -1
        byte = np.int64(data[here])
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        value = byte
        for step in range(1, length):
            value = (value << 8) | np.int64(data[here + step])
        words.letters[count] = value
        count += 1
        here += length
    return count


@compiled
def is_slip(a: Words, i: int, b: Words, j: int) -> bool:
    both = a.kinds[i] & b.kinds[j]
    either = a.kinds[i] | b.kinds[j]
    if both & IS_TURNING or either & HAS_DIGIT:
        return False
    left, right = a.letters, b.letters
    n, m = spread(a, i), spread(b, j)
    if min(n, m) < 4 or abs(n - m) > 1:
        return False
    start = 0
    while start < min(n, m) and left[start] == right[start]:
        start += 1
    if n == m:
        return is_one_change(left, right, start, n)
    longer, shorter = (left, right) if n > m else (right, left)
    most = max(n, m)
    for at in range(start + 1, most):
        if longer[at] != shorter[at - 1]:
            return False
    return not (start == most - 1 and longer[start] in (0x73, 0x64))


@compiled
def is_one_change(left: Any, right: Any, start: int, length: int) -> bool:
    """Whether two words of one length differ in one letter only, or in two that are swapped, from `start` on."""
    after = start + 2
    swapped = after <= length and left[start] == right[start + 1] and left[start + 1] == right[start]
    if swapped:
        for at in range(after, length):
            if left[at] != right[at]:
                swapped = False
                break
    if swapped:
        return True
    for at in range(start + 1, length):
        if left[at] != right[at]:
            return False
    return length > 4


@compiled
def is_joined(a: Words, i: int, a_count: int, b: Words, j: int) -> bool:
    """Whether word j of `b` is words i and i + 1 of `a`."""
    if i + 1 >= a_count or b.kinds[j] & HAS_DIGIT:
        return False
    first = a.ends[i] - a.starts[i]
    second = a.ends[i + 1] - a.starts[i + 1]
    if b.ends[j] - b.starts[j] != first + second:
        return False
    return same_bytes(a.bytes, a.starts[i], b.bytes, b.starts[j], first) and same_bytes(
        a.bytes, a.starts[i + 1], b.bytes, b.starts[j] + first, second
    )


@compiled
def is_extra(a: Words, i: int, a_count: int, b: Words, j: int) -> bool:
    """Whether word i of `a` is light and word j of `b` is one of the two behind it."""
    if not a.kinds[i] & IS_LIGHT:
        return False
    return (i + 1 < a_count and a.hashes[i + 1] == b.hashes[j]) or (i + 2 < a_count and a.hashes[i + 2] == b.hashes[j])


@compiled
def all_light(words: Words, start: int, end: int) -> bool:
    for at in range(start, end):
        if not words.kinds[at] & IS_LIGHT:
            return False
    return True


@compiled
def may_miss(rest: int, shorter: Shape, longer: Shape) -> bool:
    if shorter.flags & CUT or rest <= longer.tail or shorter.total == longer.head:
        return True
    return shorter.total >= CUT_WITHOUT_DOTS and rest >= LEAST_CUT


@compiled
def aligned(a: Words, first: Shape, b: Words, second: Shape) -> tuple[bool, int, int, int, int, int]:
    """Whether the texts go together; slips, light words; how many words of a were reached; what is left of a and b."""
    i = j = slips = light = 0
    n, m = first.size, second.size
    first_torn, second_torn = (first.flags & TORN) != 0, (second.flags & TORN) != 0
    while i < n and j < m:
        if same_word(a, i, b, j, first_torn and i == first.total - 1, second_torn and j == second.total - 1):
            i, j = i + 1, j + 1
        elif is_extra(a, i, n, b, j):
            i, light = i + 1, light + 1
        elif is_extra(b, j, m, a, i):
            j, light = j + 1, light + 1
        elif is_slip(a, i, b, j):
            i, j, slips = i + 1, j + 1, slips + 1
        elif is_joined(a, i, n, b, j):
            i, j = i + 2, j + 1
        elif is_joined(b, j, m, a, i):
            i, j = i + 1, j + 2
        else:
            return False, 0, 0, 0, 0, 0
    left, right = first.total - i, second.total - j
    if all_light(a, i, n) and all_light(b, j, m) and n == first.total and m == second.total:
        return True, slips, light + left + right, i, 0, 0
    return True, slips, light, i, left, right


@compiled
def small_difference(a: Words, first: Shape, b: Words, second: Shape) -> Found:
    no = Found(False, 0, 0, 0, False, 0.0)
    same, slips, light, reached, left, right = aligned(a, first, b, second)
    if not same:
        return no
    shorter = min(first.total, second.total)
    if slips > 1 + shorter // 12 or light > 1 + shorter // 8 or content(a, reached, LEAST_CONTENT) < LEAST_CONTENT:
        return no
    if (left and not may_miss(left, second, first)) or (right and not may_miss(right, first, second)):
        return no
    cut = ((second.flags if left else first.flags) & CUT) != 0 and left + right > 0
    return Found(True, slips, light, left + right, cut, 0.0)


@compiled
def same_audience(a: Words, first: Shape, b: Words, second: Shape) -> bool:
    if first.mentions == second.mentions:
        return True
    if first.mentions != _NONE and second.mentions != _NONE:
        return False
    enough = ADDRESSED_CONTENT
    return content(a, first.size, enough) >= enough and content(b, second.size, enough) >= enough


@compiled
def same_numbers(a: Words, first: Shape, b: Words, second: Shape) -> bool:
    if second.total >= NUMBERED:
        return True
    numbers = missing = 0
    for i in range(first.size):
        if not a.kinds[i] & HAS_DIGIT or is_among(a.hashes, 0, i, a.hashes[i]):
            continue
        numbers += 1
        if not is_among(b.hashes, 0, second.size, a.hashes[i]):
            missing += 1
    return missing * 4 <= numbers


@compiled
def is_among(hashes: Any, start: int, end: int, value: Any) -> bool:
    for at in range(start, end):
        if hashes[at] == value:
            return True
    return False


@compiled
def comes_first(a: Words, first: Shape, b: Words, second: Shape) -> bool:
    """Whether `a` is the one to begin with: it has fewer words, or as many and comes first in the dictionary."""
    if first.total != second.total:
        return first.total < second.total
    n, m = min(first.size, 1), min(second.size, 1)
    if n == 0 or m == 0:
        return n <= m
    i, j = a.starts[0], b.starts[0]
    i_end, j_end = a.ends[first.size - 1], b.ends[second.size - 1]
    while i < i_end and j < j_end:
        if a.bytes[i] != b.bytes[j]:
            return bool(a.bytes[i] < b.bytes[j])
        i, j = i + 1, j + 1
    return bool(i_end - i <= j_end - j)


@compiled
def difference(
    a: Words, first: Shape, a_runs: Any, a_kept: int, b: Words, second: Shape, b_runs: Any, b_kept: int
) -> Found:
    """What differs between two texts that can be folded. `a_runs` and `b_runs` are samples, if both are articles."""
    if not comes_first(a, first, b, second):
        a, first, b, second = b, second, a, first
    if not same_audience(a, first, b, second):
        return Found(False, 0, 0, 0, False, 0.0)
    if first.whole == second.whole:
        return Found(True, 0, 0, 0, False, 0.0)
    if first.flags & second.flags & ARTICLE:
        share = overlap(a_runs, a_kept, b_runs, b_kept)
        same = share >= LEAST_OVERLAP and same_numbers(a, first, b, second)
        return Found(same, 0, 0, 0, False, share)
    return small_difference(a, first, b, second)
