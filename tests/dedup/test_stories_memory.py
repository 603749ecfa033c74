"""The rings of stories keep what is in them when they grow."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.dedup.stories_memory import are_young, doubled, empty
from headwater.dedup.stories_notes import NEXT_NOTE, NEXT_STORY, NONE, OLDEST_NOTE

SIZE = 8


@pytest.mark.parametrize("written", [0, 3, 8, 11, 16, 21, 24, 31])
def test_what_is_in_a_ring_is_found_after_it_grew(written: int) -> None:
    memory = empty(SIZE, 2)
    for number in range(written):
        memory.stories["number"][number % SIZE] = number
        memory.stories["first"][number % SIZE] = number
        memory.meanings[number % SIZE] = number
    memory.counts[NEXT_STORY] = written
    larger = doubled(memory)
    numbers = np.arange(written, dtype=np.int32)
    kept = np.arange(max(0, written - SIZE), written)
    assert np.flatnonzero(are_young(larger, numbers, since=0.0)).tolist() == kept.tolist()
    assert larger.meanings[kept % (2 * SIZE), 0].tolist() == kept.tolist()


def test_notes_that_were_written_over_before_the_ring_grew_are_not_read() -> None:
    memory = empty(SIZE, 0)
    size = len(memory.notes)
    memory.counts[NEXT_NOTE] = size + 5
    memory.notes["story"] = [*range(size, size + 5), *range(5, size)]
    once = doubled(memory)
    assert once.counts[OLDEST_NOTE] == 5
    kept = np.arange(5, size + 5)
    assert once.notes["story"][kept % len(once.notes)].tolist() == kept.tolist()
    assert doubled(once).counts[OLDEST_NOTE] == 5


def test_a_post_that_was_forgotten_has_no_young_story() -> None:
    memory = empty(SIZE, 0)
    assert are_young(memory, np.array([NONE], np.int32), since=0.0).tolist() == [False]
