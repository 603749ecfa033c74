"""The room in which stories are remembered: it begins small, grows while all in it is young, and fades with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.stories_notes import NONE, NOTE, OLDEST_NOTE, STORY, Memory
from headwater.dedup.stories_places import grown, has_room, slots_for
from headwater.dedup.stories_terms import TERM, Vocabulary

# A story of one post leaves a note per term; later posts add few.
NOTES_PER_STORY = 16
# What was seen fades by this much, so many times in a window: words that everybody used last week are rare again.
FADES_PER_WINDOW = 3
FADE = 2 / 3
# A term that was last seen a window ago has faded to less.
UNSEEN = 0.25


def empty(size: int, dimensions: int) -> Memory:
    """Room for `size` stories, a power of two, with embeddings of so many dimensions (0: none)."""
    return Memory(
        vocabulary=vocabulary(np.zeros(0, TERM)),
        notes=np.zeros(size * NOTES_PER_STORY, NOTE),
        stories=_no_stories(size),
        counts=np.zeros(3, np.int64),
        seen=np.zeros(1),
        meanings=np.zeros((size, dimensions), np.float32),
    )


def vocabulary(terms: NDArray[np.void]) -> Vocabulary:
    """The terms, and the table in which to find them."""
    slots = slots_for(terms["key"], len(terms), len(terms))
    return Vocabulary(terms, slots, np.array([len(terms)], np.int64))


def with_room_for_terms(known: Vocabulary, new: int) -> Vocabulary:
    """With places for so many new terms, and a quarter more for those to come."""
    wanted = int(known.size[0]) + new
    if wanted > len(known.terms):
        known = known._replace(terms=grown(known.terms, wanted + wanted // 4))
    if not has_room(known.slots, wanted):
        known = known._replace(slots=slots_for(known.terms["key"], int(known.size[0]), wanted))
    return known


def fits(memory: Memory, new_stories: int, new_notes: int, since: float) -> bool:
    """Whether so many more write over nothing that began after `since`."""
    stories, notes, _ = memory.counts.tolist()
    story_lost = stories + new_stories - 1 - len(memory.stories)
    if story_lost >= 0 and is_young(memory, story_lost, since):
        return False
    note_lost = notes + new_notes - 1 - len(memory.notes)
    return note_lost < 0 or not is_young(memory, int(memory.notes["story"][note_lost % len(memory.notes)]), since)


def doubled(memory: Memory) -> Memory:
    """With twice the room for stories and notes, all of them kept."""
    stories, notes, _ = memory.counts.tolist()
    memory.counts[OLDEST_NOTE] = max(notes - len(memory.notes), int(memory.counts[OLDEST_NOTE]))
    size, dimensions = memory.meanings.shape
    return memory._replace(
        stories=_unrolled(memory.stories, _no_stories(2 * size), stories),
        notes=_unrolled(memory.notes, np.zeros(2 * len(memory.notes), NOTE), notes),
        meanings=_unrolled(memory.meanings, np.zeros((2 * size, dimensions), np.float32), stories),
    )


def fade(memory: Memory, times: int) -> None:
    """Makes what was seen count less."""
    memory.vocabulary.terms["seen"] *= FADE**times
    memory.seen[:] *= FADE**times


def without_unseen_terms(known: Vocabulary) -> Vocabulary:
    """Only the terms that were seen within the window. They move up and keep their order."""
    terms = known.terms[: known.size[0]]
    return vocabulary(terms[terms["seen"] >= UNSEEN])


def are_young(memory: Memory, numbers: NDArray[np.int32], since: float) -> NDArray[np.bool_]:
    """Which stories are still there and began after `since`."""
    stories = memory.stories[numbers % len(memory.stories)]
    return np.asarray((numbers != NONE) & (stories["number"] == numbers) & (stories["first"] >= since))


def is_young(memory: Memory, number: int, since: float) -> bool:
    return bool(are_young(memory, np.array([number], np.int32), since)[0])


def _no_stories(size: int) -> NDArray[np.void]:
    stories = np.zeros(size, STORY)
    stories["number"] = NONE
    return stories


def _unrolled(ring: NDArray[Any], larger: NDArray[Any], written: int) -> NDArray[Any]:
    """A ring of twice the size with the same numbered things in it; `written` is the next number."""
    size = len(ring)
    laps, at = divmod(written, size)
    this_lap = laps % 2 * size
    larger[this_lap : this_lap + at] = ring[:at]
    if laps:
        last_lap = size - this_lap
        larger[last_lap + at : last_lap + size] = ring[at:]
    return larger
