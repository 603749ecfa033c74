# The C types of `story_choice.py`.
cimport cython
from libc.math cimport exp, log, pow, sqrt

from headwater.dedup.arrays cimport add
from headwater.dedup.story_memory cimport (
    BACK, ENTRY, FIRST, FLAG_BITS, GUARDED, LEADER, LEADER_TIME, LENGTH, MOVED, NONE, NUMBER, POSTS, RECORD, SEEN, SEVERAL, SOURCE,
    SQUARE, TALLY_ROWS, TERM, WEIGHT, StoryMemory, add_meaning, begin_story, join_stories, language_of, learn,
    root_of, weigh)
from headwater.dedup.story_terms cimport VERSION, StoryBatch, is_barred, share_of_signs

cdef int BRIDGE_BITS, LOGS, SHORTEST_WORD, SHORT_WORD
cdef unsigned long long ONE
cdef double LOG_HALF, NUMBER_VALUE, UNKNOWN, FEW_SEEN, MOST_OF_A_POST, ONE_BRIDGE, USUALLY_JOINED, USUAL_POSTS
cdef float MOST_OUTSIDE, PAIR_EVIDENCE, EVERYDAY_EVIDENCE, SHORT_EVIDENCE

cpdef decide(StoryMemory memory, StoryBatch batch)
@cython.locals(is_new=cython.bint)
cdef void decide_post(StoryMemory memory, StoryBatch batch, int post) noexcept nogil
@cython.locals(record="long long")
cdef void join(StoryMemory memory, StoryBatch batch, int post) noexcept nogil
@cython.locals(place=int)
cdef void sort_by_weight(StoryMemory memory, int count) noexcept nogil
@cython.locals(entries=int, most=int, length=int)
cdef int how_many_to_look_up(StoryMemory memory, StoryBatch batch, int first, int count) noexcept nogil
@cython.locals(oldest="long long", newest="long long", entry="long long", before="long long", going=int, rows=int,
               ready=int, place=int, unknown=double, everyday=double, first=int)
cdef int add_up_lists(StoryMemory memory, StoryBatch batch, int post, int looked_up) noexcept nogil
@cython.locals(row=int, story=int, posts=float, outside=float, bit="unsigned long long")
cdef int add_up(StoryMemory memory, int place, int rows) noexcept nogil
@cython.locals(number=int, record="long long", size=int, value=double, length=double, bonus=double, share=double,
               signs=double, asked=double, highest=double, alike=int, likeness=double, least=double, least_second=double,
               least_evidence=double, share_asked=double, versions="unsigned long long")
cdef void find_most_probable(StoryMemory memory, StoryBatch batch, int post, int terms, int rows) noexcept nogil
@cython.locals(at=int, count=int, is_unsure=cython.bint, evidence=double, beside=double, everyday=double, value=double,
               before=cython.bint, is_shared=cython.bint)
cdef double evidence_of(StoryMemory memory, unsigned long long shared, int terms,
                        int posts) noexcept nogil
@cython.locals(at=int, versions="unsigned long long")
cdef unsigned long long versions_in(StoryBatch batch, int post) noexcept nogil
cdef int posts_of(StoryMemory memory, long long number) noexcept nogil
@cython.locals(shared=double, specific=double, odds=double, score=double, number=int, posts=double)
cdef void compare(StoryMemory memory, StoryBatch batch, int post, int row, double likeness, double terms,
                  bint may_be_first) noexcept nogil
@cython.locals(joined=double, alone=double)
cdef double rarity_of_joins(StoryMemory memory) noexcept nogil
@cython.locals(at=int, step=int)
cdef void note(StoryMemory memory, StoryBatch batch, int post, int place, int number) noexcept nogil
cdef bint is_own(StoryMemory memory, StoryBatch batch, int post, long long record) noexcept nogil
cdef bint are_two_languages(int one, int other) noexcept nogil
@cython.locals(of_story="long long", of_post="long long", product=double, square=double, length=double)
cdef double closeness(StoryMemory memory, StoryBatch batch, int post, long long number) noexcept nogil
@cython.locals(kept="long long", moved="long long", known=int, bridge=int, one="long long", other="long long",
               posts=int, others=int, odds=double, score=double)
cdef void meet(StoryMemory memory, StoryBatch batch, int post, int first, int looked_up) noexcept nogil
