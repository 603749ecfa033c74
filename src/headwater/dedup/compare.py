"""Whether two texts are the same, by the rules of `repeats.py`, in loops for the C compiler.

The words of a text lie as UTF-8 in a row of bytes. Words are compared by fingerprint; bytes are read only where two
words differ. The C types are in `compare.pxd`.
"""

# ruff: noqa: SIM110 -- loops that become C, and no generators

from __future__ import annotations

from array import array

from headwater.dedup.normal import TURNING_WORDS
from headwater.dedup.repeats import (
    ADDRESSED_CONTENT,
    CUT_CONTENT,
    CUT_WITHOUT_DOTS,
    LEAD,
    LEAST_CONTENT,
    LEAST_CUT,
    LEAST_OVERLAP,
    LIGHT,
    LONG,
    LONGEST_WORD,
    MOST_RUNS,
    NUMBERED,
    RUN,
    SIGN_CONTENT,
    WORD_CONTENT,
    fingerprint,
)

# What kind of word it is.
IS_LIGHT, IS_TURNING, IS_SIGN, HAS_DIGIT = 1, 2, 4, 8
# What is known of a text.
CUT, TORN, ARTICLE, BY_LINK, GONE, BY_WORDS = 1, 2, 4, 8, 16, 32

FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
GOLDEN = 0x9E3779B97F4A7C15
ALL_BITS = (1 << 64) - 1
SLOTS = 1024


def table_of(listed: frozenset[str], slots: int) -> array[int]:
    """A hash table of words' fingerprints."""
    hashes = array("Q", bytes(8 * slots))
    for word in sorted(listed):
        value = fingerprint(word)
        slot = value % slots
        while hashes[slot]:
            slot = (slot + 1) % slots
        hashes[slot] = value
    return hashes


def _kinds_in(hashes: array[int]) -> bytes:
    """For each slot of a table of words whether that is a light word, or one that turns a meaning round."""
    kinds = {fingerprint(word): IS_LIGHT for word in LIGHT}
    for word in TURNING_WORDS:
        kinds[fingerprint(word)] = kinds.get(fingerprint(word), 0) | IS_TURNING
    return bytes(kinds.get(value, 0) for value in hashes)


KNOWN = table_of(LIGHT | TURNING_WORDS, SLOTS)
KNOWN_KINDS = _kinds_in(KNOWN)


class Text:
    """A text to compare: where its words lie in `data`, their fingerprints and kinds, and the sample of its runs.

    Of its `total` words the first `size` are at hand: of a remembered article only the beginning is kept.
    """

    def __init__(self, most_words: int) -> None:
        self.data: bytearray | memoryview = bytearray(1)
        self.starts, self.ends = array("i", bytes(4 * most_words)), array("i", bytes(4 * most_words))
        self.hashes, self.kinds = array("Q", bytes(8 * most_words)), bytearray(most_words)
        self.runs = array("Q", bytes(8 * MOST_RUNS))
        self.letters = array("I", bytes(4 * LONGEST_WORD))
        self.distinct = array("Q", bytes(8 * ADDRESSED_CONTENT))
        self.most_words = most_words
        self.size = self.total = self.head = self.tail = self.flags = self.run_count = 0
        self.mentions = self.whole = 0


class Comparison:
    """What `same_text` found: as `repeats.Difference`."""

    def __init__(self) -> None:
        self.slips = self.light = self.rest = 0
        self.cut = False
        self.overlap = 0.0


def mix(value: int, item: int) -> int:
    value = ((value ^ item) * GOLDEN) & ALL_BITS
    return value ^ (value >> 29)


def read_words(text: Text, start: int, end: int) -> None:
    """Finds the words of `data[start:end]`, as many as there is room for."""
    count, at = 0, start
    while at < end and count < text.most_words:
        first, value, kind = at, FNV_START, 0
        while at < end and text.data[at] != 32:
            value = ((value ^ text.data[at]) * FNV_PRIME) & ALL_BITS
            if 48 <= text.data[at] <= 57:
                kind = HAS_DIGIT
            at += 1
        if text.data[first] >= 0xE3 and at - first == (4 if text.data[first] >= 0xF0 else 3):
            kind |= IS_SIGN
        text.starts[count], text.ends[count] = first, at
        text.hashes[count], text.kinds[count] = value, kind | kind_of_known(value)
        count += 1
        at += 1
    text.size = text.total = count


