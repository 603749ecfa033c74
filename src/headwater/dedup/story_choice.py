"""Which story a post joins, and when two stories become one.

A post joins the story that it most probably belongs to, or begins one. If it could as well belong to a second story, it
is a bridge between the two; once enough posts have been bridges, the two stories are made one. The C types are in
`story_choice.pxd`.
"""

from __future__ import annotations

from headwater.dedup.story_memory import StoryMemory
from headwater.dedup.story_rules import EVERYDAY_EVIDENCE, LOGS, PAIR_EVIDENCE
from headwater.dedup.story_terms import StoryBatch

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from math import exp, log, pow, sqrt

    from headwater.dedup.arrays import add
    from headwater.dedup.story_memory import (
        BACK,
        ENTRY,
        FIRST,
        FLAG_BITS,
        GUARDED,
        LEADER,
        LEADER_TIME,
        LENGTH,
        MOVED,
        NONE,
        NUMBER,
        POSTS,
        RECORD,
        SEEN,
        SEVERAL,
        SOURCE,
        SQUARE,
        TALLY_ROWS,
        TERM,
        WEIGHT,
        add_meaning,
        begin_story,
        join_stories,
        language_of,
        learn,
        root_of,
        weigh,
    )
    from headwater.dedup.story_terms import VERSION, is_barred, share_of_signs

# A likeness is put on a scale on which what is asked of a post is one half.
LOG_HALF = -0.6931471805599453
# A number is no evidence, but that a story has it, and hardly any other, says a little.
NUMBER_VALUE = 0.25
# A word that so many posts outside a story have is as common as any.
MOST_OUTSIDE = 150.0
# While few posts were seen, nobody knows how common a word is: it is thought to be in so many others at first, and in
# half as many after so many posts.
UNKNOWN, FEW_SEEN = 15.0, 100.0
# Nobody knows either what the small words of a language are that has no list: words of up to so many letters count
# nothing then, those of up to so many count a quarter.
SHORTEST_WORD, SHORT_WORD, SHORT_EVIDENCE = 3, 5, 0.25
# A post of which this share is in a story says more than a name.
MOST_OF_A_POST = 0.7
# Usually, this share of posts joins a story; that is known like so many posts.
USUALLY_JOINED, USUAL_POSTS = 0.25, 200.0
BRIDGE_BITS = 32
# One post alone, however probable, does not make two stories one.
ONE_BRIDGE = 1.0
ONE = 1  # as wide as a row of terms has bits


def decide(memory: StoryMemory, batch: StoryBatch) -> None:
    """Decides about the posts of a batch, one after the other, and remembers each."""
    memory.make_room_for_bridges(batch.size)
    with cython.nogil:
        for post in range(batch.size):
            decide_post(memory, batch, post)


def decide_post(memory: StoryMemory, batch: StoryBatch, post: int) -> None:
    first, count = batch.starts[post], batch.starts[post + 1] - batch.starts[post]
    weigh(memory, batch, first, count)
    sort_by_weight(memory, count)
    looked_up = how_many_to_look_up(memory, batch, first, count)
    rows = add_up_lists(memory, batch, post, looked_up)
    find_most_probable(memory, batch, post, count, rows)
    for at in range(rows):
        memory.tally_story[memory.tally_rows[at]] = NONE
    is_new = memory.best == NONE
    if is_new:
        begin_story(memory, batch.ids[post], batch.times[post], batch.sources[post])
    join(memory, batch, post)
    learn(memory, batch, post, first, count, looked_up, is_new)
    if not is_new and memory.second_score >= memory.bridge:
        meet(memory, batch, post, first, looked_up)


