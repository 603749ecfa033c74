"""The part of the fast index that runs compiled: spell a post, find its keys, find its leader, or make it one.

All state lies in arrays that `fast.py` owns and makes large enough beforehand; nothing here allocates.
"""

# ruff: noqa: SIM110 -- numba compiles loops, and no generators

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headwater.dedup.compiled import compiled
from headwater.dedup.index import COUNTERS, LEAD, LEADERS_PER_KEY, MOST_COMPARED, MOST_PAIRS, MOST_RUN_KEYS
from headwater.dedup.kernels import (
    ARTICLE,
    BY_LINK,
    GONE,
    IS_LIGHT,
    Found,
    Shape,
    Words,
    compact_hash,
    content,
    difference,
    double_size,
    mix,
    read_words,
    sample,
)
from headwater.dedup.repeats import LEAST_CONTENT, LONG, MOST_RUNS, NUMBERED
from headwater.dedup.spelling import spell

MOST_KEYS = 2 + max(MOST_PAIRS, MOST_RUN_KEYS)
MOST_CANDIDATES = MOST_KEYS * LEADERS_PER_KEY
# numba keeps the width of a number that comes out of an array, unless told otherwise.
_wide: Any = np.int64
_EMPTY = np.uint64(0)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_COUNTERS = np.uint64(COUNTERS)

LEADER = np.dtype(
    [
        ("post", np.int64),
        ("created_at", np.float64),
        ("whole", np.uint64),
        ("mentions", np.uint64),
        ("start", np.int64),
        ("end", np.int64),
        ("words", np.int32),
        ("head", np.int32),
        ("tail", np.int32),
        ("runs", np.int32),
        ("kept", np.int32),
        ("flags", np.int32),
    ]
)
# What is answered instead of a leader's number.
ALONE, LEADS = -1, -2
# Places in `State.used`.
LEADERS, BYTES, RUNS, CELLS = range(4)


class State(NamedTuple):
    """Everything that is remembered. `used` says how much of each array is in use.

    `cells` is a hash table: a cell has half a key above, and a leader's number plus one below. `seen` counts pairs.
    """

    leaders: Any
    text: Any
    runs: Any
    cells: Any
    seen: Any
    used: Any


class Tables(NamedTuple):
    """What never changes: kinds of characters, light and turning words; how far apart, how much alike."""

    classes: Any
    known: Any
    known_kinds: Any
    window: float
    threshold: float


class Batch(NamedTuple):
    """Posts to decide. `codes` are their characters; `bounds` where head, body and tail of each begin and end."""

    codes: Any
    bounds: Any
    ids: Any
    created_at: Any
    mentions: Any
    links: Any
    flags: Any
    apart: Any
    apart_bounds: Any


class Room(NamedTuple):
    """Space to work in, for one post at a time: its words, a leader's words, runs, keys, candidates."""

    words: Words
    others: Words
    runs: Any
    keys: Any
    rarity: Any
    numbers: Any
    shared: Any


class Answers(NamedTuple):
    """For each post the number of its leader (-1: none, -2: it leads now), and what differs between them."""

    leaders: Any
    counts: Any
    overlaps: Any


@compiled
def decide_all(state: State, tables: Tables, batch: Batch, room: Room, answers: Answers) -> None:
    for at in range(len(batch.ids)):
        answers.leaders[at] = ALONE
        shape, end = read_post(state, tables, batch, room, at)
        kept = sample(room.words, shape.size, room.runs) if shape.flags & ARTICLE else 0
        keys = find_keys(state, batch, room, shape, kept, at)
        if keys == 0:
            continue
        shape = with_whole(shape, room.keys[0], keys)
        found = choose(state, tables, batch, room, answers, shape, kept, keys, at)
        if not found:
            lead(state, batch, room, shape, kept, keys, end, at)
            answers.leaders[at] = LEADS


@compiled
def read_post(state: State, tables: Tables, batch: Batch, room: Room, at: int) -> tuple[Shape, int]:
    """Writes the words of a post behind the text in use, and reads them. Returns its shape and where it ends."""
    first = state.used[BYTES]
    bounds = batch.bounds[at]
    end, head = spell(batch.codes, bounds[0], bounds[1], tables.classes, state.text, first, first)
    end, _ = spell(batch.codes, bounds[1], bounds[2], tables.classes, state.text, end, first)
    end, tail = spell(batch.codes, bounds[2], bounds[3], tables.classes, state.text, end, first)
    count = read_words(state.text, first, end, room.words, tables.known, tables.known_kinds)
    flags = _wide(batch.flags[at])
    if double_size(room.words, count) >= 2 * LONG:
        flags |= ARTICLE
    return Shape(count, count, head, tail, flags, batch.mentions[at], compact_hash(state.text, first, end)), end


