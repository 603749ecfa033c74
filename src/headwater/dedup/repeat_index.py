"""Finds the earlier post that a new one repeats, among those of a time window, at a cost that does not grow with it.

Posts come in batches. Python trims their texts and makes room; then, without Python's lock, each post is read, its keys
are found, and it is compared with the leaders that share most of them. The C types are in `repeat_index.pxd`.
"""

# ruff: noqa: SIM110 -- loops that become C, and no generators

from __future__ import annotations

from array import array
from collections.abc import Sequence

from headwater.dedup.arrays import Row, grown, seen_as, shrunk, zeros
from headwater.dedup.normal import Trimmed, trimmed_post
from headwater.dedup.repeat_batch import Batch
from headwater.dedup.repeats import (
    COUNTERS,
    CUT_CONTENT,
    HOUR,
    LEADERS_PER_KEY,
    LEAST_CONTENT,
    LEAST_OVERLAP,
    MOST_COMPARED,
    MOST_PAIRS,
    MOST_RUN_KEYS,
    MOST_RUNS,
    NUMBERED,
    OWN_OVERLAP,
    TELLING_CONTENT,
    TELLING_WORDS,
    WINDOW_HOURS,
    Difference,
    Posting,
    RepeatDecision,
    in_batches,
    repost,
    same_link,
    verdict,
)

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from headwater.dedup.compare import (
        ARTICLE,
        BY_LINK,
        BY_WORDS,
        CUT,
        GONE,
        IS_LIGHT,
        Comparison,
        Text,
        content,
        lead_key,
        measure,
        mix,
        read_words,
        same_text,
        score,
    )
    from headwater.dedup.contradictions import contradicts
    from headwater.dedup.repeat_batch import hash_without_light, telling_words

IS_COMPILED: bool = cython.compiled

FULLEST = 0.7
MOST_KEYS = 2 + max(MOST_PAIRS, MOST_RUN_KEYS)
MOST_CANDIDATES = MOST_KEYS * LEADERS_PER_KEY
LOW_HALF = (1 << 32) - 1
LAST_COUNTER = COUNTERS - 1
ALL_BITS = (1 << 64) - 1
# What is answered instead of a leader's number.
ALONE, LEADS = -1, -2
# A leader is a record of ten numbers of 64 bits. The last three of them are six numbers of 32 bits.
RECORD = 10
POST, START, END, WHOLE, MENTIONS, CREATED_AT, SOURCE = range(7)
WORDS, HEAD, TAIL, RUNS, RUN_COUNT, FLAGS = range(14, 20)
SMALL = 2 * RECORD


