"""Rows of numbers in memory that is taken only as it is written to, and a hash table over them.

The C types are in `arrays.pxd`.
"""

from __future__ import annotations

from array import array
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import calcsize
from typing import Any

NONE = -1
FEWEST_SLOTS = 1 << 10
_FULLEST = 0.6
# Numbers of this many bits are multiplied alike in Python and in C.
BITS = (1 << 61) - 1
SPREAD = 0x1E3779B97F4A7C15
# What is smaller is not worth pages of its own.
_LARGE = 1 << 16


# A memoryview of whole numbers or of floats; mypy would have to know which.
Row = Any


def zeros(kind: str, count: int) -> Row:
    """A row of zeros; `kind` is a format of `array`. The system provides the pages of a large row as they are used."""
    size = max(count, 1) * calcsize(kind)
    memory = bytearray(size) if size < _LARGE else mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    return seen_as(kind, memoryview(memory))


def seen_as(kind: str, row: Row) -> Row:
    """The same memory as numbers of another kind."""
    return row.cast("B").cast(kind)


def grown(row: Row, kind: str, count: int) -> Row:
    """The row, or a copy of it with room for `count` numbers."""
    if count <= len(row):
        return row
    larger = zeros(kind, count)
    larger[: len(row)] = row
    return larger


def shrunk(row: Row, kind: str, count: int) -> Row:
    """A copy of the first `count` numbers of the row."""
    smaller = zeros(kind, count)
    smaller[:count] = row[:count]
    return smaller


def unrolled(ring: Row, larger: Row, width: int, written: int) -> Row:
    """Moves a ring to one of twice the size. Things are `width` wide; `written` is the next one's number."""
    size = len(ring) // width
    laps, at = divmod(written, size)
    this_lap = laps % 2 * size
    larger[this_lap * width : (this_lap + at) * width] = ring[: at * width]
    if laps:
        last_lap = size - this_lap
        larger[(last_lap + at) * width : (last_lap + size) * width] = ring[at * width : size * width]
    return larger


class HashTable:
    """Numbers keys, which are whole numbers of 64 bits, in the order in which they came. It is a dict in a tenth of the
    space.

    `slots` has a key's number plus one, at the slot that the key hashes to or the next free one behind it; 0 is free.
    """

    def __init__(self) -> None:
        self.size = 0
        self.keys = zeros("q", 1)
        self.slots = zeros("i", FEWEST_SLOTS)

    def __len__(self) -> int:
        return self.size

    def key(self, number: int) -> int:
        """The key that has a number."""
        key: int = self.keys[number]
        return key

    def make_room(self, new: int) -> None:
        """Makes room for so many more keys. Whoever calls `add` has to do so before."""
        wanted = self.size + new
        if wanted > len(self.keys):
            self.keys = grown(self.keys, "q", wanted + wanted // 4)
        if wanted > len(self.slots) * _FULLEST:
            self._hash_again(wanted)

    def numbers_of(self, keys: array[int]) -> array[int]:
        """The number of each key, NONE where it has none."""
        numbers = array("i", bytes(4 * len(keys)))
        find_all(self, keys, numbers)
        return numbers

    def number(self, keys: array[int]) -> array[int]:
        """The number of each key; new keys get the next ones."""
        self.make_room(len(keys))
        numbers = array("i", bytes(4 * len(keys)))
        add_all(self, keys, numbers)
        return numbers

    def keep(self, chosen: bytearray) -> None:
        """Forgets the keys whose numbers are not chosen. The others move up and keep their order."""
        kept = 0
        for number in range(self.size):
            if chosen[number]:
                self.keys[kept] = self.keys[number]
                kept += 1
        self.size = kept
        self.keys = shrunk(self.keys, "q", kept)
        self._hash_again(kept)

    def _hash_again(self, wanted: int) -> None:
        size = FEWEST_SLOTS
        while wanted > size * _FULLEST:
            size *= 2
        self.slots = zeros("i", size)
        fill(self)


def fill(table: HashTable) -> None:
    for number in range(table.size):
        table.slots[slot_of(table, table.keys[number])] = number + 1


def slot_of(table: HashTable, key: int) -> int:
    """The slot that has the number of a key, or the free one where it would be put."""
    last = len(table.slots) - 1
    slot = (((key * SPREAD) & BITS) >> 24) & last
    while table.slots[slot] != 0 and table.keys[table.slots[slot] - 1] != key:
        slot = (slot + 1) & last
    return slot


def find_all(table: HashTable, keys: array[int], numbers: array[int]) -> None:
    for at in range(len(keys)):
        numbers[at] = find(table, keys[at])


def add_all(table: HashTable, keys: array[int], numbers: array[int]) -> None:
    for at in range(len(keys)):
        numbers[at] = add(table, keys[at])


def find(table: HashTable, key: int) -> int:
    """The number of a key, or NONE."""
    number = table.slots[slot_of(table, key)]
    return number - 1 if number else NONE


def add(table: HashTable, key: int) -> int:
    """The number of a key, which is the next one if the key is new."""
    slot = slot_of(table, key)
    if table.slots[slot] == 0:
        table.keys[table.size] = key
        table.size += 1
        table.slots[slot] = table.size
    number: int = table.slots[slot]
    return number - 1
