"""The arithmetic of stories: which one is most like a post, and what it learns from it. Flat arrays, to be compiled.

A story is the sum of its posts' terms, each weighed by how rare it was. Its terms are notes in a ring: a term leads to
its newest note, each note to the one before. The oldest notes are written over, so memory has a bound and nothing is
ever cleared away. Only the newest notes of a term are read, so a post costs the same in a small window and in a large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled
from headwater.dedup.stories_terms import MOST_TERMS

SHOWN = 3
NONE = -1
# More than the notes that are read for a post of so many terms.
SEATS = 2048
# Whoever reaches what is asked of a post exactly has this score.
HALF = math.log(0.5)


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
TERM = np.dtype([("newest", np.int64), ("seen", np.float32), ("evidence", np.float32)])


class Memory(NamedTuple):
    """All that is remembered. Stories and notes are in rings whose sizes are powers of two; their numbers go on beyond.

    `counts` are the next story's number and the next note's; `seen` is how many posts there were of late;
    `meanings` are the sums of the posts' embeddings for each story, of no length where there are none.
    """

    terms: NDArray[np.void]
    notes: NDArray[np.void]
    stories: NDArray[np.void]
    counts: NDArray[np.int64]
    seen: NDArray[np.float64]
    meanings: NDArray[np.float32]


class Batch(NamedTuple):
    """Posts as terms: those of post `i` are `places[starts[i]:starts[i + 1]]`; `weights` say where each stood."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.int32]
    weights: NDArray[np.float32]
    times: NDArray[np.float64]
    # stories that the posts may not join
    barred: NDArray[np.int32]
    meanings: NDArray[np.float32]


class Tally(NamedTuple):
    """What a post shares with each story that its terms lead to: a small table, so that adding up stays in the cache.

    `seat` says which rows are taken, in the order in which that happened.
    """

    story: NDArray[np.int32]
    likeness: NDArray[np.float32]
    evidence: NDArray[np.float32]
    seat: NDArray[np.int32]


class Verdicts(NamedTuple):
    """For each post its story's number and earliest post, the score (0: a new story), and the terms that decided."""

    story: NDArray[np.int32]
    leader: NDArray[np.int64]
    score: NDArray[np.float32]
    shown: NDArray[np.int32]


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
def decide(memory: Memory, rules: Rules, batch: Batch, verdicts: Verdicts) -> None:
    """Decides about the posts of a batch, one after the other, and remembers each."""
    stories = memory.stories
    weights = np.zeros(MOST_TERMS, np.float64)
    tally = Tally(
        np.full(SEATS, NONE, np.int32),
        np.zeros(SEATS, np.float32),
        np.zeros(SEATS, np.float32),
        np.zeros(SEATS, np.int32),
    )
    for post in range(len(batch.times)):
        places = batch.places[batch.starts[post] : batch.starts[post + 1]]
        weigh(memory, rules, places, batch.weights[batch.starts[post] :], weights)
        order = np.argsort(-weights[: len(places)], kind="mergesort")
        seated, looked_up = reach(memory, rules, places, weights, order, tally)
        best, likeness, score = most_alike(memory, rules, batch, post, len(places), tally, seated)
        tally.story[tally.seat[:seated]] = NONE
        is_new = best == NONE
        if is_new:
            best = found(memory, batch.ids[post], batch.times[post])
        slot = best & (len(stories) - 1)
        verdicts.story[post] = best
        verdicts.score[post] = score
        verdicts.leader[post] = stories["leader"][slot]
        if batch.times[post] < stories["leader_time"][slot]:
            stories["leader"][slot] = batch.ids[post]
            stories["leader_time"][slot] = batch.times[post]
        stories["posts"][slot] += 1
        stories["square"][slot] += 2.0 * likeness + 1.0
        memory.meanings[slot] += batch.meanings[post]
        learn(memory, rules, places, weights, order[:looked_up], best, is_new, verdicts.shown[post])


@compiled
def weigh(memory: Memory, rules: Rules, places: Any, stood: Any, weights: Any) -> None:
    """How much each term of a post counts: the rarer the more. All together have length 1."""
    posts = memory.seen[0] + rules.background
    square = 0.0
    for index in range(len(places)):
        rarity = math.log(posts / (memory.terms["seen"][places[index]] + 1.0))
        weights[index] = stood[index] * max(rarity, 0.0)
        square += weights[index] * weights[index]
    for index in range(len(places)):
        if square > 0.0:
            weights[index] /= math.sqrt(square)


