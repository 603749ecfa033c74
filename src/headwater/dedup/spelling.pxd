# The C types of `spelling.py`.

cdef int _OTHER, _LETTER, DIGIT, SIGN, _CURRENCY, _JOINER, _PERCENT, _SPACE, _MINUS
cdef unsigned int _KNOWN, _LAST_SIGN, _COMMA
cdef const unsigned char[::1] CLASSES

cdef class Spelling:
    cdef readonly bytearray text, kinds
    cdef readonly object starts, ends, first
    cdef const unsigned int[::1] codes
    cdef unsigned char[::1] out, word_kinds
    cdef int[::1] word_starts, word_ends
    cdef int at

cdef int _spell(Spelling spelling, int start, int end, int words) noexcept nogil
cdef int _end_of_word(Spelling spelling, int start, int first, int end) noexcept nogil
cdef int _end_of_number(Spelling spelling, int start, int first, int end) noexcept nogil
cdef int _end_of_letters(Spelling spelling, int at, int end) noexcept nogil
cdef bint _parts_thousands(Spelling spelling, int at, int end) noexcept nogil
cdef int _kind_of(unsigned int code) noexcept nogil
cdef void _write(Spelling spelling, unsigned int code) noexcept nogil
