"""What is remembered of stories, how a post is added and how it is taken out. Flat arrays, to be compiled.

A story is the sum of its posts' terms, each weighed by how rare it was. Its terms are notes in a ring: a term leads to
its newest note, each note to the one before. The oldest notes are written over, so memory has a bound and nothing is
ever cleared away.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled
from headwater.dedup.stories_terms import Vocabulary

SHOWN = 3
NONE = -1
# What `Memory.counts` counts.
NEXT_STORY, NEXT_NOTE, OLDEST_NOTE = range(3)

# What lies together is read together: one line of the processor's cache, not four.
NOTE = np.dtype([("story", np.int32), ("weight", np.float32), ("back", np.uint32)])
STORY = np.dtype(
    [
        ("number", np.int32),
        ("posts", np.int32),
        ("square", np.float64),
        ("first", np.float64),
        ("leader", np.int64),
        ("leader_time", np.float64),
    ]
)


class Memory(NamedTuple):
    """All that is remembered. Stories and notes are in rings whose sizes are powers of two; their numbers go on beyond.

    `counts` are the next story's number, the next note's, and that of the oldest note that may be there; `seen` is how
    many posts there were of late; `meanings` are the sums of the posts' embeddings for each story, of no length where
    there are none.
    """

    vocabulary: Vocabulary
    notes: NDArray[np.void]
    stories: NDArray[np.void]
    counts: NDArray[np.int64]
    seen: NDArray[np.float64]
    meanings: NDArray[np.float32]


class Rules(NamedTuple):
    """What is asked of a post. `short` and `long` are the likeness asked of posts with few and with many terms."""

    threshold: float
    window: float
    short: float = 0.12
    long: float = 0.25
    few_terms: float = 8.0
    many_terms: float = 16.0
    most_posts: int = 1000
    small_story: int = 5
    least_evidence: float = 2.0
    # How many notes are read for a post, rarest terms first: at least, for each of its terms, and at most of one term.
    least_notes: int = 320
    notes_per_term: int = 16
    most_notes_per_term: int = 96
    # Embeddings add so much to a likeness, times by how much the meaning is closer than that of any two posts, but only
    # for stories whose words reach this share of what is asked.
    meaning: float = 0.1
    usual_closeness: float = 0.5
    least_share: float = 0.4
    # Before anything was seen, each term is thought to be one of so many.
    background: float = 10000.0


@compiled
def weigh(memory: Memory, rules: Rules, places: Any, stood: Any, weights: Any) -> None:
    """How much each term of a post counts: the rarer the more. All together have length 1."""
    posts = memory.seen[0] + rules.background
    square = 0.0
    for index in range(len(places)):
        rarity = math.log(posts / (memory.vocabulary.terms["seen"][places[index]] + 1.0))
        weights[index] = stood[index] * max(rarity, 0.0)
        square += weights[index] * weights[index]
    for index in range(len(places)):
        if square > 0.0:
            weights[index] /= math.sqrt(square)


@compiled
def found(memory: Memory, post: int, time: float) -> int:
    """Begins a story."""
    number = memory.counts[NEXT_STORY]
    memory.counts[NEXT_STORY] += 1
    stories = memory.stories
    slot = number & (len(stories) - 1)
    stories["number"][slot] = number
    stories["posts"][slot] = 0
    stories["square"][slot] = 0.0
    stories["first"][slot] = time
    stories["leader"][slot] = post
    stories["leader_time"][slot] = time
    memory.meanings[slot] = 0.0
    return int(number)


@compiled
def learn(
    memory: Memory, rules: Rules, places: Any, weights: Any, looked_up: Any, story: int, is_new: bool, shown: Any
) -> None:
    """Adds a post to its story, and its terms to what is known of how rare terms are. Shows which terms they share."""
    terms, notes = memory.vocabulary.terms, memory.notes
    strongest = np.zeros(SHOWN, np.float64)
    memory.seen[0] += 1.0
    for index in range(len(places)):
        terms["seen"][places[index]] += 1.0
    for index in looked_up:
        at = NONE if is_new else note_of(memory, rules, places[index], story)
        if at == NONE:
            write(memory, places[index], story, weights[index])
        else:
            rank(index, weights[index] * notes["weight"][at], strongest, shown)
            notes["weight"][at] += weights[index]


@compiled
def note_of(memory: Memory, rules: Rules, place: int, story: int) -> int:
    """Where the newest notes of a term speak of a story, or NONE."""
    notes = memory.notes
    oldest = max(memory.counts[NEXT_NOTE] - len(notes), memory.counts[OLDEST_NOTE])
    note = memory.vocabulary.terms["newest"][place]
    for _ in range(rules.most_notes_per_term):
        if note < oldest:
            break
        at = note & (len(notes) - 1)
        if notes["story"][at] == story:
            return int(at)
        if notes["back"][at] == 0:
            break
        note -= np.int64(notes["back"][at])
    return NONE


@compiled
def write(memory: Memory, place: int, story: int, weight: float) -> None:
    """Writes a new note of a term about a story."""
    notes = memory.notes
    note = memory.counts[NEXT_NOTE]
    memory.counts[NEXT_NOTE] += 1
    at = note & (len(notes) - 1)
    newest = memory.vocabulary.terms["newest"][place]
    notes["story"][at] = story
    notes["weight"][at] = weight
    notes["back"][at] = note - newest if newest >= 0 and note - newest < len(notes) else 0
    memory.vocabulary.terms["newest"][place] = note
    memory.vocabulary.terms["notes"][place] = memory.vocabulary.terms["notes"][place] + 1 if notes["back"][at] else 1


@compiled
def rank(index: int, value: float, strongest: Any, shown: Any) -> None:
    """Puts a term among the strongest, if it is one of them."""
    for place in range(SHOWN):
        if value > strongest[place]:
            for lower in range(SHOWN - 1, place, -1):
                strongest[lower] = strongest[lower - 1]
                shown[lower] = shown[lower - 1]
            strongest[place] = value
            shown[place] = index
            return


@compiled
def unlearn(memory: Memory, rules: Rules, places: Any, weights: Any, meaning: Any, story: int) -> None:
    """Takes a post out of a story, as it would be weighed today. What is known of rarity stays."""
    notes, stories = memory.notes, memory.stories
    slot = story & (len(stories) - 1)
    if stories["number"][slot] != story:
        return
    stories["posts"][slot] -= 1
    if stories["posts"][slot] <= 0:
        stories["number"][slot] = NONE
        return
    memory.meanings[slot] -= meaning
    likeness = 0.0
    for index in range(len(places)):
        at = note_of(memory, rules, places[index], story)
        if at != NONE:
            notes["weight"][at] = max(notes["weight"][at] - weights[index], 0.0)
            likeness += weights[index] * notes["weight"][at]
    stories["square"][slot] = max(stories["square"][slot] - 2.0 * likeness - 1.0, float(stories["posts"][slot]))
