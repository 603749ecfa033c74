"""What is remembered of stories, and which of them is most like a post.

A story is the sum of its posts' terms, each weighed by how rare it was. Each term has a posting list: entries that say
in which story it occurs and with what weight, the newest first. All entries lie in one ring, in which an entry says how
far back the one before it is. The oldest entries are written over, so memory has a bound and nothing is ever cleared
away. Only the newest entries of a term are read, so a post costs the same in a small window and in a large.

The C types are in `story_memory.pxd`. Sums of small floats are kept in rows of small floats even where a variable would
do, so that Python rounds as C does.
"""

from __future__ import annotations

from array import array

from headwater.dedup.arrays import Row, grown, seen_as, shrunk, unrolled, zeros
from headwater.dedup.story_rules import MOST_TERMS, StoryRules
from headwater.dedup.story_terms import StoryBatch

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from math import exp, log, pow, sqrt

    from headwater.dedup.story_terms import is_barred, share_of_signs

SHOWN = 3
NONE = -1
# A story of one post leaves an entry per term; later posts add few.
ENTRIES_PER_STORY = 16
# What was seen fades by this much, so many times in a window: words that everybody used last week are rare again.
FADES_PER_WINDOW = 3
FADE = 2 / 3
# A term that was last seen a window ago has faded to less.
UNSEEN = 0.25
# More rows than entries are read for a post.
TALLY_ROWS = 2048
# A likeness is put on a scale on which what is asked of a post is one half.
LOG_HALF = -0.6931471805599453

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
        self.base, self.by_likeness, self.by_shared, self.by_posts, self.by_terms, self.by_both = rules.odds
        self.most_posts = rules.most_posts
        self.least_evidence, self.least_share = rules.least_evidence, rules.least_share
        self.least_entries, self.entries_per_term = rules.least_entries, rules.entries_per_term
        self.most_entries_per_term = rules.most_entries_per_term
        self.meaning, self.usual_closeness = rules.meaning, rules.usual_closeness
        self.terms = 0
        self.next_story = self.next_entry = self.oldest_entry = 0
        self.posts_seen = 0.0
        self.dimensions = dimensions
        self._use_terms(zeros("q", TERM))
        self._use_entries(zeros("i", size * ENTRIES_PER_STORY * ENTRY))
        self._use_stories(no_stories(size))
        self.meanings = zeros("f", size * dimensions)
        self._make_room_to_work()

    def _make_room_to_work(self) -> None:
        """For one post at a time: its weights and their order, the tally, and the lists on the way from the newest."""
        self.post_weights, self.order = array("d", bytes(8 * MOST_TERMS)), array("i", bytes(4 * MOST_TERMS))
        self.tally_story = array("i", [NONE]) * TALLY_ROWS
        self.tally_likeness = array("f", bytes(4 * TALLY_ROWS))
        self.tally_evidence = array("f", bytes(4 * TALLY_ROWS))
        self.tally_rows = array("i", bytes(4 * TALLY_ROWS))
        self.list_term, self.list_story, self.list_back = (array("i", bytes(4 * MOST_TERMS)) for _ in range(3))
        self.list_weight, self.list_evidence, self.list_share = (array("f", bytes(4 * MOST_TERMS)) for _ in range(3))
        self.list_entry = array("q", bytes(8 * MOST_TERMS))
        self.strongest = array("d", bytes(8 * SHOWN))
        self.best, self.likeness, self.score = NONE, 0.0, 0.0

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
        """Makes what was seen count less."""
        small = array("f", [FADE**times])
        for term in range(self.terms):
            self.term_seen[2 * TERM * term + SEEN] *= small[0]
        self.posts_seen *= FADE**times

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

    def has(self, number: int) -> bool:
        return has_story(self, number)

    def leader(self, number: int) -> int:
        """The earliest post of a story."""
        post: int = self.story_leaders[(number & self.last_story) * RECORD + LEADER]
        return post

    def lead(self, number: int, post: int) -> None:
        self.story_leaders[(number & self.last_story) * RECORD + LEADER] = post

    def is_from(self, number: int, source: int) -> None:
        """All posts of a story are from this source (SEVERAL: they are not)."""
        self.story_leaders[(number & self.last_story) * RECORD + SOURCE] = source

    def decide(self, batch: StoryBatch) -> None:
        """Decides about the posts of a batch, one after the other, and remembers each."""
        with cython.nogil:
            for post in range(batch.size):
                decide_post(self, batch, post)

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


def is_young(memory: StoryMemory, number: int, since: float) -> bool:
    first = memory.story_sums[(number & memory.last_story) * RECORD + FIRST]
    return has_story(memory, number) and first >= since


