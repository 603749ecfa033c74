"""The words that `tidy` knows: elements with what they do, attributes, references, and what each byte may be."""

from html import escape
from html.entities import html5

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from headwater.text import allowed

# What a start tag does to the elements that are open.
cdef enum Role:
    UNKNOWN  # only a parser can tell
    PHRASE  # stands in a line: <em>, <sup>
    FORMAT  # the same, and a parser opens it again where it was not closed: <b>, <a>
    BLOCK  # ends an open paragraph: <div>, <ul>
    PARAGRAPH
    HEADING
    PRE
    ITEM  # <li>, ends the one before
    TERM  # <dt> and <dd>, likewise. An end tag of all down to here is nothing where none is open
    TABLE
    CAPTION
    ROWS  # <tbody> and its like
    ROW
    CELL
    VOID  # has no content: <br>, <img>
    RULE  # <hr>, has no content and ends an open paragraph
    STYLING  # <span> and <font>, taken out before anything else is looked at
    RAW  # its content is no HTML, and goes: <script>

cdef enum:
    MOST_OPEN = 200
    MOST_ELEMENTS = 128
    LONGEST_NAME = 16
    LONGEST_BARE_REFERENCE = 6
    SLOTS = 512  # of the table of names: a power of two, far more than there are names

cdef struct Name:
    uint64_t low
    uint64_t high
    int number  # 0: nobody has this slot

cdef struct Element:
    Role role
    bint kept
    bint is_list  # <ul> and <ol>
    bint is_terms  # <dl>
    uint32_t attributes
    char[LONGEST_NAME] name
    int length

cdef Name[SLOTS] element_names
cdef Name[SLOTS] attribute_names
cdef Element[MOST_ELEMENTS] elements
cdef uint8_t[256] is_plain_text  # bytes that mean themselves, in text
cdef uint8_t[256] is_plain_value  # the same in an attribute's value
cdef uint8_t[256] is_name
cdef uint8_t[256] is_host
cdef uint8_t[256] is_unquoted
cdef uint8_t[256] is_space

cdef int A, BR, TBODY, TR
cdef uint32_t HREF, SRC
cdef bytes REL = b' rel="' + allowed.LINK_REL.encode() + b'"'

cdef set SCHEMES = {scheme.encode() for scheme in allowed.SCHEMES}

# Names that are a reference without a semicolon too.
cdef set BARE_REFERENCES = {name.encode() for name in html5 if not name.endswith(";")}

# What `&name;` stands for, as nh3 writes it.
cdef dict TEXT_REFERENCES = {}
cdef dict VALUE_REFERENCES = {}


cdef int found(Name* names, const char* name, size_t length) noexcept:
    """The number of a name, 0 if it has none."""
    cdef uint64_t[2] key
    cdef size_t slot
    if not 0 < length <= LONGEST_NAME:
        return 0
    memset(key, 0, 16)
    memcpy(key, name, length)
    slot = slot_of(key[0], key[1])
    while names[slot].number and not (names[slot].low == key[0] and names[slot].high == key[1]):
        slot = (slot + 1) & (SLOTS - 1)
    return names[slot].number


cdef inline size_t slot_of(uint64_t low, uint64_t high) noexcept:
    return (((low ^ (high * 31)) * <uint64_t>0x9E3779B97F4A7C15) >> 50) & (SLOTS - 1)


cdef int enter(Name* names, bytes name, int number) except -1:
    cdef uint64_t[2] key
    cdef size_t slot
    memset(key, 0, 16)
    memcpy(key, <const char*>name, len(name))
    slot = slot_of(key[0], key[1])
    while names[slot].number:
        slot = (slot + 1) & (SLOTS - 1)
    names[slot] = Name(key[0], key[1], number)
    return 0


ROLES = {
    PHRASE: "abbr acronym audio bdi bdo cite del dfn ins kbd label mark picture q samp sub sup time var video",
    FORMAT: "a b big code em i s small strike strong tt u",
    BLOCK: "address article aside blockquote center details div dl figcaption figure footer header main nav ol section"
    " summary ul",
    PARAGRAPH: "p",
    HEADING: "h1 h2 h3 h4 h5 h6",
    PRE: "pre",
    ITEM: "li",
    TERM: "dt dd",
    TABLE: "table",
    CAPTION: "caption",
    ROWS: "tbody thead tfoot",
    ROW: "tr",
    CELL: "td th",
    VOID: "br embed img link meta source track wbr",
    RULE: "hr",
    STYLING: " ".join(allowed.STYLE_ONLY),
    RAW: "iframe script style",
}


cdef int _prepare() except -1:
    global A, BR, TBODY, TR, HREF, SRC
    cdef Element* element
    cdef int number = 0
    cdef bytes spelled
    bits = {name: bit for bit, name in enumerate(sorted(set().union(*allowed.KEPT_ATTRIBUTES.values())), 1)}
    for name, bit in bits.items():
        enter(attribute_names, name.encode(), bit)
    HREF, SRC = 1 << bits["href"], 1 << bits["src"]
    for role, names in ROLES.items():
        for name in names.split():
            number += 1
            spelled = name.encode()
            enter(element_names, spelled, number)
            element = &elements[number]
            element.role = role
            element.kept = name in allowed.KEPT
            element.is_list = name in ("ul", "ol")
            element.is_terms = name == "dl"
            if element.kept:
                attributes = allowed.KEPT_ATTRIBUTES["*"] | allowed.KEPT_ATTRIBUTES.get(name, set())
                element.attributes = sum([1 << bits[attribute] for attribute in attributes])
            element.length = len(spelled)
            memcpy(element.name, <const char*>spelled, len(spelled))
    A, BR = found(element_names, b"a", 1), found(element_names, b"br", 2)
    TBODY, TR = found(element_names, b"tbody", 5), found(element_names, b"tr", 2)
    for byte in range(256):
        is_plain_text[byte] = (byte >= 0x20 or byte in b"\t\n") and byte not in b"<>&\x7f"
        is_plain_text[byte] &= byte not in (0xC2, 0xE2, 0xEF)  # begin characters that cannot be printed, and others
        is_plain_value[byte] = is_plain_text[byte] and byte != 0x22
        is_space[byte] = byte in b" \t\n"
        is_unquoted[byte] = is_plain_value[byte] and not is_space[byte] and byte not in b"'=`\f"
        is_name[byte] = chr(byte) in "abcdefghijklmnopqrstuvwxyz0123456789-_:."
        is_host[byte] = chr(byte) in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."
    for name, characters in html5.items():
        if name.endswith(";"):
            written = escape(characters, quote=False).replace("\xa0", "&nbsp;")
            TEXT_REFERENCES[name[:-1].encode()] = written.encode()
            VALUE_REFERENCES[name[:-1].encode()] = written.replace('"', "&quot;").encode()
    return 0


_prepare()
