"""What is remembered of stories.

A story is the sum of its posts' terms, each weighed by how rare it was. Each term has a posting list: entries that say
in which story it occurs and with what weight, the newest first. All entries lie in one ring, in which an entry says how
far back the one before it is. The oldest entries are written over, so memory has a bound and nothing is ever cleared
away. Only the newest entries of a term are read, so a post costs the same in a small window and in a large.

Two stories that turn out to be one become one: what is known of the younger then counts for the older.
`story_choice.py` decides. The C types are in `story_memory.pxd`. Sums of small floats are kept in rows of small floats
even where a variable would do, so that Python rounds as C does.
"""

from __future__ import annotations

from array import array

from headwater.dedup.arrays import HashTable, Row, grown, seen_as, shrunk, unrolled, zeros
from headwater.dedup.story_rules import LOGS, MOST_TERMS, StoryRules
from headwater.dedup.story_terms import StoryBatch

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from math import log, sqrt

SHOWN = 3
NONE = -1
# A story of one post leaves an entry per term; later posts add few.
ENTRIES_PER_STORY = 16
# What was seen fades by this much, so many times in a window: words that everybody used last week are rare again.
FADES_PER_WINDOW = 3
FADE = 2 / 3
# So many posts have to be remembered to know which words are common; before that, nothing fades.
ENOUGH_SEEN = 10000.0
# A term that was last seen a window ago has faded to less.
UNSEEN = 0.25
# More rows than entries are read for a post.
TALLY_ROWS = 2048

# What lies together is read together, in one line of the processor's cache. A term is a record of 16 bytes: its newest
# entry (64 bits), how often it was seen of late (a small float) and how many entries can be read (32 bits).
TERM, SEEN, LENGTH = 2, 2, 3
# An entry is three numbers of 32 bits, of which the second is a small float.
ENTRY, STORY, WEIGHT, BACK = 3, 0, 1, 2
# A story is six numbers of 64 bits, of which the last is two of 32 bits.
RECORD, LEADER, SQUARE, FIRST, LEADER_TIME, SOURCE = 6, 0, 1, 2, 3, 4
NUMBER, POSTS = 10, 11
# Instead of the one source that all posts of a story are from.
SEVERAL = 0
# A story that has become part of another (its leader then is that one's number); one that may not.
MOVED, GUARDED = 1, 2
# Behind these bits of its flags, a story has the number of its language, or 0.
FLAG_BITS = 2