def kind_of_known(value: int) -> int:
    slot = value & (SLOTS - 1)
    while KNOWN[slot] != 0:
        if KNOWN[slot] == value:
            return KNOWN_KINDS[slot]
        slot = (slot + 1) & (SLOTS - 1)
    return 0


def compact_hash(text: Text) -> int:
    """The fingerprint of the text without its spaces, but for those between digits."""
    value = FNV_START
    if text.size == 0:
        return value
    for at in range(text.starts[0], text.ends[text.size - 1]):
        if text.data[at] == 32 and not (48 <= text.data[at - 1] <= 57 and 48 <= text.data[at + 1] <= 57):
            continue
        value = ((value ^ text.data[at]) * FNV_PRIME) & ALL_BITS
    return value


def content(text: Text, until: int, enough: int) -> int:
    """How much content there is in the first words; it stops counting at `enough`."""
    kept = total = 0
    for at in range(until):
        if text.kinds[at] & IS_LIGHT or is_among(text.distinct, kept, text.hashes[at]):
            continue
        total += SIGN_CONTENT if text.kinds[at] & IS_SIGN else WORD_CONTENT
        if total >= enough:
            break
        text.distinct[kept] = text.hashes[at]
        kept += 1
    return total


def is_among(hashes: array[int], count: int, value: int) -> bool:
    for at in range(count):
        if hashes[at] == value:
            return True
    return False


def lead_key(text: Text) -> int:
    """The first words that are not light."""
    value = taken = 0
    for at in range(text.size):
        if not text.kinds[at] & IS_LIGHT:
            value = mix(value, text.hashes[at])
            taken += 1
            if taken == LEAD:
                break
    return value


def measure(text: Text) -> None:
    """Finds out, of words that were read, whether the text is an article, and what stands for the whole of it."""
    text.whole = compact_hash(text)
    text.run_count = 0
    if double_size(text) >= 2 * LONG:
        text.flags |= ARTICLE
        sample(text)


def double_size(text: Text) -> int:
    """How long a text is, in half words: a sign is half a word."""
    total = 0
    for at in range(text.size):
        total += 1 if text.kinds[at] & IS_SIGN else 2
    return total


def sample(text: Text) -> None:
    """Fills `runs` with the smallest fingerprints of runs, in order."""
    kept = 0
    for at in range(text.size - RUN + 1):
        value = 0
        for step in range(RUN):
            value = mix(value, text.hashes[at + step])
        if kept == MOST_RUNS and value >= text.runs[kept - 1]:
            continue
        place = place_among(text.runs, kept, value)
        if place < kept and text.runs[place] == value:
            continue
        last = kept if kept < MOST_RUNS else kept - 1
        for each in range(last, place, -1):
            text.runs[each] = text.runs[each - 1]
        text.runs[place] = value
        kept = last + 1
    text.run_count = kept


def place_among(runs: array[int], count: int, value: int) -> int:
    """How many of the runs, which are in order, are smaller than `value`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if runs[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def overlap(a: Text, b: Text) -> float:
    """Which share of the smaller article's runs is in the other, as far as both samples reach."""
    reach = ALL_BITS
    if a.run_count == MOST_RUNS:
        reach = a.runs[MOST_RUNS - 1]
    if b.run_count == MOST_RUNS and b.runs[MOST_RUNS - 1] < reach:
        reach = b.runs[MOST_RUNS - 1]
    left = right = i = j = both = 0
    while left < a.run_count and a.runs[left] <= reach:
        left += 1
    while right < b.run_count and b.runs[right] <= reach:
        right += 1
    while i < left and j < right:
        if a.runs[i] == b.runs[j]:
            both, i, j = both + 1, i + 1, j + 1
        elif a.runs[i] < b.runs[j]:
            i += 1
        else:
            j += 1
    return both / max(min(left, right), 1)


def length(text: Text, word: int) -> int:
    return text.ends[word] - text.starts[word]


def same_bytes(a: Text, a_start: int, b: Text, b_start: int, count: int) -> bool:
    for step in range(count):
        if a.data[a_start + step] != b.data[b_start + step]:
            return False
    return True