@compiled
def find_keys(state: State, batch: Batch, room: Room, shape: Shape, kept: int, at: int) -> int:
    """What a post is found by, the whole text first. Returns how many keys there are; 0: it is never compared."""
    if content(room.words, shape.size - shape.tail, LEAST_CONTENT) < LEAST_CONTENT:
        if batch.links[at] == _EMPTY or shape.size == 0:
            return 0
        room.keys[0] = mix(mix(_EMPTY, shape.whole), batch.links[at])
        return 1
    room.keys[0] = shape.whole
    room.keys[1] = lead_key(room.words, shape.size)
    if shape.flags & ARTICLE:
        keys = min(kept, MOST_RUN_KEYS)
        room.keys[2 : 2 + keys] = room.runs[:keys]
        return 2 + keys
    return 2 + rarest_pairs(state, room, shape.size)


@compiled
def lead_key(words: Words, count: int) -> Any:
    """The first words that are not light."""
    value, taken = _EMPTY, 0
    for at in range(count):
        if words.kinds[at] & IS_LIGHT:
            continue
        value = mix(value, words.hashes[at])
        taken += 1
        if taken == LEAD:
            break
    return value


@compiled
def rarest_pairs(state: State, room: Room, count: int) -> int:
    """Counts the pairs of neighbours, light words left out, and puts the rarest ones among the keys."""
    words, seen = room.words, state.seen
    before = _EMPTY
    for at in range(count):
        if not words.kinds[at] & IS_LIGHT:
            if before != _EMPTY:
                seen[mix(mix(_EMPTY, before), words.hashes[at]) % _COUNTERS] += 1
            before = words.hashes[at]
    before = _EMPTY
    kept = 0
    for at in range(count):
        if not words.kinds[at] & IS_LIGHT:
            if before != _EMPTY:
                kept = keep_rare(room, seen, mix(mix(_EMPTY, before), words.hashes[at]), kept)
            before = words.hashes[at]
    return kept


@compiled
def keep_rare(room: Room, seen: Any, pair: Any, kept: int) -> int:
    """Puts a pair in its place among the rarest so far, behind the first two keys."""
    times = seen[pair % _COUNTERS]
    place = kept
    for each in range(kept):
        if room.keys[2 + each] == pair:
            return kept
        if place == kept and (times < room.rarity[each] or (times == room.rarity[each] and pair < room.keys[2 + each])):
            place = each
    if place == MOST_PAIRS:
        return kept
    kept = min(kept + 1, MOST_PAIRS)
    for each in range(kept - 1, place, -1):
        room.keys[2 + each] = room.keys[1 + each]
        room.rarity[each] = room.rarity[each - 1]
    room.keys[2 + place] = pair
    room.rarity[place] = times
    return kept


@compiled
def with_whole(shape: Shape, whole: Any, keys: int) -> Shape:
    flags = shape.flags | BY_LINK if keys == 1 else shape.flags
    return Shape(shape.size, shape.total, shape.head, shape.tail, flags, shape.mentions, whole)


@compiled
def find_candidates(state: State, room: Room, keys: int) -> int:
    """Puts the leaders that share keys into `room.numbers`, and how many into `room.shared`. Returns how many."""
    count = 0
    mask = len(state.cells) - 1
    for each in range(keys):
        half = room.keys[each] >> _HALF
        cell = _wide(half) & mask
        while state.cells[cell] != _EMPTY:
            if state.cells[cell] >> _HALF == half:
                count = note(room, _wide(state.cells[cell] & _LOW) - 1, count)
            cell = (cell + 1) & mask
    return count


@compiled
def note(room: Room, number: int, count: int) -> int:
    for each in range(count):
        if room.numbers[each] == number:
            room.shared[each] += 1
            return count
    if count == MOST_CANDIDATES:
        return count
    room.numbers[count] = number
    room.shared[count] = 1
    return count + 1


@compiled
def next_candidate(room: Room, count: int) -> int:
    """The leader that shares most keys and was not taken yet, the earlier first among equals; -1: no more."""
    best = -1
    for each in range(count):
        if room.shared[each] > 0 and (
            best < 0
            or room.shared[each] > room.shared[best]
            or (room.shared[each] == room.shared[best] and room.numbers[each] < room.numbers[best])
        ):
            best = each
    if best < 0:
        return -1
    room.shared[best] = 0
    return int(room.numbers[best])


@compiled
def choose(
    state: State,
    tables: Tables,
    batch: Batch,
    room: Room,
    answers: Answers,
    shape: Shape,
    kept: int,
    keys: int,
    at: int,
) -> bool:
    """Compares a post with the leaders that share most keys with it, and answers with the one that is most like it."""
    count = find_candidates(state, room, keys)
    highest = -1.0
    compared = 0
    while compared < MOST_COMPARED and highest < 1.0:
        number = next_candidate(room, count)
        if number < 0:
            break
        leader = state.leaders[number]
        if leader.flags & GONE:
            continue
        compared += 1
        if abs(leader.created_at - batch.created_at[at]) > tables.window or is_apart(batch, at, leader.post):
            continue
        if (leader.flags | shape.flags) & BY_LINK:
            if leader.flags & shape.flags & BY_LINK and leader.whole == shape.whole:
                answer(answers, at, number, Found(True, 0, 0, 0, False, 0.0), 0)
                return True
            continue
        found = compared_with(state, tables, room, shape, kept, number)
        words = min(shape.total, _wide(leader.words))
        likeness = score(found, words)
        if found.same and likeness >= tables.threshold and likeness > highest:
            highest = likeness
            answer(answers, at, number, found, words)
    return highest >= 0.0


