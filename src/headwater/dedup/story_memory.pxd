# The C types of `story_memory.py`.
cimport cython
from libc.math cimport log, sqrt

from headwater.dedup.arrays cimport HashTable
from headwater.dedup.story_terms cimport StoryBatch

cdef int LOGS, MOST_TERMS, SHOWN, NONE, TALLY_ROWS
cdef double UNSEEN
cdef int TERM, SEEN, LENGTH, ENTRY, STORY, WEIGHT, BACK
cdef int RECORD, LEADER, SQUARE, FIRST, LEADER_TIME, SOURCE, NUMBER, POSTS, SEVERAL, MOVED, GUARDED, FLAG_BITS

cdef class StoryMemory:
    cdef double threshold, window, background, short, long, signs, few_terms, many_terms, least_evidence, least_at_first
    cdef double side_by_side, everyday, everyday_posts, everyday_share, least_everyday, most_everyday
    cdef double nearly, nearly_second, bridge, meeting, meaning, usual_closeness, least_share
    cdef int most_posts, least_entries, entries_per_term, most_entries_per_term
    cdef readonly int terms, dimensions
    cdef readonly long long next_story, next_entry, oldest_entry
    cdef long long last_story, last_entry
    cdef double posts_seen, posts_joined
    cdef long long[::1] term_newest
    cdef float[::1] term_seen
    cdef int[::1] term_lengths
    cdef int[::1] entries
    cdef float[::1] entry_weights
    cdef long long[::1] story_leaders
    cdef double[::1] story_sums
    cdef int[::1] story_numbers
    cdef int[::1] story_flags
    cdef HashTable bridges
    cdef float[::1] bridge_sums, meanings
    cdef double[::1] odds, long_odds, meeting_odds, post_weights, strongest, logs
    cdef int[::1] order, tally_story, tally_rows, alike_rows, list_term, list_story, list_back, list_going
    cdef unsigned long long[::1] tally_terms
    cdef float[::1] tally_likeness, tally_evidence, tally_specific, tally_rarest, tally_outside, tally_value
    cdef float[::1] list_weight, list_evidence, list_share, list_value, list_seen, telling, at_first
    cdef long long[::1] list_entry
    cdef int best, second
    cdef double likeness, score, second_score, share

    cpdef make_room_for_terms(self, int count)
    @cython.locals(term=int, kept=int)
    cpdef keep_terms(self, unsigned char[::1] chosen)
    cpdef are_young(self, int[::1] numbers, double since)
    cpdef unlearn(self, StoryBatch batch, long long number)

cdef bint has_story(StoryMemory memory, long long number) noexcept nogil
cdef int language_of(StoryMemory memory, long long number) noexcept nogil
cdef long long root_of(StoryMemory memory, long long number) noexcept nogil
@cython.locals(root="long long")
cdef bint is_young(StoryMemory memory, long long number, double since) noexcept nogil
@cython.locals(weight=double, rarity=double, square=double)
cdef void weigh(StoryMemory memory, StoryBatch batch, int first, int count) noexcept nogil
@cython.locals(slot="long long", record="long long")
cdef void begin_story(StoryMemory memory, long long post, double time, long long source) noexcept nogil
@cython.locals(of_story="long long", of_post="long long")
cdef void add_meaning(StoryMemory memory, StoryBatch batch, int post, long long number, int times) noexcept nogil
@cython.locals(entry="long long", weight=double)
cdef void learn(StoryMemory memory, StoryBatch batch, int post, int first, int count, int looked_up,
                bint is_new) noexcept nogil
@cython.locals(oldest="long long", number="long long", entry="long long")
cdef long long entry_of(StoryMemory memory, long long term, int story) noexcept nogil
@cython.locals(number="long long", newest="long long", back=int, entry="long long", length=int)
cdef void write_entry(StoryMemory memory, long long term, int story, double weight) noexcept nogil
cdef void show(StoryMemory memory, StoryBatch batch, int post, int at, double value) noexcept nogil
@cython.locals(record="long long", entry="long long", weight=double, likeness=double, square=double)
cdef void unlearn_post(StoryMemory memory, StoryBatch batch, long long number) noexcept nogil
@cython.locals(product=double, term="long long", one="long long", other="long long", old="long long", new="long long")
cdef void join_stories(StoryMemory memory, StoryBatch batch, int kept, int moved, int first,
                       int looked_up) noexcept nogil
