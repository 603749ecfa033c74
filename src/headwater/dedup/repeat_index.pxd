# The C types of `repeat_index.py`.
cimport cython

from headwater.dedup.compare cimport (
    ARTICLE, BY_LINK, BY_WORDS, CUT, GONE, IS_LIGHT, Comparison, Text, content, lead_key, measure, mix, read_words,
    same_text, score,
)
from headwater.dedup.repeat_batch cimport Batch, hash_without_light, telling_words
from headwater.dedup.contradictions cimport contradicts

cdef int LEADERS_PER_KEY, MOST_COMPARED, MOST_PAIRS, MOST_RUN_KEYS, MOST_CANDIDATES
cdef int CUT_CONTENT, LEAST_CONTENT, TELLING_CONTENT, TELLING_WORDS, MOST_RUNS, NUMBERED
cdef double OWN_OVERLAP
cdef unsigned long long LOW_HALF, LAST_COUNTER
cdef int ALONE, LEADS
cdef int RECORD, SMALL, POST, START, END, WHOLE, MENTIONS, CREATED_AT, SOURCE, WORDS, HEAD, TAIL, RUNS, RUN_COUNT, FLAGS

cdef class RepeatIndex:
    cdef double window, threshold
    cdef dict labels
    cdef readonly dict contradicted
    cdef int leaders, gone, run_sets
    cdef long long text_size, slots_used
    cdef long long[::1] numbers
    cdef unsigned long long[::1] hashes
    cdef double[::1] times
    cdef int[::1] small
    cdef unsigned char[::1] text
    cdef unsigned long long[::1] runs, slots, keys
    cdef unsigned int[::1] seen, rarity
    cdef long long[::1] candidates
    cdef int[::1] shared
    cdef Text new, old
    cdef Comparison found

    cpdef forget(self, long long post)
    cpdef expire(self, double before)
    cdef void _drop(self, int number)
    cdef object _decision(self, object post, object text, long long number, Batch batch, int row)
    cdef int _make_room(self, Batch batch) except -1

cdef void decide_all(RepeatIndex index, Batch batch) noexcept nogil
cdef void read_post(RepeatIndex index, Batch batch, int at) noexcept nogil
@cython.locals(words=int, found=int, telling=int)
cdef int find_keys(RepeatIndex index, Batch batch, int at) noexcept nogil
@cython.locals(by=int, is_enough=cython.bint, with_them="unsigned long long")
cdef int few_words_key(RepeatIndex index, Batch batch, int at, int telling) noexcept nogil
@cython.locals(before="unsigned long long", kept=int)
cdef int rarest_pairs(RepeatIndex index) noexcept nogil
@cython.locals(times="unsigned int", place=int)
cdef int keep_rare(RepeatIndex index, unsigned long long pair, int kept) noexcept nogil
@cython.locals(half="unsigned long long", slot="unsigned long long", last="unsigned long long", count=int)
cdef int find_candidates(RepeatIndex index, int keys) noexcept nogil
cdef int add_candidate(RepeatIndex index, long long number, int count) noexcept nogil
@cython.locals(best=int)
cdef long long next_candidate(RepeatIndex index, int count) noexcept nogil
@cython.locals(highest=double, compared=int, is_own=cython.bint)
cdef bint choose(RepeatIndex index, Batch batch, int keys, int at) noexcept nogil
@cython.locals(flags=int, is_own=cython.bint)
cdef bint repeats_few_words(RepeatIndex index, Batch batch, long long number, int at) noexcept nogil
cdef bint is_apart(Batch batch, int at, long long post) noexcept nogil
@cython.locals(first="long long")
cdef void read_leader(RepeatIndex index, long long number) noexcept nogil
cdef void answer(RepeatIndex index, Batch batch, int at, long long number) noexcept nogil
@cython.locals(number="long long", record="long long", small="long long")
cdef void lead(RepeatIndex index, Batch batch, int keys, int at) noexcept nogil
@cython.locals(slot="unsigned long long", oldest="unsigned long long", last="unsigned long long", known=int)
cdef void put(RepeatIndex index, unsigned long long half, long long number) noexcept nogil
cdef void fill_again(RepeatIndex index, unsigned long long[::1] before, int[::1] renumbered) noexcept nogil
@cython.locals(kept="long long", text="long long", run_sets="long long", number="long long", record="long long",
               small="long long", start="long long", size="long long", first="long long")
cdef void move_up(RepeatIndex index) noexcept nogil
