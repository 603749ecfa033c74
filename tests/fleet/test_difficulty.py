"""The next difficulty, as the network computes it and as it can be foreseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fleet.difficulty import (
    BLOCKS_PER_EPOCH,
    EPOCH_SECONDS,
    Progress,
    change_by_pace,
    change_expected,
    compact,
    difficulty_of,
    estimate,
    next_bits,
    quantile,
    target_of,
)

HALF_WAY = BLOCKS_PER_EPOCH // 2


@pytest.mark.parametrize(
    ("bits", "first", "last", "after"),
    [
        (0x1D00FFFF, 1261130161, 1262152739, 0x1D00D86A),  # the first change there was
        (0x1D00FFFF, 1231006505, 1233061996, 0x1D00FFFF),  # never easier than the easiest
        (0x1C05A3F4, 1279008237, 1279297671, 0x1C0168FD),  # four times as hard at most
        (0x1C387F6F, 1263163443, 1269211443, 0x1D00E1FD),  # four times as easy at most
    ],
)
def test_real_changes_are_computed_to_the_bit(bits: int, first: int, last: int, after: int) -> None:
    assert next_bits(bits, last - first) == after


def test_difficulty_is_relative_to_the_easiest_target() -> None:
    assert difficulty_of(0x1D00FFFF) == 1
    assert difficulty_of(0x1D00D86A) == pytest.approx(1.18289953)


@given(st.integers(1, 0xFFFF << 208))
def test_a_compact_target_loses_only_its_smallest_digits(target: int) -> None:
    kept = target_of(compact(target))

    assert kept <= target
    assert target - kept <= target >> 15
    assert compact(kept) == compact(target)


@given(blocks=st.integers(1, 2015), pace=st.floats(-0.5, 1.0), growth=st.floats(-0.1, 0.1))
def test_the_estimate_lies_between_what_was_expected_and_the_pace(blocks: int, pace: float, growth: float) -> None:
    progress = Progress(blocks, blocks * 600 / (1 + pace))

    change = change_expected(progress, growth)

    low, high = sorted((change_by_pace(progress), growth))
    margin = abs(growth)  # the network may grow until the end of the epoch
    assert low - margin - 0.01 <= change <= high + margin + 0.01


def test_few_blocks_say_little_and_many_say_nearly_all() -> None:
    early, late = Progress(100, 100 * 600 / 1.1), Progress(1950, 1950 * 600 / 1.1)

    assert 0 < change_expected(early, 0.0) < 0.03
    assert change_expected(late, 0.0) == pytest.approx(0.1, abs=0.002)


def test_expected_growth_goes_on() -> None:
    on_time = Progress(HALF_WAY, EPOCH_SECONDS / 2)

    assert change_expected(on_time, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert change_expected(on_time, 0.04) > 0.005


def test_a_stopped_chain_and_a_frantic_one_change_fourfold_at_most() -> None:
    assert change_by_pace(Progress(1, 10**9)) == -0.75
    assert change_by_pace(Progress(2000, 1.0)) == 3
    assert change_expected(Progress(2000, 10**10), 0.0) == -0.75


def test_the_range_is_as_wide_as_past_estimates_were_wrong() -> None:
    progress = Progress(HALF_WAY, EPOCH_SECONDS / 2)

    found = estimate(progress, 0.0, [-0.05, 0.01, 0.02, -0.03, 0.04])

    assert (found.low, found.high) == (pytest.approx(found.change - 0.04), pytest.approx(found.change + 0.04))


def test_a_quantile_is_a_value_that_occurred() -> None:
    assert quantile([3, 1, 2, 5, 4], 0.8) == 4
    assert quantile([7], 0.5) == 7
    assert quantile([], 0.8) == 0
