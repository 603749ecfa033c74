"""The arithmetic of stories: which one is most like a post. Flat arrays, to be compiled.

Only the newest notes of a term are read, so a post costs the same in a small window and in a large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled
from headwater.dedup.stories_notes import NEXT_NOTE, NONE, NOTE, OLDEST_NOTE, Memory, Rules, found, learn, weigh
from headwater.dedup.stories_terms import MOST_TERMS

# More than the notes that are read for a post of so many terms.
SEATS = 2048
# Whoever reaches what is asked of a post exactly has this score.
HALF = math.log(0.5)


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


class Chains(NamedTuple):
    """The notes of several terms, on the way from the newest back: the next note of each term, and what it says."""

    place: NDArray[np.int32]
    weight: NDArray[np.float32]
    next: NDArray[np.int64]
    note: NDArray[np.void]


class Verdicts(NamedTuple):
    """For each post its story's number and earliest post, the score (0: a new story), and the terms that decided."""

    story: NDArray[np.int32]
    leader: NDArray[np.int64]
    score: NDArray[np.float32]
    shown: NDArray[np.int32]


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
    chains = Chains(
        np.zeros(MOST_TERMS, np.int32),
        np.zeros(MOST_TERMS, np.float32),
        np.zeros(MOST_TERMS, np.int64),
        np.zeros(MOST_TERMS, NOTE),
    )
    for post in range(len(batch.times)):
        places = batch.places[batch.starts[post] : batch.starts[post + 1]]
        weigh(memory, rules, places, batch.weights[batch.starts[post] :], weights)
        order = np.argsort(-weights[: len(places)], kind="mergesort")
        looked_up = order[: how_many_to_look_up(memory, rules, places, weights, order)]
        seated = reach(memory, rules, looked_up, places, weights, chains, tally)
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
        learn(memory, rules, places, weights, looked_up, best, is_new, verdicts.shown[post])


@compiled
def reach(memory: Memory, rules: Rules, looked_up: Any, places: Any, weights: Any, chains: Chains, tally: Tally) -> int:
    """Adds up what the post shares with each story that its terms lead to. Returns how many those are.

    The terms take turns, a note of each: so their notes are fetched from memory at the same time.
    """
    terms, notes = memory.vocabulary.terms, memory.notes
    oldest = max(memory.counts[NEXT_NOTE] - len(notes), memory.counts[OLDEST_NOTE])
    going = 0
    for index in looked_up:
        if terms["newest"][places[index]] >= oldest:
            chains.place[going] = places[index]
            chains.weight[going] = weights[index]
            chains.next[going] = terms["newest"][places[index]]
            going += 1
    seated = 0
    for turn in range(rules.most_notes_per_term):
        for chain in range(going):
            chains.note[chain] = notes[chains.next[chain] & (len(notes) - 1)]
        ready, going = going, 0
        for chain in range(ready):
            place, weight, note = chains.place[chain], chains.weight[chain], chains.note[chain]
            seated = add_up(tally, seated, note["story"], weight * note["weight"], terms["evidence"][place])
            before = chains.next[chain] - np.int64(note["back"])
            if note["back"] != 0 and before >= oldest:
                chains.place[going] = place
                chains.weight[going] = weight
                chains.next[going] = before
                going += 1
            else:
                terms["notes"][place] = turn + 1
    return seated


@compiled
def how_many_to_look_up(memory: Memory, rules: Rules, places: Any, weights: Any, order: Any) -> int:
    """How many terms are looked up, the rarest first: when enough notes are found, the rest is too common for that."""
    most = max(rules.least_notes, rules.notes_per_term * len(order))
    notes = 0
    for looked_up in range(len(order)):
        index = order[looked_up]
        if weights[index] == 0.0 or notes >= most:
            return looked_up
        notes += min(memory.vocabulary.terms["notes"][places[index]], rules.most_notes_per_term)
    return len(order)


@compiled
def add_up(tally: Tally, seated: int, story: int, likeness: float, evidence: float) -> int:
    """Adds what a note says to its story's row. Returns how many rows are taken."""
    row = row_of(tally, story)
    if tally.story[row] == NONE:
        tally.story[row] = story
        tally.likeness[row] = 0.0
        tally.evidence[row] = 0.0
        tally.seat[seated] = row
        seated += 1
    tally.likeness[row] += likeness
    tally.evidence[row] += evidence
    return seated


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