def join(memory: StoryMemory, batch: StoryBatch, post: int) -> None:
    """Adds a post to the record of its story, which is the best, and writes down what was decided."""
    record = (memory.best & memory.last_story) * RECORD
    batch.stories[post], batch.scores[post] = memory.best, memory.score
    batch.leaders[post] = memory.story_leaders[record + LEADER]
    if batch.times[post] < memory.story_sums[record + LEADER_TIME]:
        memory.story_leaders[record + LEADER] = batch.ids[post]
        memory.story_sums[record + LEADER_TIME] = batch.times[post]
    if memory.story_leaders[record + SOURCE] != batch.sources[post]:
        memory.story_leaders[record + SOURCE] = SEVERAL
    if language_of(memory, memory.best) == 0:
        memory.story_flags[memory.best & memory.last_story] |= batch.languages[post] << FLAG_BITS
    if batch.guarded:
        memory.story_flags[memory.best & memory.last_story] |= GUARDED
    memory.story_numbers[2 * record + POSTS] += 1
    memory.story_sums[record + SQUARE] += 2.0 * memory.likeness + 1.0
    add_meaning(memory, batch, post, memory.best, 1)


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


def add_up_lists(memory: StoryMemory, batch: StoryBatch, post: int, looked_up: int) -> int:
    """Adds up what a post shares with each story that its terms lead to. Returns how many stories those are.

    The lists take turns, an entry of each: so their entries are fetched from memory at the same time.
    """
    oldest = max(memory.next_entry - (memory.last_entry + 1), memory.oldest_entry)
    first = batch.starts[post]
    going = rows = 0
    unknown = UNKNOWN / (1.0 + memory.posts_seen / FEW_SEEN)
    everyday = min(max(memory.everyday_share * memory.next_story, memory.least_everyday), memory.most_everyday)
    for place in range(looked_up):
        at = memory.order[place]
        newest = memory.term_newest[TERM * batch.numbers[first + at]]
        memory.list_weight[place] = memory.post_weights[at]
        memory.list_evidence[place] = memory.telling[at] = batch.evidence[first + at]
        if memory.term_lengths[2 * TERM * batch.numbers[first + at] + LENGTH] > everyday:
            memory.telling[at] = 0.0
        memory.at_first[at] = 1.0
        if batch.unlisted[post] and batch.letters[first + at] <= SHORT_WORD:
            memory.at_first[at] = SHORT_EVIDENCE if batch.letters[first + at] > SHORTEST_WORD else 0.0
        memory.list_value[place] = batch.weights[first + at] * (min(batch.evidence[first + at], 1.0) or NUMBER_VALUE)
        memory.list_seen[place] = memory.term_seen[2 * TERM * batch.numbers[first + at] + SEEN] + unknown
        memory.list_term[place] = batch.numbers[first + at]
        if newest >= oldest:
            memory.list_going[going], memory.list_entry[place] = place, newest
            going += 1
    for turn in range(memory.most_entries_per_term):
        for each in range(going):
            place = memory.list_going[each]
            entry = (memory.list_entry[place] & memory.last_entry) * ENTRY
            memory.list_story[place], memory.list_back[place] = memory.entries[entry], memory.entries[entry + BACK]
            memory.list_share[place] = memory.entry_weights[entry + WEIGHT]
        ready, going = going, 0
        for each in range(ready):
            place = memory.list_going[each]
            rows = add_up(memory, place, rows)
            before = memory.list_entry[place] - memory.list_back[place]
            if memory.list_back[place] != 0 and before >= oldest:
                memory.list_going[going], memory.list_entry[place] = place, before
                going += 1
            else:
                memory.term_lengths[2 * TERM * memory.list_term[place] + LENGTH] = turn + 1
    return rows


