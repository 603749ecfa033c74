"""`normal.spelled` in compiled code: from the characters of many texts to their words, as UTF-8 with one space between.

The grammar is written twice, the character classes once: the table here is filled by the patterns of `normal.py`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from headwater.dedup.compiled import compiled
from headwater.dedup.normal import CJK, CURRENCY, LETTERS

_OTHER, _LETTER, DIGIT, SIGN, _CURRENCY, _JOINER, _PERCENT, _SPACE, _MINUS = range(9)
_KNOWN = 0x20000
_LAST_SIGN = 0x3FFFF
COMMA = ord(",")


def classes() -> np.ndarray[Any, Any]:
    """What kind of character each code point of the first two planes is."""
    table = np.zeros(_KNOWN, np.uint8)
    characters = "".join(map(chr, range(_KNOWN)))
    patterns = {
        _LETTER: LETTERS,
        DIGIT: r"\d",
        SIGN: f"[{CJK}]",
        _CURRENCY: f"[{CURRENCY}]",
        _JOINER: "[.,:/]",
        _PERCENT: "%",
        _SPACE: r"\s",
        _MINUS: "-",
    }
    for kind, pattern in patterns.items():
        for run in re.finditer(f"(?:{pattern})+", characters):
            table[run.start() : run.end()] = kind
    return table


@compiled
def kind_of(code: int, table: Any) -> int:
    if code < _KNOWN:
        return int(table[code])
    return SIGN if code <= _LAST_SIGN else _OTHER


@compiled
def write(code: int, out: Any, at: int) -> int:
    """One character in UTF-8. Returns where the next one goes."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@compiled
def number_end(codes: Any, start: int, first: int, end: int, table: Any) -> int:
    """Where the number ends that begins at `first` in the part that begins at `start`; `first` if none does."""
    at = first
    if kind_of(codes[at], table) == _MINUS and (at == start or kind_of(codes[at - 1], table) == _SPACE):
        at += 1
    if at < end and kind_of(codes[at], table) == _CURRENCY:
        at += 1
    if at >= end or kind_of(codes[at], table) != DIGIT:
        return first
    while at < end and kind_of(codes[at], table) == DIGIT:
        at += 1
        if at + 1 < end and kind_of(codes[at], table) == _JOINER and kind_of(codes[at + 1], table) == DIGIT:
            at += 1
    if at < end and kind_of(codes[at], table) == _PERCENT:
        return at + 1
    return word_end(codes, at, end, table)


@compiled
def word_end(codes: Any, at: int, end: int, table: Any) -> int:
    while at < end:
        kind = kind_of(codes[at], table)
        if kind not in (_LETTER, DIGIT):
            break
        at += 1
    return at


@compiled
def end_of_word(codes: Any, start: int, first: int, end: int, table: Any) -> int:
    """Where the word ends that begins at `first` in the part that begins at `start`; `first` if none does."""
    kind = kind_of(codes[first], table)
    if kind == SIGN:
        return first + 1
    if kind == _LETTER:
        return word_end(codes, first, end, table)
    if kind in (DIGIT, _CURRENCY, _MINUS):
        return number_end(codes, start, first, end, table)
    return first


@compiled
def parts_thousands(codes: Any, at: int, end: int, table: Any) -> bool:
    """Whether the comma at `at` stands before exactly three digits."""
    if codes[at] != COMMA or at + 3 >= end:
        return False
    for step in range(1, 4):
        if kind_of(codes[at + step], table) != DIGIT:
            return False
    return at + 4 >= end or kind_of(codes[at + 4], table) != DIGIT


@compiled
def spell(codes: Any, start: int, end: int, table: Any, out: Any, at: int, first: int) -> tuple[int, int]:
    """Writes the words of codes[start:end] into `out` at `at`; `first` is where the whole text began.

    Returns where to go on, and how many words there were.
    """
    words = 0
    here = start
    while here < end:
        until = end_of_word(codes, start, here, end, table)
        if until == here:
            here += 1
            continue
        if at > first:
            out[at] = 32
            at += 1
        for each in range(here, until):
            if not parts_thousands(codes, each, until, table):
                at = write(codes[each], out, at)
        words += 1
        here = until
    return at, words
