# The C types of `story_terms.py`.
cimport cython

from headwater.dedup.arrays cimport BITS, NONE, HashTable, add, find
from headwater.dedup.spelling cimport DIGIT, SIGN

cdef int LOGS, MOST_TERMS, PHRASE_LETTERS, SHORTEST_WITH_ENDING, LEAST_MARKS, LEAST_LEAD
cdef int LANGUAGE_COUNT, SHORTEST_DAY, VERSION, MANY_WORDS, FEW_COMMON
cdef float TITLE_WEIGHT, LEAD_WEIGHT, WORD_EVIDENCE, PAIR_EVIDENCE, PHRASE_EVIDENCE, NUMBER_EVIDENCE, EVERYDAY_EVIDENCE
cdef unsigned long long FNV_START, FNV_PRIME

cdef class Terms:
    cdef readonly int posts
    cdef unsigned char[::1] text, word_kinds
    cdef int[::1] word_starts, word_ends, first
    cdef readonly int[::1] starts, numbers, letters, begins, ends
    cdef readonly float[::1] weights, evidence
    cdef readonly int[::1] languages, unlisted
    cdef int[::1] marks, marked
    cdef int words, common_words
    cdef HashTable vocabulary, common, everyday, marking

cdef class StoryBatch:
    cdef readonly int size
    cdef int[::1] starts, numbers, letters, languages, unlisted, barred
    cdef float[::1] weights, evidence, meanings
    cdef long long[::1] ids, sources
    cdef double[::1] times
    cdef int barred_count
    cdef bint guarded
    cdef readonly int[::1] stories, shown, likely, moved_numbers
    cdef readonly long long[::1] leaders, kept, moved
    cdef readonly float[::1] scores, met_scores, logs

@cython.locals(pairs=int)
cdef double share_of_signs(StoryBatch batch, int post) noexcept nogil
cdef bint is_barred(StoryBatch batch, int number) noexcept nogil
@cython.locals(is_unlisted=cython.bint)
cdef void read_posts(Terms terms) noexcept nogil
@cython.locals(best=int, most=int, second=int, marks=int, language=int)
cdef int most_marked(Terms terms) noexcept nogil
@cython.locals(place=int, language=int)
cdef void mark(Terms terms, unsigned long long key) noexcept nogil
@cython.locals(sign=int, word=int, key="unsigned long long")
cdef void read_part(Terms terms, int post, int part, float weight) noexcept nogil
@cython.locals(key="unsigned long long", evidence=float)
cdef void add_word(Terms terms, int post, int word, float weight) noexcept nogil
cdef void add_term(Terms terms, int post, unsigned long long key, int first_word, int last_word, float weight,
                   float evidence) noexcept nogil
cdef unsigned long long fingerprint(Terms terms, unsigned long long key, int start, int end) noexcept nogil
cdef unsigned long long extended(unsigned long long key, unsigned char byte) noexcept nogil
cdef int length_of_ending(Terms terms, int start, int end) noexcept nogil
cdef bint is_one_character(Terms terms, int start, int end) noexcept nogil
@cython.locals(code=int)
cdef bint names_a_day(Terms terms, int start, int end) noexcept nogil
cdef bint is_phrase(Terms terms, int start, int end) noexcept nogil
@cython.locals(letters=int)
cdef int letters_in(Terms terms, int start, int end) noexcept nogil
@cython.locals(dots=int, digits=int, is_amount=cython.bint)
cdef bint is_version(Terms terms, int word) noexcept nogil