def decide_post(memory: StoryMemory, batch: StoryBatch, post: int) -> None:
    first, count = batch.starts[post], batch.starts[post + 1] - batch.starts[post]
    weigh(memory, batch, first, count)
    sort_by_weight(memory, count)
    looked_up = how_many_to_look_up(memory, batch, first, count)
    rows = add_up_lists(memory, batch, first, looked_up)
    find_most_alike(memory, batch, post, count, rows)
    for at in range(rows):
        memory.tally_story[memory.tally_rows[at]] = NONE
    is_new = memory.best == NONE
    if is_new:
        begin_story(memory, batch.ids[post], batch.times[post], batch.sources[post])
    record = (memory.best & memory.last_story) * RECORD
    batch.stories[post], batch.scores[post] = memory.best, memory.score
    batch.leaders[post] = memory.story_leaders[record + LEADER]
    if batch.times[post] < memory.story_sums[record + LEADER_TIME]:
        memory.story_leaders[record + LEADER] = batch.ids[post]
        memory.story_sums[record + LEADER_TIME] = batch.times[post]
    if memory.story_leaders[record + SOURCE] != batch.sources[post]:
        memory.story_leaders[record + SOURCE] = SEVERAL
    memory.story_numbers[2 * record + POSTS] += 1
    memory.story_sums[record + SQUARE] += 2.0 * memory.likeness + 1.0
    add_meaning(memory, batch, post, memory.best, 1)
    learn(memory, batch, post, first, count, looked_up, is_new)


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


def sort_by_weight(memory: StoryMemory, count: int) -> None:
    """Puts the terms of a post in order, the heaviest first, as they came among equals."""
    for at in range(count):
        place = at
        while place > 0 and memory.post_weights[memory.order[place - 1]] < memory.post_weights[at]:
            memory.order[place] = memory.order[place - 1]
            place -= 1
        memory.order[place] = at


def how_many_to_look_up(memory: StoryMemory, batch: StoryBatch, first: int, count: int) -> int:
    """How many terms are looked up, the rarest first. Once enough entries are found, the rest is too common for it."""
    most = max(memory.least_entries, memory.entries_per_term * count)
    entries = 0
    for place in range(count):
        at = memory.order[place]
        if memory.post_weights[at] == 0.0 or entries >= most:
            return place
        length = memory.term_lengths[2 * TERM * batch.numbers[first + at] + LENGTH]
        entries += min(length, memory.most_entries_per_term)
    return count


def add_up_lists(memory: StoryMemory, batch: StoryBatch, first: int, looked_up: int) -> int:
    """Adds up what a post shares with each story that its terms lead to. Returns how many stories those are.

    The lists take turns, an entry of each: so their entries are fetched from memory at the same time.
    """
    oldest = max(memory.next_entry - (memory.last_entry + 1), memory.oldest_entry)
    going = rows = 0
    for place in range(looked_up):
        at = memory.order[place]
        newest = memory.term_newest[TERM * batch.numbers[first + at]]
        if newest >= oldest:
            memory.list_term[going], memory.list_entry[going] = batch.numbers[first + at], newest
            memory.list_weight[going] = memory.post_weights[at]
            memory.list_evidence[going] = batch.evidence[first + at]
            going += 1
    for turn in range(memory.most_entries_per_term):
        for each in range(going):
            entry = (memory.list_entry[each] & memory.last_entry) * ENTRY
            memory.list_story[each], memory.list_back[each] = memory.entries[entry], memory.entries[entry + BACK]
            memory.list_share[each] = memory.list_weight[each] * memory.entry_weights[entry + WEIGHT]
        ready, going = going, 0
        for each in range(ready):
            rows = add_up(memory, memory.list_story[each], memory.list_share[each], memory.list_evidence[each], rows)
            before = memory.list_entry[each] - memory.list_back[each]
            if memory.list_back[each] != 0 and before >= oldest:
                memory.list_term[going], memory.list_entry[going] = memory.list_term[each], before
                memory.list_weight[going] = memory.list_weight[each]
                memory.list_evidence[going] = memory.list_evidence[each]
                going += 1
            else:
                memory.term_lengths[2 * TERM * memory.list_term[each] + LENGTH] = turn + 1
    return rows


def add_up(memory: StoryMemory, story: int, likeness: float, evidence: float, rows: int) -> int:
    """Adds what an entry says to its story's row of the tally, a hash table. Returns how many rows are taken."""
    row = (story * 40503) & (TALLY_ROWS - 1)
    while memory.tally_story[row] != NONE and memory.tally_story[row] != story:
        row = (row + 1) & (TALLY_ROWS - 1)
    if memory.tally_story[row] == NONE:
        memory.tally_story[row] = story
        memory.tally_likeness[row] = memory.tally_evidence[row] = 0.0
        memory.tally_rows[rows] = row
        rows += 1
    memory.tally_likeness[row] += likeness
    memory.tally_evidence[row] += evidence
    return rows