@compiled
def is_apart(batch: Batch, at: int, post: int) -> bool:
    for each in range(batch.apart_bounds[at], batch.apart_bounds[at + 1]):
        if batch.apart[each] == post:
            return True
    return False


@compiled
def compared_with(state: State, tables: Tables, room: Room, shape: Shape, kept: int, number: int) -> Found:
    leader = state.leaders[number]
    count = read_words(state.text, leader.start, leader.end, room.others, tables.known, tables.known_kinds)
    other = Shape(
        count,
        _wide(leader.words),
        _wide(leader.head),
        _wide(leader.tail),
        _wide(leader.flags),
        leader.mentions,
        leader.whole,
    )
    first = _wide(leader.runs) * MOST_RUNS
    runs = state.runs[first : first + MOST_RUNS]
    return difference(room.words, shape, room.runs, kept, room.others, other, runs, _wide(leader.kept))


@compiled
def score(found: Found, words: int) -> float:
    if found.overlap > 0.0:
        return round(found.overlap, 3)
    return round(max(0.0, 1 - (0.5 * found.slips + 0.5 * found.light) / max(words, 1)), 3)


@compiled
def answer(answers: Answers, at: int, number: int, found: Found, words: int) -> None:
    answers.leaders[at] = number
    answers.counts[at, 0] = found.slips
    answers.counts[at, 1] = found.light
    answers.counts[at, 2] = found.rest
    answers.counts[at, 3] = found.cut
    answers.counts[at, 4] = words
    answers.overlaps[at] = found.overlap


@compiled
def lead(state: State, batch: Batch, room: Room, shape: Shape, kept: int, keys: int, end: int, at: int) -> None:
    """Remembers a post as a leader. Of an article, its beginning and its runs are enough."""
    number = state.used[LEADERS]
    leader = state.leaders[number]
    if shape.size >= NUMBERED:
        end = room.words.ends[NUMBERED - 1]
    leader.post, leader.created_at = batch.ids[at], batch.created_at[at]
    leader.whole, leader.mentions = shape.whole, shape.mentions
    leader.start, leader.end = state.used[BYTES], end
    leader.words, leader.head, leader.tail = shape.total, shape.head, shape.tail
    leader.flags, leader.kept, leader.runs = shape.flags, kept, 0
    if kept:
        first = state.used[RUNS] * MOST_RUNS
        state.runs[first : first + kept] = room.runs[:kept]
        leader.runs = state.used[RUNS]
        state.used[RUNS] += 1
    state.used[LEADERS] += 1
    state.used[BYTES] = end
    for each in range(keys):
        insert(state, room.keys[each], number)


@compiled
def insert(state: State, key: Any, number: int) -> None:
    if put(state.cells, key >> _HALF, number):
        state.used[CELLS] += 1


@compiled
def put(cells: Any, half: Any, number: int) -> bool:
    """Makes a leader known by half a key. A key that has enough leaders forgets its oldest; then no cell is used up."""
    mask = len(cells) - 1
    cell = _wide(half) & mask
    oldest, known = cell, 0
    while cells[cell] != _EMPTY:
        if cells[cell] >> _HALF == half:
            if known == 0 or cells[cell] < cells[oldest]:
                oldest = cell
            known += 1
        cell = (cell + 1) & mask
    full = known == LEADERS_PER_KEY
    cells[oldest if full else cell] = (half << _HALF) | np.uint64(number + 1)
    return not full


@compiled
def rehash(cells: Any, renumbered: Any, into: Any) -> int:
    """Puts what is in one table into another. `renumbered` says each leader's new number; -1: it is gone."""
    used = 0
    for each in range(len(cells)):
        if cells[each] == _EMPTY:
            continue
        number = renumbered[_wide(cells[each] & _LOW) - 1]
        if number >= 0 and put(into, cells[each] >> _HALF, number):
            used += 1
    return used


@compiled
def gather(state: State, kept: Any) -> None:
    """Moves the leaders whose numbers are in `kept` to the front, with their texts and runs."""
    text, runs = 0, 0
    for number in range(len(kept)):
        leader = state.leaders[kept[number]]
        start, length = leader.start, leader.end - leader.start
        for step in range(length):
            state.text[text + step] = state.text[start + step]
        leader.start, leader.end = text, text + length
        text += length
        if leader.kept:
            first = _wide(leader.runs) * MOST_RUNS
            for step in range(leader.kept):
                state.runs[runs * MOST_RUNS + step] = state.runs[first + step]
            leader.runs = runs
            runs += 1
        state.leaders[number] = state.leaders[kept[number]]
    state.used[LEADERS], state.used[BYTES], state.used[RUNS] = len(kept), text, runs
