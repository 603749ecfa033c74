# The C types of `contradictions.py`.
cimport cython

from headwater.dedup.compare cimport ARTICLE, HAS_DIGIT, Comparison, Text, same_word

cdef int LEAD, MOST_CHANGED, QUESTION, NEGATION
cdef unsigned int SLOTS
cdef double LEAST_OVERLAP
cdef unsigned long long[::1] HASHES
cdef int[::1] ANSWERS

@cython.locals(head=int, tail=int, shorter=int, changed=int)
cdef bint contradicts(Text a, Text b, Comparison found) noexcept nogil
@cython.locals(changed=int, opposite=cython.bint)
cdef bint one_by_one(Text a, Text b) noexcept nogil
@cython.locals(one=int, other=int)
cdef bint opposed(Text a, int i, int i_end, Text b, int j, int j_end) noexcept nogil
cdef bint has_negation(Text text, int start, int end) noexcept nogil
cdef int answer_of(unsigned long long value) noexcept nogil