def find_most_alike(memory: StoryMemory, batch: StoryBatch, post: int, terms: int, rows: int) -> None:
    """Finds the story that is most like a post of so many terms, if it is enough; what they share, and the score.

    Posts of many terms are compared with each post of a story: the likeness is the average. Headlines of one story
    often share words only with the story as a whole: posts of few terms are compared with its sum.
    """
    bonus = memory.meaning * (1.0 - memory.usual_closeness) if memory.dimensions else 0.0
    share = min(max((terms - memory.few_terms) / (memory.many_terms - memory.few_terms), 0.0), 1.0)
    signs = share_of_signs(batch, post)
    asked = memory.short + (memory.long + (memory.signs - memory.long) * signs - memory.short) * share
    highest = asked
    memory.best, memory.likeness, memory.score = NONE, 0.0, 0.0
    for at in range(rows):
        row = memory.tally_rows[at]
        likeness = memory.tally_likeness[row]
        # A story's length is at least 1: most stories need not even be looked at.
        if likeness + bonus < highest:
            continue
        number = memory.tally_story[row]
        record = (number & memory.last_story) * RECORD
        size = memory.story_numbers[2 * record + POSTS]
        if memory.story_numbers[2 * record + NUMBER] != number or size >= memory.most_posts:
            continue
        if abs(batch.times[post] - memory.story_sums[record + FIRST]) > memory.window:
            continue
        if memory.tally_evidence[row] < memory.least_evidence or is_own(memory, batch, post, record):
            continue
        value = likeness / (pow(memory.story_sums[record + SQUARE], 0.5 * (1.0 - share)) * pow(size, share))
        if memory.dimensions and value >= memory.least_share * asked:
            value += memory.meaning * (closeness(memory, batch, post, number) - memory.usual_closeness)
        if value > highest or (value == highest and (memory.best == NONE or number < memory.best)):
            if is_barred(batch, number):
                continue
            highest = value
            memory.best, memory.likeness = number, likeness
            batch.shared[post], batch.sizes[post] = memory.tally_evidence[row], size
    if memory.best != NONE:
        value = pow(min(highest, 1.0), LOG_HALF / log(asked))
        memory.score = probability(memory, value, batch.shared[post], batch.sizes[post], terms)
        if memory.score < memory.threshold:
            memory.best, memory.likeness, memory.score = NONE, 0.0, 0.0


def probability(memory: StoryMemory, likeness: float, shared: float, posts: float, terms: float) -> float:
    """How probable it is that a post belongs to a story of so many posts. `likeness` is one half or more, up to 1."""
    odds = memory.base + memory.by_likeness * log(likeness / (1.001 - likeness)) + memory.by_shared * log(shared)
    odds += memory.by_posts * log(posts) + memory.by_terms * log(terms) + memory.by_both * log(posts) * log(shared)
    return 1.0 / (1.0 + exp(-odds))


def is_own(memory: StoryMemory, batch: StoryBatch, post: int, record: int) -> bool:
    """Whether all that a story has is from the source of a post: a source's own posts are no tellings of each other."""
    return batch.sources[post] != SEVERAL and memory.story_leaders[record + SOURCE] == batch.sources[post]


def closeness(memory: StoryMemory, batch: StoryBatch, post: int, number: int) -> float:
    """The cosine of the angle between a story's meaning and a post's."""
    of_story, of_post = (number & memory.last_story) * memory.dimensions, post * memory.dimensions
    product = square = length = 0.0
    for at in range(memory.dimensions):
        product += memory.meanings[of_story + at] * batch.meanings[of_post + at]
        square += memory.meanings[of_story + at] * memory.meanings[of_story + at]
        length += batch.meanings[of_post + at] * batch.meanings[of_post + at]
    return product / sqrt(square * length) if square * length > 0.0 else 0.0


def begin_story(memory: StoryMemory, post: int, time: float, source: int) -> None:
    memory.best = memory.next_story
    memory.next_story += 1
    slot = memory.best & memory.last_story
    record = slot * RECORD
    memory.story_numbers[2 * record + NUMBER], memory.story_numbers[2 * record + POSTS] = memory.best, 0
    memory.story_leaders[record + LEADER], memory.story_sums[record + LEADER_TIME] = post, time
    memory.story_sums[record + SQUARE], memory.story_sums[record + FIRST] = 0.0, time
    memory.story_leaders[record + SOURCE] = source
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