@compiled
def reach(memory: Memory, rules: Rules, places: Any, weights: Any, order: Any, tally: Tally) -> tuple[int, int]:
    """Adds up what the post shares with each story that its terms lead to; how many those are, and how many terms.

    The rarest term leads first. When enough notes have been read, the rest of the terms is too common to be looked up.
    """
    terms, notes = memory.terms, memory.notes
    oldest = max(memory.counts[1] - len(notes), 0)
    most = max(rules.least_notes, rules.notes_per_term * len(order))
    seated = 0
    read = 0
    for looked_up in range(len(order)):
        index = order[looked_up]
        if weights[index] == 0.0 or read >= most:
            return seated, looked_up
        note = terms["newest"][places[index]]
        evidence = terms["evidence"][places[index]]
        for _ in range(rules.most_notes_per_term):
            if note < oldest:
                break
            read += 1
            at = note & (len(notes) - 1)
            row = row_of(tally, notes["story"][at])
            if tally.story[row] == NONE:
                tally.story[row] = notes["story"][at]
                tally.likeness[row] = 0.0
                tally.evidence[row] = 0.0
                tally.seat[seated] = row
                seated += 1
            tally.likeness[row] += weights[index] * notes["weight"][at]
            tally.evidence[row] += evidence
            if notes["back"][at] == 0:
                break
            note -= np.int64(notes["back"][at])
    return seated, len(order)


@compiled
def row_of(tally: Tally, story: int) -> int:
    """The row of a story, or the free one that it would take."""
    row = (story * 40503) & (SEATS - 1)
    while tally.story[row] != NONE and tally.story[row] != story:
        row = (row + 1) & (SEATS - 1)
    return row


@compiled
def most_alike(
    memory: Memory, rules: Rules, batch: Batch, post: int, terms: int, tally: Tally, seated: int
) -> tuple[int, float, float]:
    """The story that is most like a post of so many terms, if it is enough; what they share, and the score.

    Posts of many terms are compared with each post of a story: the likeness is the average. Headlines of one story
    often share words only with the story as a whole: posts of few terms are compared with its sum.
    """
    stories, time = memory.stories, batch.times[post]
    with_meaning = batch.meanings.shape[1] > 0
    bonus = rules.meaning * (1.0 - rules.usual_closeness) if with_meaning else 0.0
    share = min(max((terms - rules.few_terms) / (rules.many_terms - rules.few_terms), 0.0), 1.0)
    asked = rules.short + (rules.long - rules.short) * share
    # What the threshold asks at least; a score of one half is a likeness of `asked`.
    highest = asked ** (math.log(rules.threshold) / HALF)
    best = NONE
    shared = 0.0
    for row in tally.seat[:seated]:
        # A story's length is at least 1: most stories need not even be looked at.
        if tally.likeness[row] + bonus < highest:
            continue
        number = tally.story[row]
        story = stories[number & (len(stories) - 1)]
        size = story["posts"]
        if story["number"] != number or size >= rules.most_posts or abs(time - story["first"]) > rules.window:
            continue
        if size < rules.small_story and tally.evidence[row] < rules.least_evidence:
            continue
        value = tally.likeness[row] / (story["square"] ** (0.5 * (1.0 - share)) * size**share)
        if with_meaning and value >= rules.least_share * asked:
            closeness = close(memory.meanings[number & (len(stories) - 1)], batch.meanings[post])
            value += rules.meaning * (closeness - rules.usual_closeness)
        if value > highest or (value == highest and (best == NONE or number < best)):
            if len(batch.barred) and (batch.barred == number).any():
                continue
            highest = value
            best = number
            shared = tally.likeness[row]
    if best == NONE:
        return NONE, 0.0, 0.0
    return best, shared, min(highest, 1.0) ** (HALF / math.log(asked))


@compiled
def close(story: Any, post: Any) -> float:
    """The cosine of the angle between a story's meaning and a post's."""
    product = square = length = 0.0
    for index in range(len(post)):
        product += story[index] * post[index]
        square += story[index] * story[index]
        length += post[index] * post[index]
    return product / math.sqrt(square * length) if square * length > 0.0 else 0.0


@compiled
def found(memory: Memory, post: int, time: float) -> int:
    """Begins a story."""
    number = memory.counts[0]
    memory.counts[0] += 1
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
    terms, notes = memory.terms, memory.notes
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
    oldest = max(memory.counts[1] - len(notes), 0)
    note = memory.terms["newest"][place]
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
    note = memory.counts[1]
    memory.counts[1] += 1
    at = note & (len(notes) - 1)
    newest = memory.terms["newest"][place]
    notes["story"][at] = story
    notes["weight"][at] = weight
    notes["back"][at] = note - newest if newest >= 0 and note - newest < len(notes) else 0
    memory.terms["newest"][place] = note


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