def add_up(memory: StoryMemory, place: int, rows: int) -> int:
    """Adds what a list's entry says to its story's row of the tally, a hash table. Returns how many rows are taken.

    A story that took in another may have two entries of a term: the term is evidence once.
    """
    story: int = memory.list_story[place]
    if story != NONE and memory.story_flags[story & memory.last_story] & MOVED:
        story = root_of(memory, story)
    if story == NONE:
        return rows
    row = (story * 40503) & (TALLY_ROWS - 1)
    while memory.tally_story[row] != NONE and memory.tally_story[row] != story:
        row = (row + 1) & (TALLY_ROWS - 1)
    if memory.tally_story[row] == NONE:
        memory.tally_story[row], memory.tally_terms[row] = story, 0
        memory.tally_likeness[row] = memory.tally_evidence[row] = memory.tally_specific[row] = 0.0
        memory.tally_rarest[row] = memory.tally_outside[row] = MOST_OUTSIDE
        memory.tally_rows[rows] = row
        rows += 1
    memory.tally_likeness[row] += memory.list_weight[place] * memory.list_share[place]
    # About so many posts of the story have the term: each adds its weight, which was about this post's.
    posts = max(min(memory.list_share[place] / memory.list_weight[place], memory.list_seen[place]), 1.0)
    memory.tally_specific[row] += memory.list_value[place] * posts / (memory.list_seen[place] + 1.0)
    bit = ONE << memory.order[place]
    if memory.tally_terms[row] & bit:
        return rows
    memory.tally_terms[row] |= bit
    memory.tally_evidence[row] += memory.list_evidence[place]
    if memory.list_evidence[place] > 0.0:
        outside = max(memory.list_seen[place] - posts, 0.0)
        if outside < memory.tally_rarest[row]:
            memory.tally_outside[row], memory.tally_rarest[row] = memory.tally_rarest[row], outside
        elif outside < memory.tally_outside[row]:
            memory.tally_outside[row] = outside
    return rows


def find_most_probable(memory: StoryMemory, batch: StoryBatch, post: int, terms: int, rows: int) -> None:
    """Finds the story that a post of so many terms most probably belongs to, if that is enough, and the second. A story
    that is much less alike than another is none of them.

    Posts of many terms are compared with each post of a story: the likeness is the average. Headlines of one story
    often share words only with the story as a whole: posts of few terms are compared with its sum.
    """
    bonus = memory.meaning * (1.0 - memory.usual_closeness) if memory.dimensions else 0.0
    share = min(max((terms - memory.few_terms) / (memory.many_terms - memory.few_terms), 0.0), 1.0)
    signs = share_of_signs(batch, post)
    memory.share = share * (1.0 - signs)
    asked = memory.short + (memory.long + (memory.signs - memory.long) * signs - memory.short) * share
    memory.best = memory.second = NONE
    memory.likeness = memory.score = memory.second_score = 0.0
    share_asked = 1.0 if memory.posts_seen < FEW_SEEN else signs
    least_evidence = memory.least_evidence + share_asked * (memory.least_at_first - memory.least_evidence)
    versions = versions_in(batch, post)
    highest, alike = asked, 0
    for at in range(rows):
        row = memory.tally_rows[at]
        # A story's length is at least 1: most stories need not even be looked at.
        if memory.tally_likeness[row] + bonus < asked or memory.tally_evidence[row] < memory.least_evidence:
            continue
        number = memory.tally_story[row]
        record = (number & memory.last_story) * RECORD
        size = memory.story_numbers[2 * record + POSTS]
        if evidence_of(memory, memory.tally_terms[row], terms, size) < least_evidence:
            continue
        if versions != 0 and memory.tally_terms[row] & versions == 0:
            continue
        if memory.story_numbers[2 * record + NUMBER] != number or size >= memory.most_posts:
            continue
        if abs(batch.times[post] - memory.story_sums[record + FIRST]) > memory.window:
            continue
        if is_own(memory, batch, post, record) or is_barred(batch, number):
            continue
        if are_two_languages(batch.languages[post], language_of(memory, number)):
            continue
        length = pow(memory.story_sums[record + SQUARE], 0.5 * (1.0 - share)) * pow(size, share)
        value = memory.tally_likeness[row] / length
        if memory.dimensions and value >= memory.least_share * asked:
            value += memory.meaning * (closeness(memory, batch, post, number) - memory.usual_closeness)
        if value >= asked:
            memory.tally_value[row], memory.alike_rows[alike] = value, row
            highest, alike = max(highest, value), alike + 1
    least = highest * (memory.nearly + (1.0 - memory.nearly) * min(highest, 1.0))
    least_second = highest * (memory.nearly_second + (1.0 - memory.nearly_second) * min(highest, 1.0))
    if alike:
        memory.logs[7] = rarity_of_joins(memory)
    for at in range(alike):
        row = memory.alike_rows[at]
        if memory.tally_value[row] >= least_second:
            likeness = pow(min(memory.tally_value[row], 1.0), LOG_HALF / log(asked))
            compare(memory, batch, post, row, likeness, terms, memory.tally_value[row] >= least)
    if memory.score < memory.threshold:
        memory.best, memory.likeness, memory.score = NONE, 0.0, 0.0


