# The C types of `repeat_batch.py`.
cimport cython

from headwater.dedup.compare cimport (
    ALL_BITS, CUT, FNV_PRIME, FNV_START, HAS_DIGIT, IS_LIGHT, IS_SIGN, TORN, Text, is_among,
)

cdef unsigned int UNTELLING_SLOTS
cdef unsigned long long[::1] UNTELLING_WORDS

cdef class Batch:
    cdef int size, longest, letters
    cdef unsigned char[::1] text, flags
    cdef int[::1] starts, ends, first, apart_end, counts
    cdef long long[::1] ids, apart, leaders, contradicted, sources
    cdef double[::1] created_at, overlaps
    cdef unsigned long long[::1] mentions, links

@cython.locals(kept=int)
cdef int telling_words(Text text, int until) noexcept nogil
@cython.locals(slot="unsigned long long")
cdef bint is_untelling(unsigned long long value) noexcept nogil
@cython.locals(value="unsigned long long", ends_in_digit=cython.bint)
cdef unsigned long long hash_without_light(Text text) noexcept nogil
