"""The room in which stories are remembered: it begins small, grows while all in it is young, and fades with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.stories_kernel import NONE, NOTE, STORY, TERM, Memory

# A story of one post leaves a note per term; later posts add few.
NOTES_PER_STORY = 16
# What was seen fades by this much, so many times in a window: words that everybody used last week are rare again.
FADES_PER_WINDOW = 3
FADE = 2 / 3
# A term that was last seen a window ago has faded to less.
UNSEEN = 0.25


def empty(size: int, dimensions: int) -> Memory:
    """Room for `size` stories, a power of two, with embeddings of so many dimensions (0: none)."""
    stories = np.zeros(size, STORY)
    stories["number"] = NONE
    notes = np.zeros(size * NOTES_PER_STORY, NOTE)
    meanings = np.zeros((size, dimensions), np.float32)
    return Memory(np.zeros(0, TERM), notes, stories, np.zeros(2, np.int64), np.zeros(1, np.float64), meanings)


def with_terms(memory: Memory, evidence: list[float], known: int) -> Memory:
    """With places for new terms behind the `known` ones, and half as many again for those to come."""
    wanted = known + len(evidence)
    if wanted > len(memory.terms):
        terms = np.zeros(wanted + wanted // 2, TERM)
        terms[:known] = memory.terms[:known]
        memory = memory._replace(terms=terms)
    memory.terms["newest"][known:wanted] = NONE
    memory.terms["evidence"][known:wanted] = evidence
    return memory


def fits(memory: Memory, new_stories: int, new_notes: int, since: float) -> bool:
    """Whether so many more write over nothing that began after `since`."""
    stories, notes = (int(count) for count in memory.counts)
    story_lost = stories + new_stories - 1 - len(memory.stories)
    if story_lost >= 0 and is_young(memory, story_lost, since):
        return False
    note_lost = notes + new_notes - 1 - len(memory.notes)
    return note_lost < 0 or not is_young(memory, int(memory.notes["story"][note_lost % len(memory.notes)]), since)


def doubled(memory: Memory) -> Memory:
    """With twice the room for stories and notes, all of them kept."""
    stories, notes = (int(count) for count in memory.counts)
    larger = _unrolled(memory.stories, stories)
    unused = np.arange(stories, max(0, stories - len(memory.stories)) + len(larger)) % len(larger)
    larger["number"][unused] = NONE
    meanings = _unrolled(memory.meanings, stories)
    return memory._replace(stories=larger, notes=_unrolled(memory.notes, notes), meanings=meanings)


def fade(memory: Memory, times: int) -> None:
    """Makes what was seen count less."""
    memory.terms["seen"] *= FADE**times
    memory.seen[:] *= FADE**times


def terms_in_use(memory: Memory, known: int) -> NDArray[np.int64]:
    """The places of the terms that were seen within the window."""
    return np.flatnonzero(memory.terms["seen"][:known] >= UNSEEN)


def is_young(memory: Memory, number: int, since: float) -> bool:
    """Whether a story is still there and began after `since`."""
    story = memory.stories[number % len(memory.stories)]
    return bool(story["number"] == number and story["first"] >= since)


def _unrolled(ring: NDArray[Any], written: int) -> NDArray[Any]:
    """A ring of twice the size with the same numbered things in it; `written` is the next number."""
    numbers = np.arange(max(0, written - len(ring)), written)
    larger = np.zeros((2 * len(ring), *ring.shape[1:]), ring.dtype)
    larger[numbers % len(larger)] = ring[numbers % len(ring)]
    return larger
