# The C types of `story_memory.py`.
cimport cython
from libc.math cimport exp, log, pow, sqrt

from headwater.dedup.story_terms cimport StoryBatch, is_barred, share_of_signs

cdef int MOST_TERMS, SHOWN, NONE, TALLY_ROWS
cdef double LOG_HALF, UNSEEN
cdef int TERM, SEEN, LENGTH, ENTRY, STORY, WEIGHT, BACK
cdef int RECORD, LEADER, SQUARE, FIRST, LEADER_TIME, SOURCE, NUMBER, POSTS, SEVERAL

cdef class StoryMemory:
    cdef double threshold, window, background, short, long, signs, few_terms, many_terms, least_evidence
    cdef double base, by_likeness, by_shared, by_posts, by_terms, by_both
    cdef double meaning, usual_closeness, least_share
    cdef int most_posts, least_entries, entries_per_term, most_entries_per_term
    cdef readonly int terms, dimensions
    cdef readonly long long next_story, next_entry, oldest_entry
    cdef long long last_story, last_entry
    cdef double posts_seen
    cdef long long[::1] term_newest
    cdef float[::1] term_seen
    cdef int[::1] term_lengths
    cdef int[::1] entries
    cdef float[::1] entry_weights
    cdef long long[::1] story_leaders
    cdef double[::1] story_sums
    cdef int[::1] story_numbers
    cdef float[::1] meanings
    cdef double[::1] post_weights, strongest
    cdef int[::1] order, tally_story, tally_rows, list_term, list_story, list_back
    cdef float[::1] tally_likeness, tally_evidence, list_weight, list_evidence, list_share
    cdef long long[::1] list_entry
    cdef int best
    cdef double likeness, score

    cpdef make_room_for_terms(self, int count)
    @cython.locals(term=int, kept=int)
    cpdef keep_terms(self, unsigned char[::1] chosen)
    cpdef are_young(self, int[::1] numbers, double since)
    cpdef decide(self, StoryBatch batch)
    cpdef unlearn(self, StoryBatch batch, long long number)

cdef bint has_story(StoryMemory memory, long long number) noexcept nogil
cdef bint is_young(StoryMemory memory, long long number, double since) noexcept nogil
@cython.locals(record="long long", is_new=cython.bint)
cdef void decide_post(StoryMemory memory, StoryBatch batch, int post) noexcept nogil
@cython.locals(weight=double, rarity=double, square=double)
cdef void weigh(StoryMemory memory, StoryBatch batch, int first, int count) noexcept nogil
@cython.locals(place=int)
cdef void sort_by_weight(StoryMemory memory, int count) noexcept nogil
@cython.locals(entries=int, most=int, length=int)
cdef int how_many_to_look_up(StoryMemory memory, StoryBatch batch, int first, int count) noexcept nogil
@cython.locals(oldest="long long", newest="long long", entry="long long", before="long long", going=int, rows=int,
               ready=int)
cdef int add_up_lists(StoryMemory memory, StoryBatch batch, int first, int looked_up) noexcept nogil
@cython.locals(row=int)
cdef int add_up(StoryMemory memory, long long story, float likeness, float evidence, int rows) noexcept nogil
@cython.locals(number=int, record="long long", size=int, value=double, likeness=float, highest=double,
               signs=double, asked=double)
cdef void find_most_alike(StoryMemory memory, StoryBatch batch, int post, int terms, int rows) noexcept nogil
@cython.locals(odds=double)
cdef double probability(StoryMemory memory, double likeness, double shared, double posts, double terms) noexcept nogil
cdef bint is_own(StoryMemory memory, StoryBatch batch, int post, long long record) noexcept nogil
@cython.locals(of_story="long long", of_post="long long", product=double, square=double, length=double)
cdef double closeness(StoryMemory memory, StoryBatch batch, int post, long long number) noexcept nogil
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
