# The C types of `compare.py`.
cimport cython

cdef int ADDRESSED_CONTENT, CUT_WITHOUT_DOTS, LEAST_CONTENT, LEAST_CUT, LEAD, LONG, LONGEST_WORD, MOST_RUNS, NUMBERED, RUN
cdef int SIGN_CONTENT, WORD_CONTENT, CUT_CONTENT
cdef double LEAST_OVERLAP
cdef int IS_LIGHT, IS_TURNING, IS_SIGN, HAS_DIGIT
cdef int CUT, TORN, ARTICLE, BY_LINK, GONE, BY_WORDS
cdef unsigned long long FNV_START, FNV_PRIME, GOLDEN, ALL_BITS
cdef unsigned int SLOTS
cdef unsigned long long[::1] KNOWN
cdef const unsigned char[::1] KNOWN_KINDS

cdef class Text:
    cdef unsigned char[::1] data
    cdef int[::1] starts, ends
    cdef unsigned long long[::1] hashes
    cdef unsigned char[::1] kinds
    cdef unsigned long long[::1] runs, distinct
    cdef unsigned int[::1] letters
    cdef int most_words, size, total, head, tail, flags, run_count
    cdef unsigned long long mentions, whole

cdef class Comparison:
    cdef int slips, light, rest
    cdef bint cut
    cdef double overlap

cdef unsigned long long mix(unsigned long long value, unsigned long long item) noexcept nogil
@cython.locals(value="unsigned long long", kind=int, count=int, at=int, first=int)
cdef void read_words(Text text, int start, int end) noexcept nogil
cdef int kind_of_known(unsigned long long value) noexcept nogil
cdef unsigned long long compact_hash(Text text) noexcept nogil
@cython.locals(kept=int, total=int)
cdef int content(Text text, int until, int enough) noexcept nogil
cdef bint is_among(unsigned long long[::1] hashes, int count, unsigned long long value) noexcept nogil
@cython.locals(value="unsigned long long", taken=int)
cdef unsigned long long lead_key(Text text) noexcept nogil
cdef void measure(Text text) noexcept nogil
@cython.locals(total=int)
cdef int double_size(Text text) noexcept nogil
@cython.locals(value="unsigned long long", kept=int)
cdef void sample(Text text) noexcept nogil
cdef int place_among(unsigned long long[::1] runs, int count, unsigned long long value) noexcept nogil
@cython.locals(left=int, right=int, i=int, j=int, both=int)
cdef double overlap(Text a, Text b) noexcept nogil
cdef int length(Text text, int word) noexcept nogil
cdef bint same_bytes(Text a, int a_start, Text b, int b_start, int count) noexcept nogil
cdef bint begins_with(Text a, int i, Text b, int j) noexcept nogil
cdef int currency_length(Text text, int word) noexcept nogil
cdef bint lacks_unit(Text a, int i, Text b, int j) noexcept nogil
cdef bint same_word(Text a, int i, Text b, int j) noexcept nogil
@cython.locals(value="unsigned int", count=int)
cdef int spread(Text text, int word) noexcept nogil
cdef bint is_slip(Text a, int i, Text b, int j) noexcept nogil
cdef bint is_one_change(Text a, Text b, int start, int count) noexcept nogil
cdef bint same_letters(Text a, Text b, int start, int end) noexcept nogil
cdef bint is_one_more(Text longer, Text shorter, int start, int count) noexcept nogil
cdef bint is_joined(Text a, int i, Text b, int j) noexcept nogil
cdef bint is_extra(Text a, int i, Text b, int j) noexcept nogil
cdef bint all_light(Text text, int start) noexcept nogil
cdef bint may_miss(int rest, Text shorter, Text longer) noexcept nogil
@cython.locals(i=int, j=int, slips=int, light=int, least=int)
cdef bint small_difference(Text a, Text b, Comparison found) noexcept nogil
cdef bint same_audience(Text a, Text b) noexcept nogil
cdef bint same_numbers(Text shorter, Text longer) noexcept nogil
cdef bint comes_first(Text a, Text b) noexcept nogil
cdef bint same_text(Text a, Text b, Comparison found) noexcept nogil
cdef bint same_in_order(Text a, Text b, Comparison found) noexcept nogil
@cython.locals(value=double, rest=double, thousandths=int)
cdef double score(Comparison found, int words) noexcept nogil