def begins_with(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether word i of `a` begins with word j of `b`."""
    return length(a, i) >= length(b, j) and same_bytes(a, a.starts[i], b, b.starts[j], length(b, j))


def currency_length(text: Text, word: int) -> int:
    start = text.starts[word]
    if text.data[start] == 0x24:
        return 1
    if text.data[start] == 0xC2 and (text.data[start + 1] == 0xA3 or text.data[start + 1] == 0xA5):
        return 2
    if text.data[start] == 0xE2 and text.data[start + 1] == 0x82:
        return 3 if text.data[start + 2] == 0xAC or text.data[start + 2] == 0xBF else 0
    return 0


def lacks_unit(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether word j of `b` is word i of `a` without its currency, or without its percent sign."""
    sign = currency_length(a, i)
    percent = 1 if a.data[a.ends[i] - 1] == 0x25 else 0
    if sign + percent == 0 or length(a, i) - sign - percent != length(b, j):
        return False
    return same_bytes(a, a.starts[i] + sign, b, b.starts[j], length(b, j))


def same_word(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether two words are one: a number may lack its currency or its percent sign, a torn word its end."""
    if a.hashes[i] == b.hashes[j]:
        return True
    if a.flags & TORN and i == a.total - 1 and begins_with(b, j, a, i):
        return True
    if b.flags & TORN and j == b.total - 1 and begins_with(a, i, b, j):
        return True
    return lacks_unit(a, i, b, j) or lacks_unit(b, j, a, i)


def spread(text: Text, word: int) -> int:
    """Puts the characters of a word into `letters`, as numbers. Returns how many; -1 if it is longer than words are."""
    here, count = text.starts[word], 0
    while here < text.ends[word]:
        if count == LONGEST_WORD:
            return -1
        value = text.data[here]
        bytes_of_it = 1 if value < 0x80 else 2 if value < 0xE0 else 3 if value < 0xF0 else 4
        for step in range(1, bytes_of_it):
            value = (value << 8) | text.data[here + step]
        text.letters[count] = value
        count += 1
        here += bytes_of_it
    return count


def is_slip(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether one word is the other with a letter missing, wrong or swapped. No number, no short word, no ending."""
    if a.kinds[i] & b.kinds[j] & IS_TURNING or (a.kinds[i] | b.kinds[j]) & HAS_DIGIT:
        return False
    n, m = spread(a, i), spread(b, j)
    if min(n, m) < 4 or abs(n - m) > 1:
        return False
    start = 0
    while start < min(n, m) and a.letters[start] == b.letters[start]:
        start += 1
    if n == m:
        return is_one_change(a, b, start, n)
    return is_one_more(a, b, start, n) if n > m else is_one_more(b, a, start, m)


def is_one_change(a: Text, b: Text, start: int, count: int) -> bool:
    """Whether two words of one length differ in one letter only, or in two that are swapped, from `start` on."""
    after = start + 2
    if (
        after <= count
        and a.letters[start] == b.letters[start + 1]
        and a.letters[start + 1] == b.letters[start]
        and same_letters(a, b, after, count)
    ):
        return True
    return same_letters(a, b, start + 1, count) and count > 4


def same_letters(a: Text, b: Text, start: int, end: int) -> bool:
    for at in range(start, end):
        if a.letters[at] != b.letters[at]:
            return False
    return True


def is_one_more(longer: Text, shorter: Text, start: int, count: int) -> bool:
    """Whether the longer word, of `count` letters, has one letter more, at `start`. An ending is more than a letter."""
    for at in range(start + 1, count):
        if longer.letters[at] != shorter.letters[at - 1]:
            return False
    return not (start == count - 1 and (longer.letters[start] == 0x73 or longer.letters[start] == 0x64))


def is_joined(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether word j of `b` is words i and i + 1 of `a`."""
    if i + 1 >= a.size or b.kinds[j] & HAS_DIGIT:
        return False
    first, second = length(a, i), length(a, i + 1)
    if length(b, j) != first + second or not same_bytes(a, a.starts[i], b, b.starts[j], first):
        return False
    return same_bytes(a, a.starts[i + 1], b, b.starts[j] + first, second)


def is_extra(a: Text, i: int, b: Text, j: int) -> bool:
    """Whether word i of `a` is light and word j of `b` is one of the two behind it."""
    if not a.kinds[i] & IS_LIGHT:
        return False
    if i + 1 < a.size and a.hashes[i + 1] == b.hashes[j]:
        return True
    return i + 2 < a.size and a.hashes[i + 2] == b.hashes[j]


def all_light(text: Text, start: int) -> bool:
    for at in range(start, text.size):
        if not text.kinds[at] & IS_LIGHT:
            return False
    return True


def may_miss(rest: int, shorter: Text, longer: Text) -> bool:
    """Whether a text may end where the other goes on: with tags, after a cut, or because it is the title alone."""
    if shorter.flags & CUT or rest <= longer.tail or shorter.total == longer.head:
        return True
    return shorter.total >= CUT_WITHOUT_DOTS and rest >= LEAST_CUT


def small_difference(a: Text, b: Text, found: Comparison) -> bool:
    """Walks through both texts at once, and judges what it met. A word of meaning without a partner ends it."""
    i = j = slips = light = 0
    while i < a.size and j < b.size:
        if same_word(a, i, b, j):
            i, j = i + 1, j + 1
        elif is_extra(a, i, b, j):
            i, light = i + 1, light + 1
        elif is_extra(b, j, a, i):
            j, light = j + 1, light + 1
        elif is_slip(a, i, b, j):
            i, j, slips = i + 1, j + 1, slips + 1
        elif is_joined(a, i, b, j):
            i, j = i + 2, j + 1
        elif is_joined(b, j, a, i):
            i, j = i + 1, j + 2
        else:
            return False
    left, right = a.total - i, b.total - j
    if all_light(a, i) and all_light(b, j) and a.size == a.total and b.size == b.total:
        left, right, light = 0, 0, light + left + right
    shorter = min(a.total, b.total)
    least = CUT_CONTENT if a.flags & CUT else LEAST_CONTENT
    if slips > 1 + shorter // 12 or light > 1 + shorter // 8 or content(a, i, least) < least:
        return False
    if (left and not may_miss(left, b, a)) or (right and not may_miss(right, a, b)):
        return False
    found.slips, found.light, found.rest = slips, light, left + right
    found.cut = ((b.flags if left else a.flags) & CUT) != 0 and left + right > 0
    return True


def same_audience(a: Text, b: Text) -> bool:
    """Whether both speak to the same people, or one of them to nobody and there is enough to tell a text by."""
    if a.mentions == b.mentions:
        return True
    if a.mentions != 0 and b.mentions != 0:
        return False
    enough = ADDRESSED_CONTENT
    return content(a, a.size, enough) >= enough and content(b, b.size, enough) >= enough


def same_numbers(shorter: Text, longer: Text) -> bool:
    """Whether an article's numbers are the other's too. Long ones gather numbers (dates, counts) that mean nothing."""
    if longer.total >= NUMBERED:
        return True
    numbers = missing = 0
    for i in range(shorter.size):
        if shorter.kinds[i] & HAS_DIGIT and not is_among(shorter.hashes, i, shorter.hashes[i]):
            numbers += 1
            if not is_among(longer.hashes, longer.size, shorter.hashes[i]):
                missing += 1
    return missing * 4 <= numbers


def comes_first(a: Text, b: Text) -> bool:
    """Whether `a` is the one to begin with: it has fewer words, or as many and comes first in the dictionary."""
    if a.total != b.total:
        return a.total < b.total
    if a.size == 0 or b.size == 0:
        return min(a.size, 1) <= min(b.size, 1)
    i, j = a.starts[0], b.starts[0]
    i_end, j_end = a.ends[a.size - 1], b.ends[b.size - 1]
    while i < i_end and j < j_end:
        if a.data[i] != b.data[j]:
            return a.data[i] < b.data[j]
        i, j = i + 1, j + 1
    return i_end - i <= j_end - j


def same_text(a: Text, b: Text, found: Comparison) -> bool:
    """Whether two texts that can be folded are the same; `found` then says what differs."""
    return same_in_order(a, b, found) if comes_first(a, b) else same_in_order(b, a, found)


def same_in_order(a: Text, b: Text, found: Comparison) -> bool:
    found.slips = found.light = found.rest = 0
    found.cut, found.overlap = False, 0.0
    if not same_audience(a, b):
        return False
    if a.whole == b.whole:
        return True
    if a.flags & b.flags & ARTICLE:
        found.overlap = overlap(a, b)
        return found.overlap >= LEAST_OVERLAP and same_numbers(a, b)
    return small_difference(a, b, found)


def score(found: Comparison, words: int) -> float:
    """As `repeats.score`: rounded to thousandths, half of one to the even."""
    value = found.overlap
    if value == 0.0:
        value = max(0.0, 1 - (0.5 * found.slips + 0.5 * found.light) / max(words, 1))
    value *= 1000
    thousandths = int(value)
    rest = value - thousandths
    if rest > 0.5 or (rest == 0.5 and thousandths % 2):
        thousandths += 1
    return thousandths / 1000.0