def evidence_of(memory: StoryMemory, shared: int, terms: int, posts: int) -> float:
    """How much the shared terms of a post, which are bits, exclude a coincidence with a story of so many posts.

    Words that many stories have do not. Everyday words do so less, the more the larger the story is. Words that stand
    side by side may be one name: while few posts were seen, what follows the first of them counts less, unless most of
    the post is shared.
    """
    evidence, before, count = 0.0, False, 0
    for at in range(terms):
        if shared & (ONE << at) != 0:
            count += 1
    is_unsure = memory.posts_seen < FEW_SEEN and count < MOST_OF_A_POST * terms
    beside = memory.side_by_side if is_unsure else 1.0
    everyday = min(memory.everyday + posts / memory.everyday_posts, 1.0)
    for at in range(terms):
        is_shared = shared & (ONE << at) != 0
        if is_shared:
            value = everyday if memory.telling[at] == EVERYDAY_EVIDENCE else memory.telling[at]
            if is_unsure:
                value *= memory.at_first[at]
            evidence += value * beside if before and memory.telling[at] != PAIR_EVIDENCE else value
        before = is_shared
    return evidence


def versions_in(batch: StoryBatch, post: int) -> int:
    """Which terms of a post, as bits, are versions. It is about no other: a story has to have one of them."""
    versions = 0
    for at in range(batch.starts[post + 1] - batch.starts[post]):
        if batch.letters[batch.starts[post] + at] == VERSION:
            versions |= ONE << at
    return versions


def posts_of(memory: StoryMemory, number: int) -> int:
    posts: int = memory.story_numbers[(number & memory.last_story) * 2 * RECORD + POSTS]
    return posts


def compare(
    memory: StoryMemory, batch: StoryBatch, post: int, row: int, likeness: float, terms: float, may_be_first: bool
) -> None:
    """Puts a story of the tally first or second, if it is as probable as that. `likeness` is one half or more."""
    posts = 1.0 * posts_of(memory, memory.tally_story[row])
    shared, specific = log(memory.tally_evidence[row]), memory.tally_specific[row] / memory.tally_evidence[row]
    memory.logs[0], memory.logs[1] = log(likeness / (1.001 - likeness)), shared
    memory.logs[2], memory.logs[3], memory.logs[4] = log(posts), log(terms), log(posts) * shared
    memory.logs[5], memory.logs[6] = log(1.0 + memory.tally_outside[row]), min(specific, 1.0)
    odds = memory.odds[0] + memory.share * (memory.long_odds[0] - memory.odds[0])
    for at in range(LOGS):
        odds += (memory.odds[at + 1] + memory.share * (memory.long_odds[at + 1] - memory.odds[at + 1])) * memory.logs[
            at
        ]
    score = 1.0 / (1.0 + exp(-odds))
    number = memory.tally_story[row]
    if may_be_first and (score > memory.score or (score == memory.score and number < memory.best)):
        memory.second, memory.second_score = memory.best, memory.score
        memory.best, memory.score, memory.likeness = number, score, memory.tally_likeness[row]
        note(memory, batch, post, 0, number)
    elif score > memory.second_score or (score == memory.second_score and number < memory.second):
        memory.second, memory.second_score = number, score
        note(memory, batch, post, 1, number)


def rarity_of_joins(memory: StoryMemory) -> float:
    """By how much the odds that a post joins a story are lower of late than usual; 0 if they are not. It begins with
    the usual, as if so many posts had been seen."""
    joined = memory.posts_joined + USUALLY_JOINED * USUAL_POSTS
    alone = memory.posts_seen - memory.posts_joined + (1.0 - USUALLY_JOINED) * USUAL_POSTS
    return min(log(joined / alone) - log(USUALLY_JOINED / (1.0 - USUALLY_JOINED)), 0.0)