class RepeatIndex:
    """An index over a time window. Not for several threads at once.

    `numbers`, `hashes`, `times` and `small` are the same memory, the leaders' records, seen as numbers of four kinds.
    `slots` is a hash table: half a key above, and the number plus one of a leader that is found by it below. `seen`
    counts pairs. `text` has the leaders' words, `runs` the samples of those that are articles. `contradicted` says, of
    the posts that were added last, which leader a post nearly repeats and contradicts.
    """

    def __init__(self, *, window_seconds: float = WINDOW_HOURS * HOUR, threshold: float = LEAST_OVERLAP) -> None:
        self.window, self.threshold = window_seconds, threshold
        # Few posts have labels: room for them in each record would cost more.
        self.labels: dict[int, tuple[str, ...]] = {}
        self.contradicted: dict[int, int] = {}
        self.leaders = self.gone = self.text_size = self.run_sets = self.slots_used = 0
        self._use_records(zeros("q", RECORD))
        self.text, self.runs = zeros("B", 1), zeros("Q", MOST_RUNS)
        self.slots = zeros("Q", 1 << 16)
        self.seen = zeros("I", COUNTERS)
        self.new, self.old, self.found = Text(1), Text(NUMBERED), Comparison()
        self.keys, self.rarity = array("Q", bytes(8 * MOST_KEYS)), array("I", bytes(4 * MOST_KEYS))
        self.candidates, self.shared = array("q", bytes(8 * MOST_CANDIDATES)), array("i", bytes(4 * MOST_CANDIDATES))

    def __len__(self) -> int:
        return self.leaders - self.gone

    def add(self, post: Posting) -> RepeatDecision | None:
        return self.add_many([post])[0]

    def add_many(self, posts: Sequence[Posting]) -> list[RepeatDecision | None]:
        decisions: list[RepeatDecision | None] = []
        self.contradicted = {}
        for some in in_batches(posts):
            decisions += self._add_batch(some)
        return decisions

    def forget(self, post: int) -> None:
        """Compares with this post no more: it was edited, deleted, or undone. Unknown posts are nothing to forget."""
        for number in range(self.leaders):
            if self.numbers[number * RECORD + POST] == post:
                self._drop(number)
        self._compact()

    def expire(self, before: float) -> None:
        """Forgets the leaders that are older than `before`."""
        for number in range(self.leaders):
            if self.times[number * RECORD + CREATED_AT] < before:
                self._drop(number)
        self._compact()

    def _drop(self, number: int) -> None:
        if not self.small[number * SMALL + FLAGS] & GONE:
            self.small[number * SMALL + FLAGS] |= GONE
            self.gone += 1

    def _add_batch(self, posts: Sequence[Posting]) -> list[RepeatDecision | None]:
        decisions: list[RepeatDecision | None] = [None if post.repost_of is None else repost(post) for post in posts]
        asked = [at for at, post in enumerate(posts) if post.repost_of is None]
        if not asked:
            return decisions
        chosen = [posts[at] for at in asked]
        texts = [trimmed_post(post.title, post.text) for post in chosen]
        batch = Batch(chosen, texts)
        self._make_room(batch)
        number = self.leaders
        with cython.nogil:
            decide_all(self, batch)
        for row in range(batch.size):
            leader = batch.leaders[row]
            if leader >= 0:
                decisions[asked[row]] = self._decision(chosen[row], texts[row], leader, batch, row)
            elif leader == LEADS:
                if texts[row].labels:
                    self.labels[number] = texts[row].labels
                if batch.contradicted[row] >= 0:
                    self.contradicted[chosen[row].id] = self.numbers[batch.contradicted[row] * RECORD + POST]
                number += 1
        return decisions

    def _decision(self, post: Posting, text: Trimmed, number: int, batch: Batch, row: int) -> RepeatDecision:
        leader = self.numbers[number * RECORD + POST]
        if self.small[number * SMALL + FLAGS] & BY_LINK:
            return same_link(post, leader)
        slips, light, rest, cut, words = [batch.counts[5 * row + at] for at in range(5)]
        labels = frozenset(text.labels).symmetric_difference(self.labels.get(number, ()))
        is_short = self.small[number * SMALL + FLAGS] & BY_WORDS
        other_audience = not is_short and batch.mentions[row] != self.hashes[number * RECORD + MENTIONS]
        found = Difference(slips, light, rest, bool(cut), batch.overlaps[row])
        return RepeatDecision(post.id, leader, *verdict(found, words, labels, other_audience))

    def _make_room(self, batch: Batch) -> None:
        """Makes every row large enough for a batch, whatever is in it."""
        if (self.leaders + batch.size) * RECORD > len(self.numbers):
            wanted = (self.leaders + batch.size) * 5 // 4
            self._use_records(grown(self.numbers, "q", wanted * RECORD))
        if self.text_size + batch.letters > len(self.text):
            self.text = grown(self.text, "B", (self.text_size + batch.letters) * 5 // 4)
        if (self.run_sets + batch.size) * MOST_RUNS > len(self.runs):
            self.runs = grown(self.runs, "Q", (self.run_sets + batch.size) * 5 // 4 * MOST_RUNS)
        size = len(self.slots)
        while self.slots_used + batch.size * MOST_KEYS > size * FULLEST:
            size *= 2
        if size > len(self.slots):
            self._hash_again(array("i", range(self.leaders)), size)
        if batch.longest > self.new.most_words:
            self.new = Text(batch.longest * 5 // 4)
        self.new.data, self.old.data = batch.text, self.text

    def _use_records(self, records: Row) -> None:
        self.numbers = records
        self.hashes, self.times, self.small = (seen_as(kind, records) for kind in "Qdi")

    def _compact(self) -> None:
        """Gives back the space of leaders that are gone, if those are the most."""
        if self.gone * 2 <= self.leaders:
            return
        renumbered, kept = array("i", bytes(4 * self.leaders)), 0
        for number in range(self.leaders):
            is_gone = self.small[number * SMALL + FLAGS] & GONE
            renumbered[number] = ALONE if is_gone else kept
            kept += 0 if is_gone else 1
        self.labels = {
            renumbered[number]: labels for number, labels in self.labels.items() if renumbered[number] != ALONE
        }
        move_up(self)
        self._use_records(shrunk(self.numbers, "q", self.leaders * RECORD))
        self.text, self.runs = shrunk(self.text, "B", self.text_size), shrunk(self.runs, "Q", self.run_sets * MOST_RUNS)
        self._hash_again(renumbered, len(self.slots))

    def _hash_again(self, renumbered: array[int], size: int) -> None:
        before, self.slots, self.slots_used = self.slots, zeros("Q", size), 0
        fill_again(self, before, renumbered)


def decide_all(index: RepeatIndex, batch: Batch) -> None:
    for at in range(batch.size):
        batch.leaders[at] = batch.contradicted[at] = ALONE
        read_post(index, batch, at)
        keys = find_keys(index, batch, at)
        if keys == 0:
            continue
        if not choose(index, batch, keys, at):
            lead(index, batch, keys, at)
            batch.leaders[at] = LEADS


def read_post(index: RepeatIndex, batch: Batch, at: int) -> None:
    first, end = batch.first[3 * at], batch.first[3 * at + 3]
    if end > first:
        read_words(index.new, batch.starts[first], batch.ends[end - 1])
    else:
        read_words(index.new, 0, 0)
    index.new.head, index.new.tail = batch.first[3 * at + 1] - first, end - batch.first[3 * at + 2]
    index.new.flags, index.new.mentions = batch.flags[at], batch.mentions[at]
    measure(index.new)


def find_keys(index: RepeatIndex, batch: Batch, at: int) -> int:
    """What a post is found by, the whole text first. Returns how many keys there are; 0: it is never compared."""
    words = index.new.size - index.new.tail
    found = content(index.new, words, LEAST_CONTENT)
    if found < LEAST_CONTENT:
        telling = telling_words(index.new, words)
        if telling < TELLING_WORDS or found < CUT_CONTENT or not index.new.flags & CUT:
            return few_words_key(index, batch, at, telling)
    index.keys[0] = index.new.whole
    index.keys[1] = lead_key(index.new)
    if not index.new.flags & ARTICLE:
        return 2 + rarest_pairs(index)
    keys = min(index.new.run_count, MOST_RUN_KEYS)
    for each in range(keys):
        index.keys[2 + each] = index.new.runs[each]
    return 2 + keys


def few_words_key(index: RepeatIndex, batch: Batch, at: int, telling: int) -> int:
    """Few words are found as a whole only: with whom they speak to if so many tell something that it is enough,
    otherwise with the link that they are about. The link is remembered in place of the audience."""
    is_enough = telling and content(index.new, index.new.size, TELLING_CONTENT) >= TELLING_CONTENT
    by = BY_WORDS if is_enough or telling >= TELLING_WORDS else BY_LINK
    with_them = index.new.mentions if by == BY_WORDS else batch.links[at]
    if index.new.size == 0 or (by == BY_LINK and with_them == 0):
        return 0
    index.new.flags |= by
    index.new.whole, index.new.mentions = hash_without_light(index.new), batch.links[at]
    index.keys[0] = mix(mix(0, index.new.whole), with_them)
    return 1


def rarest_pairs(index: RepeatIndex) -> int:
    """Counts the pairs of neighbours, light words left out, and puts the rarest ones among the keys."""
    before = kept = 0
    for at in range(index.new.size):
        if not index.new.kinds[at] & IS_LIGHT:
            if before != 0:
                index.seen[mix(mix(0, before), index.new.hashes[at]) & LAST_COUNTER] += 1
            before = index.new.hashes[at]
    before = 0
    for at in range(index.new.size):
        if not index.new.kinds[at] & IS_LIGHT:
            if before != 0:
                kept = keep_rare(index, mix(mix(0, before), index.new.hashes[at]), kept)
            before = index.new.hashes[at]
    return kept


def keep_rare(index: RepeatIndex, pair: int, kept: int) -> int:
    """Puts a pair in its place among the rarest so far, behind the first two keys. Returns how many are kept."""
    times = index.seen[pair & LAST_COUNTER]
    place = kept
    for each in range(kept):
        if index.keys[2 + each] == pair:
            return kept
        if place == kept and (
            times < index.rarity[each] or (times == index.rarity[each] and pair < index.keys[2 + each])
        ):
            place = each
    if place == MOST_PAIRS:
        return kept
    kept = min(kept + 1, MOST_PAIRS)
    for each in range(kept - 1, place, -1):
        index.keys[2 + each], index.rarity[each] = index.keys[1 + each], index.rarity[each - 1]
    index.keys[2 + place], index.rarity[place] = pair, times
    return kept


def find_candidates(index: RepeatIndex, keys: int) -> int:
    """Finds the leaders that share keys with the post, and how many each shares. Returns how many leaders those are."""
    count = 0
    last = len(index.slots) - 1
    for each in range(keys):
        half = index.keys[each] >> 32
        slot = half & last
        while index.slots[slot] != 0:
            if index.slots[slot] >> 32 == half:
                count = add_candidate(index, (index.slots[slot] & LOW_HALF) - 1, count)
            slot = (slot + 1) & last
    return count


def add_candidate(index: RepeatIndex, number: int, count: int) -> int:
    for each in range(count):
        if index.candidates[each] == number:
            index.shared[each] += 1
            return count
    if count == MOST_CANDIDATES:
        return count
    index.candidates[count], index.shared[count] = number, 1
    return count + 1


def next_candidate(index: RepeatIndex, count: int) -> int:
    """The leader that shares most keys and was not taken yet, the earlier first among equals; ALONE: no more."""
    best = -1
    for each in range(count):
        if index.shared[each] > 0 and (
            best < 0
            or index.shared[each] > index.shared[best]
            or (index.shared[each] == index.shared[best] and index.candidates[each] < index.candidates[best])
        ):
            best = each
    if best < 0:
        return ALONE
    index.shared[best] = 0
    return index.candidates[best]


def choose(index: RepeatIndex, batch: Batch, keys: int, at: int) -> bool:
    """Compares a post with the leaders that share most keys with it, and answers with the one that is most like it."""
    count = find_candidates(index, keys)
    highest, compared = -1.0, 0
    while compared < MOST_COMPARED and highest < 1.0:
        number = next_candidate(index, count)
        if number < 0:
            break
        flags = index.small[number * SMALL + FLAGS]
        if flags & GONE:
            continue
        compared += 1
        if abs(index.times[number * RECORD + CREATED_AT] - batch.created_at[at]) > index.window:
            continue
        if is_apart(batch, at, index.numbers[number * RECORD + POST]):
            continue
        if (flags | index.new.flags) & (BY_LINK | BY_WORDS):
            if repeats_few_words(index, batch, number, at):
                batch.leaders[at] = number
                return True
            continue
        read_leader(index, number)
        if not same_text(index.new, index.old, index.found):
            if batch.contradicted[at] == ALONE and contradicts(index.new, index.old, index.found):
                batch.contradicted[at] = number
            continue
        is_own = batch.sources[at] != 0 and index.numbers[number * RECORD + SOURCE] == batch.sources[at]
        if is_own and 0.0 < index.found.overlap < OWN_OVERLAP:
            continue
        likeness = score(index.found, min(index.new.total, index.old.total))
        if likeness >= index.threshold and likeness > highest:
            highest = likeness
            answer(index, batch, at, number)
    return highest >= 0.0


def repeats_few_words(index: RepeatIndex, batch: Batch, number: int, at: int) -> bool:
    """Whether few words are a leader's. A source that repeats its own has a series, unless the link is the same."""
    flags = index.small[number * SMALL + FLAGS] & index.new.flags
    if not flags & (BY_LINK | BY_WORDS) or index.hashes[number * RECORD + WHOLE] != index.new.whole:
        return False
    is_own = batch.sources[at] != 0 and index.numbers[number * RECORD + SOURCE] == batch.sources[at]
    return not is_own or (batch.links[at] != 0 and index.hashes[number * RECORD + MENTIONS] == batch.links[at])


def is_apart(batch: Batch, at: int, post: int) -> bool:
    for each in range(batch.apart_end[at], batch.apart_end[at + 1]):
        if batch.apart[each] == post:
            return True
    return False


def read_leader(index: RepeatIndex, number: int) -> None:
    record, small = number * RECORD, number * SMALL
    read_words(index.old, index.numbers[record + START], index.numbers[record + END])
    index.old.total, index.old.flags = index.small[small + WORDS], index.small[small + FLAGS]
    index.old.head, index.old.tail = index.small[small + HEAD], index.small[small + TAIL]
    index.old.mentions, index.old.whole = index.hashes[record + MENTIONS], index.hashes[record + WHOLE]
    index.old.run_count = index.small[small + RUN_COUNT]
    first = index.small[small + RUNS] * MOST_RUNS
    for each in range(index.old.run_count):
        index.old.runs[each] = index.runs[first + each]


def answer(index: RepeatIndex, batch: Batch, at: int, number: int) -> None:
    batch.leaders[at] = number
    batch.counts[5 * at], batch.counts[5 * at + 1] = index.found.slips, index.found.light
    batch.counts[5 * at + 2], batch.counts[5 * at + 3] = index.found.rest, index.found.cut
    batch.counts[5 * at + 4] = min(index.new.total, index.old.total)
    batch.overlaps[at] = index.found.overlap


def lead(index: RepeatIndex, batch: Batch, keys: int, at: int) -> None:
    """Remembers a post as a leader. Of an article, its beginning and its runs are enough."""
    number = index.leaders
    record, small = number * RECORD, number * SMALL
    start = index.new.starts[0]
    size = index.new.ends[min(index.new.size, NUMBERED) - 1] - start
    for step in range(size):
        index.text[index.text_size + step] = batch.text[start + step]
    index.numbers[record + POST], index.times[record + CREATED_AT] = batch.ids[at], batch.created_at[at]
    index.numbers[record + START], index.numbers[record + END] = index.text_size, index.text_size + size
    index.numbers[record + SOURCE] = batch.sources[at]
    index.hashes[record + WHOLE], index.hashes[record + MENTIONS] = index.new.whole, index.new.mentions
    index.small[small + WORDS], index.small[small + FLAGS] = index.new.total, index.new.flags
    index.small[small + HEAD], index.small[small + TAIL] = index.new.head, index.new.tail
    index.small[small + RUN_COUNT], index.small[small + RUNS] = index.new.run_count, index.run_sets
    if index.new.run_count:
        for step in range(index.new.run_count):
            index.runs[index.run_sets * MOST_RUNS + step] = index.new.runs[step]
        index.run_sets += 1
    index.leaders += 1
    index.text_size += size
    for each in range(keys):
        put(index, index.keys[each] >> 32, number)


def put(index: RepeatIndex, half: int, number: int) -> None:
    """Makes a leader known by half a key. A key that has enough leaders forgets its oldest."""
    last = len(index.slots) - 1
    slot = half & last
    oldest, known = slot, 0
    while index.slots[slot] != 0:
        if index.slots[slot] >> 32 == half:
            if known == 0 or index.slots[slot] < index.slots[oldest]:
                oldest = slot
            known += 1
        slot = (slot + 1) & last
    if known == LEADERS_PER_KEY:
        slot = oldest
    else:
        index.slots_used += 1
    index.slots[slot] = (half << 32) | (number + 1)


def fill_again(index: RepeatIndex, before: Row, renumbered: array[int]) -> None:
    """Fills the hash table from the one before. `renumbered` has each leader's new number; ALONE: it is gone."""
    for slot in range(len(before)):
        if before[slot] != 0:
            number = renumbered[(before[slot] & LOW_HALF) - 1]
            if number != ALONE:
                put(index, before[slot] >> 32, number)


def move_up(index: RepeatIndex) -> None:
    """Moves the leaders that are not gone to the front, with their texts and runs."""
    kept = text = run_sets = 0
    for number in range(index.leaders):
        record, small = number * RECORD, number * SMALL
        if index.small[small + FLAGS] & GONE:
            continue
        start, size = index.numbers[record + START], index.numbers[record + END] - index.numbers[record + START]
        for step in range(size):
            index.text[text + step] = index.text[start + step]
        index.numbers[record + START], index.numbers[record + END] = text, text + size
        text += size
        if index.small[small + RUN_COUNT]:
            first = index.small[small + RUNS] * MOST_RUNS
            for step in range(index.small[small + RUN_COUNT]):
                index.runs[run_sets * MOST_RUNS + step] = index.runs[first + step]
            index.small[small + RUNS] = run_sets
            run_sets += 1
        for step in range(RECORD):
            index.numbers[kept * RECORD + step] = index.numbers[record + step]
        kept += 1
    index.leaders, index.text_size, index.run_sets, index.gone = kept, text, run_sets, 0