class StoryMemory:
    """All that is remembered. Stories and entries are in rings, whose sizes are powers of two; their numbers go on.

    Rows that begin with the same word are the same memory, seen as numbers of several kinds. `meanings` are the sums of
    the posts' embeddings for each story, of no length where there are none.
    """

    def __init__(self, rules: StoryRules, size: int, dimensions: int) -> None:
        """Room for `size` stories, a power of two, with embeddings of so many dimensions (0: none)."""
        self.threshold, self.window, self.background = rules.threshold, rules.window, rules.background
        self.short, self.long, self.signs = rules.short, rules.long, rules.signs
        self.few_terms, self.many_terms = rules.few_terms, rules.many_terms
        self.odds, self.long_odds = array("d", rules.odds), array("d", rules.long_odds)
        self.meeting_odds, self.nearly_second = array("d", rules.meeting_odds), rules.nearly_second
        self.nearly, self.bridge, self.meeting = rules.nearly, rules.bridge, rules.meeting
        self.everyday_share, self.least_everyday = rules.everyday_share, rules.least_everyday
        self.most_everyday = rules.most_everyday
        self.everyday, self.everyday_posts = rules.everyday, rules.everyday_posts
        self.side_by_side = rules.side_by_side
        self.most_posts = rules.most_posts
        self.least_evidence, self.least_at_first = rules.least_evidence, rules.least_at_first
        self.least_share = rules.least_share
        self.least_entries, self.entries_per_term = rules.least_entries, rules.entries_per_term
        self.most_entries_per_term = rules.most_entries_per_term
        self.meaning, self.usual_closeness = rules.meaning, rules.usual_closeness
        self.terms = 0
        self.next_story = self.next_entry = self.oldest_entry = 0
        self.posts_seen = self.posts_joined = 0.0
        self.dimensions = dimensions
        self._use_terms(zeros("q", TERM))
        self._use_entries(zeros("i", size * ENTRIES_PER_STORY * ENTRY))
        self._use_stories(no_stories(size))
        self.meanings, self.story_flags = zeros("f", size * dimensions), zeros("i", size)
        self.bridges, self.bridge_sums = HashTable(), zeros("f", 1)
        self._make_room_to_work()

    def _make_room_to_work(self) -> None:
        """For one post at a time: its weights and their order, the tally, and the lists on the way from the newest."""
        self.post_weights, self.order = array("d", bytes(8 * MOST_TERMS)), array("i", bytes(4 * MOST_TERMS))
        self.tally_story = array("i", [NONE]) * TALLY_ROWS
        self.tally_likeness = array("f", bytes(4 * TALLY_ROWS))
        self.tally_evidence, self.tally_specific = (array("f", bytes(4 * TALLY_ROWS)) for _ in range(2))
        self.tally_rarest, self.tally_outside, self.tally_value = (array("f", bytes(4 * TALLY_ROWS)) for _ in range(3))
        self.tally_rows, self.alike_rows = (array("i", bytes(4 * TALLY_ROWS)) for _ in range(2))
        self.tally_terms = array("Q", bytes(8 * TALLY_ROWS))
        self.list_term, self.list_story, self.list_back = (array("i", bytes(4 * MOST_TERMS)) for _ in range(3))
        self.list_weight, self.list_evidence, self.list_share = (array("f", bytes(4 * MOST_TERMS)) for _ in range(3))
        self.list_value, self.list_seen = (array("f", bytes(4 * MOST_TERMS)) for _ in range(2))
        self.telling, self.at_first = (array("f", bytes(4 * MOST_TERMS)) for _ in range(2))
        self.list_entry, self.list_going = array("q", bytes(8 * MOST_TERMS)), array("i", bytes(4 * MOST_TERMS))
        self.strongest, self.logs = array("d", bytes(8 * SHOWN)), array("d", bytes(8 * LOGS))
        self.best = self.second = NONE
        self.likeness = self.score = self.second_score = self.share = 0.0

    def _use_terms(self, rows: Row) -> None:
        self.term_newest = rows
        self.term_seen, self.term_lengths = (seen_as(kind, rows) for kind in "fi")

    def _use_entries(self, rows: Row) -> None:
        self.entries, self.entry_weights = rows, seen_as("f", rows)
        self.last_entry = len(rows) // ENTRY - 1

    def _use_stories(self, rows: Row) -> None:
        self.story_leaders = rows
        self.story_sums, self.story_numbers = (seen_as(kind, rows) for kind in "di")
        self.last_story = len(rows) // RECORD - 1

    def __len__(self) -> int:
        """How many stories there is room for."""
        return self.last_story + 1

    def make_room_for_terms(self, count: int) -> None:
        """Makes room for the terms of a vocabulary of so many."""
        if count * TERM > len(self.term_newest):
            self._use_terms(grown(self.term_newest, "q", (count + count // 4) * TERM))
        for term in range(self.terms, count):
            self.term_newest[term * TERM] = NONE
            self.term_seen[2 * TERM * term + SEEN] = 0.0
            self.term_lengths[2 * TERM * term + LENGTH] = 0
        self.terms = count

    def terms_seen(self) -> bytearray:
        """For each term whether it was seen within the window."""
        chosen = bytearray(self.terms)
        for term in range(self.terms):
            chosen[term] = self.term_seen[2 * TERM * term + SEEN] >= UNSEEN
        return chosen

    def keep_terms(self, chosen: bytearray) -> None:
        """Forgets all terms but those that are chosen. They move up and keep their order."""
        kept = 0
        for term in range(self.terms):
            if chosen[term]:
                for step in range(TERM):
                    self.term_newest[kept * TERM + step] = self.term_newest[term * TERM + step]
                kept += 1
        self.terms = kept
        self._use_terms(shrunk(self.term_newest, "q", kept * TERM))

    def fade(self, times: int) -> None:
        """Makes what was seen count less, but not so much that too few posts are known."""
        self.bridges = HashTable()
        faded = max(FADE**times, min(ENOUGH_SEEN / max(self.posts_seen, 1.0), 1.0))
        small = array("f", [faded])
        for term in range(self.terms):
            self.term_seen[2 * TERM * term + SEEN] *= small[0]
        self.posts_seen *= faded
        self.posts_joined *= faded

    def make_room_for_bridges(self, new: int) -> None:
        """Makes room for so many more pairs of stories between which there is a bridge."""
        self.bridges.make_room(new)
        self.bridge_sums = grown(self.bridge_sums, "f", len(self.bridges) + new)

    def fits(self, new_stories: int, new_entries: int, since: float) -> bool:
        """Whether so many more write over nothing that began after `since`."""
        story_lost = self.next_story + new_stories - 1 - (self.last_story + 1)
        if story_lost >= 0 and is_young(self, story_lost, since):
            return False
        entry_lost = self.next_entry + new_entries - 1 - (self.last_entry + 1)
        if entry_lost < 0:
            return True
        return not is_young(self, self.entries[(entry_lost & self.last_entry) * ENTRY + STORY], since)

    def double(self) -> None:
        """Makes twice the room for stories and entries, and keeps all of them."""
        self.oldest_entry = max(self.next_entry - (self.last_entry + 1), self.oldest_entry)
        size = 2 * (self.last_story + 1)
        self._use_stories(unrolled(self.story_leaders, no_stories(size), RECORD, self.next_story))
        self.story_flags = unrolled(self.story_flags, zeros("i", size), 1, self.next_story)
        entries = zeros("i", size * ENTRIES_PER_STORY * ENTRY)
        self._use_entries(unrolled(self.entries, entries, ENTRY, self.next_entry))
        if self.dimensions:
            meanings = zeros("f", size * self.dimensions)
            self.meanings = unrolled(self.meanings, meanings, self.dimensions, self.next_story)

    def are_young(self, numbers: array[int], since: float) -> bytearray:
        """For each story's number whether it is still there and began after `since`."""
        chosen = bytearray(len(numbers))
        for at in range(len(numbers)):
            chosen[at] = is_young(self, numbers[at], since)
        return chosen

    def root(self, number: int) -> int:
        """The story that a story is, or has become part of; NONE if it is not there any more."""
        return root_of(self, number)

    def guard(self, number: int) -> None:
        """Says that a story has posts that were told apart from others: it does not become one with another."""
        self.story_flags[number & self.last_story] |= GUARDED

    def leader(self, number: int) -> int:
        """The earliest post of a story."""
        post: int = self.story_leaders[(number & self.last_story) * RECORD + LEADER]
        return post

    def lead(self, number: int, post: int) -> None:
        self.story_leaders[(number & self.last_story) * RECORD + LEADER] = post

    def is_from(self, number: int, source: int) -> None:
        """All posts of a story are from this source (SEVERAL: they are not)."""
        self.story_leaders[(number & self.last_story) * RECORD + SOURCE] = source

    def unlearn(self, batch: StoryBatch, number: int) -> None:
        """Takes the one post of a batch out of a story, as it would be weighed today. What is known of rarity stays."""
        unlearn_post(self, batch, number)


def no_stories(size: int) -> Row:
    rows = zeros("q", size * RECORD)
    numbers = seen_as("i", rows)
    for slot in range(size):
        numbers[2 * RECORD * slot + NUMBER] = NONE
    return rows


def has_story(memory: StoryMemory, number: int) -> bool:
    return number != NONE and memory.story_numbers[(number & memory.last_story) * 2 * RECORD + NUMBER] == number


def language_of(memory: StoryMemory, number: int) -> int:
    """The number of the language that a story is told in; 0 if nobody knows."""
    language: int = memory.story_flags[number & memory.last_story] >> FLAG_BITS
    return language


def root_of(memory: StoryMemory, number: int) -> int:
    while has_story(memory, number):
        if not memory.story_flags[number & memory.last_story] & MOVED:
            return number
        number = memory.story_leaders[(number & memory.last_story) * RECORD + LEADER]
    return NONE


def is_young(memory: StoryMemory, number: int, since: float) -> bool:
    root = root_of(memory, number)
    return root != NONE and memory.story_sums[(root & memory.last_story) * RECORD + FIRST] >= since


def weigh(memory: StoryMemory, batch: StoryBatch, first: int, count: int) -> None:
    """How much each term of a post counts: the rarer the more. All together have length 1."""
    posts = memory.posts_seen + memory.background
    square = 0.0
    for at in range(count):
        rarity = log(posts / (memory.term_seen[2 * TERM * batch.numbers[first + at] + SEEN] + 1.0))
        weight = batch.weights[first + at] * max(rarity, 0.0)
        memory.post_weights[at] = weight
        square += weight * weight
    if square > 0.0:
        for at in range(count):
            memory.post_weights[at] /= sqrt(square)


def begin_story(memory: StoryMemory, post: int, time: float, source: int) -> None:
    memory.best = memory.next_story
    memory.next_story += 1
    slot = memory.best & memory.last_story
    record = slot * RECORD
    memory.story_numbers[2 * record + NUMBER], memory.story_numbers[2 * record + POSTS] = memory.best, 0
    memory.story_leaders[record + LEADER], memory.story_sums[record + LEADER_TIME] = post, time
    memory.story_sums[record + SQUARE], memory.story_sums[record + FIRST] = 0.0, time
    memory.story_leaders[record + SOURCE] = source
    memory.story_flags[slot] = 0
    for at in range(memory.dimensions):
        memory.meanings[slot * memory.dimensions + at] = 0.0


def add_meaning(memory: StoryMemory, batch: StoryBatch, post: int, number: int, times: int) -> None:
    """Adds a post's meaning to its story's, or takes it away (`times` is -1)."""
    of_story, of_post = (number & memory.last_story) * memory.dimensions, post * memory.dimensions
    for at in range(memory.dimensions):
        memory.meanings[of_story + at] += times * batch.meanings[of_post + at]


def learn(
    memory: StoryMemory, batch: StoryBatch, post: int, first: int, count: int, looked_up: int, is_new: bool
) -> None:
    """Adds a post to its story, and its terms to what is known of how rare terms are. Notes which terms they share."""
    memory.posts_seen += 1.0
    memory.posts_joined += 0.0 if is_new else 1.0
    for at in range(count):
        memory.term_seen[2 * TERM * batch.numbers[first + at] + SEEN] += 1.0
    for place in range(SHOWN):
        memory.strongest[place] = 0.0
    for place in range(looked_up):
        at = memory.order[place]
        weight = memory.post_weights[at]
        entry = NONE if is_new else entry_of(memory, batch.numbers[first + at], memory.best)
        if entry == NONE:
            write_entry(memory, batch.numbers[first + at], memory.best, weight)
        else:
            show(memory, batch, post, at, weight * memory.entry_weights[entry + WEIGHT])
            memory.entry_weights[entry + WEIGHT] += weight


def entry_of(memory: StoryMemory, term: int, story: int) -> int:
    """Where one of the newest entries of a term speaks of a story, or NONE."""
    oldest = max(memory.next_entry - (memory.last_entry + 1), memory.oldest_entry)
    number: int = memory.term_newest[term * TERM]
    for _ in range(memory.most_entries_per_term):
        if number < oldest:
            break
        entry = (number & memory.last_entry) * ENTRY
        if memory.entries[entry + STORY] == story:
            return entry
        if memory.entries[entry + BACK] == 0:
            break
        number -= memory.entries[entry + BACK]
    return NONE


def write_entry(memory: StoryMemory, term: int, story: int, weight: float) -> None:
    """Puts a new entry at the front of a term's posting list."""
    number, newest = memory.next_entry, memory.term_newest[term * TERM]
    memory.next_entry += 1
    back = number - newest if newest >= 0 and number - newest <= memory.last_entry else 0
    entry = (number & memory.last_entry) * ENTRY
    memory.entries[entry + STORY], memory.entries[entry + BACK] = story, back
    memory.entry_weights[entry + WEIGHT] = weight
    memory.term_newest[term * TERM] = number
    length = memory.term_lengths[2 * TERM * term + LENGTH]
    memory.term_lengths[2 * TERM * term + LENGTH] = length + 1 if back else 1


def show(memory: StoryMemory, batch: StoryBatch, post: int, at: int, value: float) -> None:
    """Puts a term among the strongest of a post, if it is one of them."""
    for place in range(SHOWN):
        if value > memory.strongest[place]:
            for lower in range(SHOWN - 1, place, -1):
                memory.strongest[lower] = memory.strongest[lower - 1]
                batch.shown[SHOWN * post + lower] = batch.shown[SHOWN * post + lower - 1]
            memory.strongest[place] = value
            batch.shown[SHOWN * post + place] = at
            return


def unlearn_post(memory: StoryMemory, batch: StoryBatch, number: int) -> None:
    if not has_story(memory, number):
        return
    record = (number & memory.last_story) * RECORD
    memory.story_numbers[2 * record + POSTS] -= 1
    if memory.story_numbers[2 * record + POSTS] <= 0:
        memory.story_numbers[2 * record + NUMBER] = NONE
        return
    add_meaning(memory, batch, 0, number, -1)
    weigh(memory, batch, 0, batch.starts[1])
    likeness = 0.0
    for at in range(batch.starts[1]):
        entry = entry_of(memory, batch.numbers[at], number)
        if entry != NONE:
            weight = memory.post_weights[at]
            memory.entry_weights[entry + WEIGHT] = max(memory.entry_weights[entry + WEIGHT] - weight, 0.0)
            likeness += weight * memory.entry_weights[entry + WEIGHT]
    square = memory.story_sums[record + SQUARE] - 2.0 * likeness - 1.0
    memory.story_sums[record + SQUARE] = max(square, 1.0 * memory.story_numbers[2 * record + POSTS])


def join_stories(memory: StoryMemory, batch: StoryBatch, kept: int, moved: int, first: int, looked_up: int) -> None:
    """Makes a story part of an older one. Of the terms that both have, those of the last post are put together.

    Entries of other terms stay where they are, and are found to speak of the older one when they are read.
    """
    product = 0.0
    for place in range(looked_up):
        term = batch.numbers[first + memory.order[place]]
        one, other = entry_of(memory, term, kept), entry_of(memory, term, moved)
        if other == NONE:
            continue
        if one == NONE:
            memory.entries[other + STORY] = kept
            continue
        product += memory.entry_weights[one + WEIGHT] * memory.entry_weights[other + WEIGHT]
        memory.entry_weights[one + WEIGHT] += memory.entry_weights[other + WEIGHT]
        memory.entries[other + STORY] = NONE
    old, new = (moved & memory.last_story) * RECORD, (kept & memory.last_story) * RECORD
    memory.story_sums[new + SQUARE] += memory.story_sums[old + SQUARE] + 2.0 * product
    memory.story_sums[new + FIRST] = min(memory.story_sums[new + FIRST], memory.story_sums[old + FIRST])
    memory.story_numbers[2 * new + POSTS] += memory.story_numbers[2 * old + POSTS]
    if memory.story_sums[old + LEADER_TIME] < memory.story_sums[new + LEADER_TIME]:
        memory.story_sums[new + LEADER_TIME] = memory.story_sums[old + LEADER_TIME]
        memory.story_leaders[new + LEADER] = memory.story_leaders[old + LEADER]
    if memory.story_leaders[old + SOURCE] != memory.story_leaders[new + SOURCE]:
        memory.story_leaders[new + SOURCE] = SEVERAL
    for at in range(memory.dimensions):
        memory.meanings[(kept & memory.last_story) * memory.dimensions + at] += memory.meanings[
            (moved & memory.last_story) * memory.dimensions + at
        ]
    if language_of(memory, kept) == 0:
        memory.story_flags[kept & memory.last_story] |= language_of(memory, moved) << FLAG_BITS
    memory.story_flags[moved & memory.last_story] |= MOVED
    memory.story_leaders[old + LEADER] = kept