def note(memory: StoryMemory, batch: StoryBatch, post: int, place: int, number: int) -> None:
    """Writes down what speaks for the most probable story (`place` 0; what was there becomes second) or the second."""
    at = 2 * post
    if place == 0:
        batch.likely[at + 1] = batch.likely[at]
        for step in range(LOGS):
            batch.logs[(at + 1) * LOGS + step] = batch.logs[at * LOGS + step]
    batch.likely[at + place] = number
    for step in range(LOGS):
        batch.logs[(at + place) * LOGS + step] = memory.logs[step]


def is_own(memory: StoryMemory, batch: StoryBatch, post: int, record: int) -> bool:
    """Whether all that a story has is from the source of a post: a source's own posts are no tellings of each other."""
    return batch.sources[post] != SEVERAL and memory.story_leaders[record + SOURCE] == batch.sources[post]


def are_two_languages(one: int, other: int) -> bool:
    return one != other and one != 0 and other != 0


def closeness(memory: StoryMemory, batch: StoryBatch, post: int, number: int) -> float:
    """The cosine of the angle between a story's meaning and a post's."""
    of_story, of_post = (number & memory.last_story) * memory.dimensions, post * memory.dimensions
    product = square = length = 0.0
    for at in range(memory.dimensions):
        product += memory.meanings[of_story + at] * batch.meanings[of_post + at]
        square += memory.meanings[of_story + at] * memory.meanings[of_story + at]
        length += batch.meanings[of_post + at] * batch.meanings[of_post + at]
    return product / sqrt(square * length) if square * length > 0.0 else 0.0


def meet(memory: StoryMemory, batch: StoryBatch, post: int, first: int, looked_up: int) -> None:
    """Counts a post that joined a story as a bridge to the second one. With enough bridges, the two become one.

    The older one stays: it is the one that somebody may have seen. A story with posts that were told apart from others
    meets none, nor do two stories that one and the same source tells alone.
    """
    kept, moved = min(memory.best, memory.second), max(memory.best, memory.second)
    known = memory.bridges.size
    bridge = add(memory.bridges, (kept << BRIDGE_BITS) | moved)
    if bridge == known:
        memory.bridge_sums[bridge] = 0.0
    memory.bridge_sums[bridge] += memory.second_score
    one, other = (kept & memory.last_story) * RECORD, (moved & memory.last_story) * RECORD
    posts, others = memory.story_numbers[2 * one + POSTS], memory.story_numbers[2 * other + POSTS]
    odds = memory.meeting_odds[0] + memory.meeting_odds[1] * log(max(posts, others))
    odds += memory.meeting_odds[2] * log(min(posts, others)) + memory.meeting_odds[4] * log(memory.bridge_sums[bridge])
    odds += memory.meeting_odds[3] * log(memory.second_score / (1.0 - min(memory.second_score, 0.9999)))
    score = 1.0 / (1.0 + exp(-odds))
    if memory.bridge_sums[bridge] <= ONE_BRIDGE or score < memory.meeting or posts + others > memory.most_posts:
        return
    if (memory.story_flags[kept & memory.last_story] | memory.story_flags[moved & memory.last_story]) & GUARDED:
        return
    if are_two_languages(language_of(memory, kept), language_of(memory, moved)):
        return
    if memory.story_leaders[one + SOURCE] != SEVERAL and (
        memory.story_leaders[one + SOURCE] == memory.story_leaders[other + SOURCE]
    ):
        return
    if abs(memory.story_sums[one + FIRST] - memory.story_sums[other + FIRST]) > memory.window:
        return
    batch.kept[post], batch.moved[post] = memory.story_leaders[one + LEADER], memory.story_leaders[other + LEADER]
    batch.moved_numbers[post], batch.met_scores[post] = moved, score
    join_stories(memory, batch, kept, moved, first, looked_up)
