# The C types of `arrays.py`.
cimport cython

cdef int NONE
cdef unsigned long long BITS, SPREAD

cdef class HashTable:
    cdef readonly int size
    cdef long long[::1] keys
    cdef int[::1] slots

    @cython.locals(number=int, kept=int)
    cpdef keep(self, unsigned char[::1] chosen)

cdef void fill(HashTable table) noexcept nogil
@cython.locals(last="unsigned long long", slot="unsigned long long")
cdef unsigned long long slot_of(HashTable table, long long key) noexcept nogil
cdef void find_all(HashTable table, long long[::1] keys, int[::1] numbers) noexcept nogil
cdef void add_all(HashTable table, long long[::1] keys, int[::1] numbers) noexcept nogil
cdef int find(HashTable table, long long key) noexcept nogil
cdef int add(HashTable table, long long key) noexcept nogil
