"""The next difficulty: how the network computes it, and what is known about it during an epoch.

An epoch has 2,016 blocks. How long it took decides the next difficulty. The network measures from the first block of an
epoch to its last, which are 2,015 intervals, and compares that with 2,016 times ten minutes. It has always done so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

BLOCKS_PER_EPOCH = 2016
BLOCK_SECONDS = 600
EPOCH_SECONDS = BLOCKS_PER_EPOCH * BLOCK_SECONDS
MOST_CHANGE = 4  # a difficulty changes by this factor at most, up or down
EASIEST_TARGET = 0xFFFF << 208  # difficulty 1

# Both were chosen on the epochs of 2014 to 2019, with those of 2020 to 2023 in view.
USUAL_CHANGE = 0.04  # how far the pace of an epoch usually lies from the one that is aimed at
GROWTH_EPOCHS = 12  # the epochs whose average growth is expected to go on


class Progress(NamedTuple):
    """How far an epoch is: blocks found, and the seconds that they took."""

    blocks: int
    seconds: float

    @property
    def share(self) -> float:
        return self.blocks / BLOCKS_PER_EPOCH

    @property
    def pace(self) -> float:
        """How much faster than aimed at blocks were found: 0.05 is five per cent faster."""
        return self.blocks * BLOCK_SECONDS / self.seconds - 1


class NextDifficulty(NamedTuple):
    """The expected change at the end of the epoch: 0.031 is 3.1 % harder. Four of five outcomes lie in the range."""

    change: float
    low: float
    high: float


def next_bits(bits: int, seconds: int) -> int:
    """Returns the compact target of the next epoch, exactly as the network computes it.

    `bits` is the compact target of this epoch, `seconds` the time from its first block to its last.
    """
    seconds = min(max(seconds, EPOCH_SECONDS // MOST_CHANGE), EPOCH_SECONDS * MOST_CHANGE)
    return compact(min(target_of(bits) * seconds // EPOCH_SECONDS, EASIEST_TARGET))


def target_of(bits: int) -> int:
    """Returns the target that a compact number stands for: three digits of base 256, and how many follow them."""
    size, digits = bits >> 24, bits & 0x7FFFFF
    return digits << 8 * (size - 3) if size >= 3 else digits >> 8 * (3 - size)


def compact(target: int) -> int:
    size = (target.bit_length() + 7) // 8
    digits = target >> 8 * (size - 3) if size >= 3 else target << 8 * (3 - size)
    if digits & 0x800000:  # the highest bit is a sign, which no target has
        digits, size = digits >> 8, size + 1
    return size << 24 | digits


def difficulty_of(bits: int) -> float:
    return EASIEST_TARGET / target_of(bits)


def change_by_pace(progress: Progress) -> float:
    """Returns the change if the rest of the epoch is as fast as the blocks so far. Most sites show this number."""
    return clamped(progress.pace)


def change_expected(progress: Progress, growth: float) -> float:
    """Returns the change that is most likely, given the average growth per epoch of late.

    The blocks so far are a small sample. The fewer they are, the more their pace is drawn towards what was expected
    before the epoch began. Only the blocks to come are estimated; those that were found took the time that they took.
    The middle of what is to come is half an epoch later than the middle of what was: by then the network has grown.
    """
    share = progress.share
    expected_so_far = share * growth / 2
    noise = (1 - share) ** 2 / progress.blocks
    weight = USUAL_CHANGE**2 / (USUAL_CHANGE**2 + noise)
    pace_to_come = expected_so_far + weight * (progress.pace - expected_so_far) + growth / 2
    seconds_to_come = (BLOCKS_PER_EPOCH - progress.blocks) * BLOCK_SECONDS / (1 + pace_to_come)
    return clamped(EPOCH_SECONDS / (progress.seconds + seconds_to_come) - 1)


def clamped(change: float) -> float:
    return min(max(change, 1 / MOST_CHANGE - 1), MOST_CHANGE - 1)


def growth_of(changes: Sequence[float]) -> float:
    """Returns the average of the latest changes, and 0 where there are none."""
    latest = changes[-GROWTH_EPOCHS:]
    return sum(latest) / len(latest) if latest else 0.0


def estimate(progress: Progress, growth: float, misses: Sequence[float]) -> NextDifficulty:
    """Returns the expected change with its range. `misses` are the errors of past estimates at this point."""
    change = change_expected(progress, growth)
    half = quantile([abs(miss) for miss in misses], 0.8)
    return NextDifficulty(change, clamped(change - half), clamped(change + half))


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least this share of the values does not exceed. 0 where there are none."""
    ranked = sorted(values)
    return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0
