"""`normal.spelled` for many texts at once, as loops for the C compiler. The C types are in `spelling.pxd`.

The grammar is written twice, the character classes once: the table here is filled by the patterns of `normal.py`. A
test holds the two together.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence

from headwater.dedup.normal import CJK, CURRENCY, LETTERS

_OTHER, _LETTER, DIGIT, SIGN, _CURRENCY, _JOINER, _PERCENT, _SPACE, _MINUS = range(9)
_KNOWN = 0x20000
_LAST_SIGN = 0x3FFFF
# A string of all characters would take megabytes that the process does not give back.
_AT_ONCE = 0x400
_COMMA = ord(",")
_UTF_32 = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"


def character_classes() -> bytes:
    """What kind of character each code point of the first two planes is."""
    table = bytearray()
    for first in range(0, _KNOWN, _AT_ONCE):
        table += _classes_of("".join(map(chr, range(first, first + _AT_ONCE))))
    return bytes(table)


def _classes_of(characters: str) -> bytearray:
    table = bytearray(len(characters))
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
            table[run.start() : run.end()] = bytes([kind]) * len(run[0])
    return table


CLASSES = character_classes()


class Spelling:
    """The words of several parts, one after the other: `text` has them as UTF-8 with a space between them.

    Word `w` is `text[starts[w] : ends[w]]`, and `kinds[w]` says of which kind its first character is. The words of part
    `p` are numbered from `first[p]` to `first[p + 1] - 1`.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        codes = "".join(parts).encode(_UTF_32, "surrogatepass")
        # A character becomes at most four bytes and a space, and at most one word.
        self.text = bytearray(5 * (len(codes) // 4))
        self.starts, self.ends = array("i", bytes(len(codes))), array("i", bytes(len(codes)))
        self.kinds = bytearray(len(codes) // 4)
        self.first = array("i", bytes(4 * (len(parts) + 1)))
        self.codes = memoryview(codes).cast("I")
        self.out, self.word_starts, self.word_ends, self.word_kinds = self.text, self.starts, self.ends, self.kinds
        self.at = 0
        words = start = 0
        for part in range(len(parts)):
            end = start + len(parts[part])
            words = _spell(self, start, end, words)
            self.first[part + 1] = words
            start = end


def _spell(spelling: Spelling, start: int, end: int, words: int) -> int:
    """Writes the words of one part behind the `words` that there are. Returns how many there are then."""
    here = start
    while here < end:
        until = _end_of_word(spelling, start, here, end)
        if until == here:
            here += 1
            continue
        if words > 0:
            spelling.out[spelling.at] = 32
            spelling.at += 1
        spelling.word_starts[words] = spelling.at
        spelling.word_kinds[words] = _kind_of(spelling.codes[here])
        for each in range(here, until):
            if not _parts_thousands(spelling, each, until):
                _write(spelling, spelling.codes[each])
        spelling.word_ends[words] = spelling.at
        words += 1
        here = until
    return words


def _end_of_word(spelling: Spelling, start: int, first: int, end: int) -> int:
    """Where the word ends that begins at `first`, in the part that begins at `start`; `first` if none does."""
    kind = _kind_of(spelling.codes[first])
    if kind == SIGN:
        return first + 1
    if kind == _LETTER:
        return _end_of_letters(spelling, first, end)
    if kind == DIGIT or kind == _CURRENCY or kind == _MINUS:  # noqa: SIM109 -- for C
        return _end_of_number(spelling, start, first, end)
    return first


def _end_of_number(spelling: Spelling, start: int, first: int, end: int) -> int:
    at = first
    if _kind_of(spelling.codes[at]) == _MINUS and (at == start or _kind_of(spelling.codes[at - 1]) == _SPACE):
        at += 1
    if at < end and _kind_of(spelling.codes[at]) == _CURRENCY:
        at += 1
    if at >= end or _kind_of(spelling.codes[at]) != DIGIT:
        return first
    while at < end and _kind_of(spelling.codes[at]) == DIGIT:
        at += 1
        if at + 1 < end and _kind_of(spelling.codes[at]) == _JOINER and _kind_of(spelling.codes[at + 1]) == DIGIT:
            at += 1
    if at < end and _kind_of(spelling.codes[at]) == _PERCENT:
        return at + 1
    return _end_of_letters(spelling, at, end)


def _end_of_letters(spelling: Spelling, at: int, end: int) -> int:
    while at < end:
        kind = _kind_of(spelling.codes[at])
        if kind != _LETTER and kind != DIGIT:
            break
        at += 1
    return at


def _parts_thousands(spelling: Spelling, at: int, end: int) -> bool:
    """Whether there is a comma at `at`, and exactly three digits behind it."""
    if spelling.codes[at] != _COMMA or at + 3 >= end:
        return False
    for step in range(1, 4):
        if _kind_of(spelling.codes[at + step]) != DIGIT:
            return False
    return at + 4 >= end or _kind_of(spelling.codes[at + 4]) != DIGIT


def _kind_of(code: int) -> int:
    if code < _KNOWN:
        return CLASSES[code]
    return SIGN if code <= _LAST_SIGN else _OTHER


def _write(spelling: Spelling, code: int) -> None:
    """Writes one character in UTF-8."""
    at = spelling.at
    if code < 0x80:
        spelling.out[at] = code
        spelling.at = at + 1
    elif code < 0x800:
        spelling.out[at] = 0xC0 | (code >> 6)
        spelling.out[at + 1] = 0x80 | (code & 0x3F)
        spelling.at = at + 2
    elif code < 0x10000:
        spelling.out[at] = 0xE0 | (code >> 12)
        spelling.out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        spelling.out[at + 2] = 0x80 | (code & 0x3F)
        spelling.at = at + 3
    else:
        spelling.out[at] = 0xF0 | (code >> 18)
        spelling.out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
        spelling.out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
        spelling.out[at + 3] = 0x80 | (code & 0x3F)
        spelling.at = at + 4
