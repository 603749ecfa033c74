"""What is read and what is written of it: bytes that pass as they are, characters and references that are written in
another way. Tags are for `tidy.pyx`."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc


cdef class _Text:
    """Bytes that are being read, and what has come out of them."""

    cdef const char* at
    cdef const char* end
    cdef char* out
    cdef size_t size
    cdef size_t room

    def __dealloc__(self):
        PyMem_Free(self.out)

    @cython.final
    cdef inline int put(self, const char* written, size_t length) except -1:
        if self.size + length > self.room:
            self.grow(length)
        memcpy(self.out + self.size, written, length)
        self.size += length
        return 0

    @cython.final
    cdef int grow(self, size_t length) except -1:
        cdef size_t room = (self.size + length) * 3 // 2
        cdef char* out = <char*>PyMem_Realloc(self.out, room)
        if out == NULL:
            raise MemoryError
        self.out = out
        self.room = room
        return 0

    cdef bint special(self, const char* end, dict references, bint in_value) except -1:
        """A character that is written in another way than it was read. `end` is the end of the text or value."""
        cdef char c = self.at[0]
        if c == c"&":
            return self.reference(end, references, in_value)
        if c == c">":
            self.put(b"&gt;", 4)
        elif c == c"<":
            self.put(b"&lt;", 4)
        elif c == c'"':
            self.put(b"&quot;", 6)
        elif not self.several_bytes():
            return False  # a control character
        self.at += 1
        return True

    cdef bint several_bytes(self) except -1:
        """A character among whose neighbours are some that cannot be printed. Stays at its last byte."""
        cdef uint8_t first = <uint8_t>self.at[0]
        cdef uint8_t second
        cdef uint8_t third
        if first < 0xC2:
            return False
        second = <uint8_t>self.at[1]
        if first == 0xC2:
            if second < 0xA0:
                return False
            if second == 0xA0:
                self.put(b"&nbsp;", 6)
            else:
                self.put(self.at, 2)
            self.at += 1
            return True
        third = <uint8_t>self.at[2]
        if first == 0xE2 and ((second == 0x80 and 0xAA <= third <= 0xAE) or (second == 0x81 and 0xA6 <= third <= 0xA9)):
            return False  # turns the direction of text
        if first == 0xEF and ((second == 0xBB and third == 0xBF) or (second == 0xBF and third >= 0xBE)):
            return False  # the byte order mark, and no characters
        self.put(self.at, 3)
        self.at += 2
        return True

    cdef bint reference(self, const char* end, dict references, bint in_value) except -1:
        cdef const char* name = self.at + 1
        cdef const char* after = name
        cdef uint32_t code
        cdef Py_ssize_t length
        if after < end and after[0] == c"#":
            code = number(name + 1, end, &after)
            if not code:
                return False
            self.put_character(code, in_value)
            self.at = after
            return True
        while after < end and is_alnum(after[0]):
            after += 1
        written = references.get(name[: after - name]) if after < end and after[0] == c";" else None
        if written is not None:
            self.put(<const char*>(<bytes>written), len(<bytes>written))
            self.at = after + 1
            return True
        # Unless its beginning is one, it is an ampersand; before `=`, or more of a name, that does not count in values.
        if in_value and (after == end or after[0] != c"="):
            if name[: after - name] in BARE_REFERENCES:
                return False
        elif not in_value:
            for length in range(2, min(after - name, LONGEST_BARE_REFERENCE) + 1):
                if name[:length] in BARE_REFERENCES:
                    return False
        self.put(b"&amp;", 5)
        self.at += 1
        return True

    cdef int put_character(self, uint32_t code, bint in_value) except -1:
        cdef char[4] utf8
        if code == 38:
            self.put(b"&amp;", 5)
        elif code == 60:
            self.put(b"&lt;", 4)
        elif code == 62:
            self.put(b"&gt;", 4)
        elif code == 34 and in_value:
            self.put(b"&quot;", 6)
        elif code == 0xA0:
            self.put(b"&nbsp;", 6)
        elif code < 0x80:
            utf8[0] = <char>code
            self.put(utf8, 1)
        elif code < 0x800:
            utf8[0] = <char>(0xC0 | (code >> 6))
            utf8[1] = <char>(0x80 | (code & 0x3F))
            self.put(utf8, 2)
        elif code < 0x10000:
            utf8[0] = <char>(0xE0 | (code >> 12))
            utf8[1] = <char>(0x80 | ((code >> 6) & 0x3F))
            utf8[2] = <char>(0x80 | (code & 0x3F))
            self.put(utf8, 3)
        else:
            utf8[0] = <char>(0xF0 | (code >> 18))
            utf8[1] = <char>(0x80 | ((code >> 12) & 0x3F))
            utf8[2] = <char>(0x80 | ((code >> 6) & 0x3F))
            utf8[3] = <char>(0x80 | (code & 0x3F))
            self.put(utf8, 4)
        return 0


cdef bint begins_with_host(const char* value, size_t length) noexcept:
    """Whether an address is http or https with a host that every parser of addresses takes for a name."""
    cdef const char* at = value
    cdef const char* end = value + length
    cdef const char* label
    if length > 8 and memcmp(at, b"https://", 8) == 0:
        at += 8
    elif length > 7 and memcmp(at, b"http://", 7) == 0:
        at += 7
    else:
        return False
    label = at
    while at < end and is_host[<uint8_t>at[0]]:
        if at[0] == c".":
            if at == label:
                return False
            label = at + 1
        elif at[0] == c"-" and at > label and at[-1] == c"-":
            return False  # xn--
        at += 1
    # A last label that begins with a digit may be a number, and the host an address.
    return at > label and is_letter(label[0]) and (at == end or at[0] == c"/" or at[0] == c"?" or at[0] == c"#")


cdef bint is_scheme(const char* at, const char* colon) noexcept:
    while at < colon and is_alnum(at[0]):
        at += 1
    return at == colon


cdef uint32_t number(const char* at, const char* end, const char** after) noexcept:
    """The character of `&#NNN;`, from its digits on; 0 where a parser would put another in its place."""
    cdef uint32_t code = 0
    cdef int digits = 0
    cdef bint is_hex = at < end and (at[0] == c"x" or at[0] == c"X")
    if is_hex:
        at += 1
    while at < end and digits < 8:
        if c"0" <= at[0] <= c"9":
            code = code * (16 if is_hex else 10) + (at[0] - c"0")
        elif is_hex and c"a" <= (at[0] | 32) <= c"f":
            code = code * 16 + ((at[0] | 32) - c"a" + 10)
        else:
            break
        digits += 1
        at += 1
    if not digits or at == end or at[0] != c";":
        return 0
    after[0] = at + 1
    if 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069 or code == 0xFEFF:
        return 0
    if 0x20 <= code < 0x7F or 0xA0 <= code < 0xD800 or 0xE000 <= code < 0xFDD0 or 0xFE00 <= code < 0xFFF0:
        return code
    return code if 0x10000 <= code < 0x10FFFF and (code & 0xFFFF) < 0xFFF0 else 0


cdef bint is_same_word(const char* one, const char* lower, int length) noexcept:
    cdef int place
    for place in range(length):
        if (one[place] | 32) != lower[place]:
            return False
    return True


cdef inline bint is_letter(char c) noexcept:
    return c"a" <= (c | 32) <= c"z"


cdef inline bint is_alnum(char c) noexcept:
    return is_letter(c) or c"0" <= c <= c"9"
