"""Finds where a key stands in an array, as a dict does, in a few bytes for each key: for terms and for posts.

Keys stand in the order in which they came. `slots` is a table of their places, of a size that is a power of two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled

EMPTY = -1
FEWEST_SLOTS = 1 << 10
_FULLEST = 0.6
# Whole numbers of this many bits are multiplied alike in Python and in machine code.
BITS = (1 << 61) - 1
_SPREAD = 0x1E3779B97F4A7C15


def slots_for(keys: NDArray[Any], count: int, wanted: int) -> NDArray[np.int32]:
    """A table of the first `count` keys, with room for `wanted`."""
    size = FEWEST_SLOTS
    while wanted > size * _FULLEST:
        size *= 2
    slots = np.full(size, EMPTY, np.int32)
    fill(slots, keys, count)
    return slots


def has_room(slots: NDArray[np.int32], wanted: int) -> bool:
    return wanted <= len(slots) * _FULLEST


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with room for so many."""
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def fill(slots: Any, keys: Any, count: int) -> None:
    for place in range(count):
        slots[slot_of(slots, keys, keys[place])] = place


@compiled
def slot_of(slots: Any, keys: Any, key: int) -> int:
    """The slot with the place of a key, or the empty one where it is to be put."""
    last = len(slots) - 1
    slot = (((int(key) * _SPREAD) & BITS) >> 24) & last
    while slots[slot] != EMPTY and keys[slots[slot]] != key:
        slot = (slot + 1) & last
    return slot
