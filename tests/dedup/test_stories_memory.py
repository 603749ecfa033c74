"""The rings of stories keep what is in them when they grow."""

from __future__ import annotations

from array import array

import pytest

from headwater.dedup.arrays import HashTable, unrolled, zeros
from headwater.dedup.story_choice import decide
from headwater.dedup.story_memory import StoryMemory
from headwater.dedup.story_rules import StoryRules, parts_of
from headwater.dedup.story_terms import StoryBatch, Terms

SIZE = 8
RULES = StoryRules(0.5, 1e9)
NO_STORY = -1


class Stories:
    """A small memory, and what it takes to fill it."""

    def __init__(self, dimensions: int = 0) -> None:
        self.memory, self.vocabulary, self.dimensions = StoryMemory(RULES, SIZE, dimensions), HashTable(), dimensions

    def decide(self, title: str, number: int) -> StoryBatch:
        terms = Terms(parts_of([(title, "")]), self.vocabulary)
        self.memory.make_room_for_terms(len(self.vocabulary))
        meaning = array("f", [1.0] * max(self.dimensions, 1))
        batch = StoryBatch(terms, [number], [float(number)], [], meaning, [0])
        decide(self.memory, batch)
        return batch


def headline(number: int, words: int = 2) -> str:
    return " ".join(f"word{number}x{word}" for word in range(words))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("written", [0, 3, 8, 11, 16, 21, 24, 31])
def test_what_is_in_a_ring_is_where_its_number_says_after_it_grew(written: int, width: int) -> None:
    ring = zeros("q", SIZE * width)
    for number in range(written):
        for step in range(width):
            ring[number % SIZE * width + step] = number
    larger = unrolled(ring, zeros("q", 2 * SIZE * width), width, written)
    kept = range(max(0, written - SIZE), written)
    for step in range(width):
        assert [larger[number % (2 * SIZE) * width + step] for number in kept] == list(kept)


@pytest.mark.parametrize("written", [0, 3, 8, 11, 16, 21, 24, 31])
def test_stories_are_found_after_their_ring_grew(written: int) -> None:
    stories = Stories(dimensions=2)
    for number in range(written):
        assert stories.decide(headline(number), number).scores[0] == 0
    stories.memory.double()
    assert len(stories.memory) == 2 * SIZE
    kept = list(range(max(0, written - SIZE), written))
    young = stories.memory.are_young(array("i", range(written)), 0.0)
    assert [number for number in range(written) if young[number]] == kept
    assert [stories.memory.leader(number) for number in kept] == kept
    for number in kept:
        # The same words, and a meaning that was kept: with another one the score would be less.
        assert stories.decide(headline(number), 100 + number).scores[0] == pytest.approx(1.0, abs=0.001)


def test_entries_that_were_written_over_before_the_ring_grew_are_not_read() -> None:
    stories = Stories()
    size = SIZE * 16
    for number in range(19):
        stories.decide(headline(number, words=7), number)
    assert stories.memory.next_entry == size + 5
    stories.memory.double()
    assert stories.memory.oldest_entry == 5
    assert stories.decide(headline(0, words=7), 100).scores[0] == 0
    assert stories.decide(headline(18, words=7), 101).stories[0] == 18
    stories.memory.double()
    assert stories.memory.oldest_entry == 5


def test_a_post_that_was_forgotten_has_no_young_story() -> None:
    assert list(Stories().memory.are_young(array("i", [NO_STORY]), 0.0)) == [0]
