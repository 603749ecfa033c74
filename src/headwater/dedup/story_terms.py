"""By what a post is recognised as telling of an event: the words of its title and of the beginning of its text.

Words are cut to a stem, so that "stocks" and "stock" meet; signs of Chinese and Japanese go in pairs. A term is known
by a fingerprint. The vocabulary, a hash table of fingerprints, gives each term a number. The C types are in
`story_terms.pxd`.
"""

# ruff: noqa: SIM110 -- loops that become C, and no generators

from __future__ import annotations

from array import array

from headwater.dedup.arrays import HashTable
from headwater.dedup.normal import COMMON, EVERYDAY, OCCASIONS, words
from headwater.dedup.spelling import Spelling
from headwater.dedup.story_rules import (
    EVERYDAY_EVIDENCE,
    LANGUAGES,
    LEAD_WEIGHT,
    LOGS,
    MOST_TERMS,
    NUMBER_EVIDENCE,
    PAIR_EVIDENCE,
    PHRASE_EVIDENCE,
    PHRASE_LETTERS,
    TITLE_WEIGHT,
    WORD_EVIDENCE,
)

try:
    import cython
except ModuleNotFoundError:
    from headwater.dedup import uncompiled as cython

if not cython.compiled:
    from headwater.dedup.arrays import BITS, NONE, add, find
    from headwater.dedup.spelling import DIGIT, SIGN

FNV_START = 0x0BF29CE484222325
FNV_PRIME = 0x100000001B3
SHORTEST_WITH_ENDING = 4
SHORTEST_DAY = 6
# So many of the terms that a post shares with its story are shown.
SHOWN = 3
# So many words have to mark a language, and so many more than any other.
LEAST_MARKS, LEAST_LEAD = 2, 1
LANGUAGE_COUNT = len(LANGUAGES)
# Of so many words, so few that any list has, are of a language that has none.
MANY_WORDS, FEW_COMMON = 8, 1
# Instead of the letters of a version's number.
VERSION = -1


class Terms:
    """The terms of posts: those of post `p` are at `starts[p]:starts[p + 1]`.

    Of each term there is its number, its `weight` by where it stood, its `evidence`, how many `letters` it has (VERSION
    if it is the number of a version), and, for whoever wants to show it, the word that it was read from:
    `text[begins:ends]`. Of each post there is the number of its language, from 1 on (0 is not known), and whether that
    is `unlisted`: of many words hardly one is a small word that we know.
    """

    def __init__(self, parts: list[str], vocabulary: HashTable) -> None:
        """Reads posts, of each a title and a lead, and numbers the terms that are new."""
        spelling = Spelling(parts)
        self.text, self.word_starts, self.word_ends = spelling.text, spelling.starts, spelling.ends
        self.word_kinds, self.first = spelling.kinds, spelling.first
        self.posts = len(parts) // 2
        most = min(self.posts * MOST_TERMS, spelling.first[len(parts)])
        self.starts = array("i", bytes(4 * (self.posts + 1)))
        self.numbers, self.letters, self.begins, self.ends = (array("i", bytes(4 * most)) for _ in range(4))
        self.weights, self.evidence = array("f", bytes(4 * most)), array("f", bytes(4 * most))
        self.languages, self.unlisted = (array("i", bytes(4 * self.posts)) for _ in range(2))
        self.marks, self.words, self.common_words = array("i", bytes(4 * (len(LANGUAGES) + 1))), 0, 0
        self.marking, self.marked = MARKING_TERMS, MARKED
        self.vocabulary, self.common, self.everyday = vocabulary, COMMON_TERMS, EVERYDAY_TERMS
        vocabulary.make_room(most)
        with cython.nogil:
            read_posts(self)

    def word(self, at: int) -> str:
        """The word that a term was read from; of a pair of signs, both."""
        return bytes(self.text[self.begins[at] : self.ends[at]]).decode().replace(" ", "")


class StoryBatch:
    """Posts to decide about, as terms, and what was decided.

    That is for each post its story's number and earliest post, the score (0: a new story), and the terms that decided;
    the two stories that it most probably belongs to (`likely`), whether it joined or not, and the `logs` of what
    speaks for each; and, if two stories became one (`met_scores` is not 0), the earliest post of the one that is
    `kept` and of the one that `moved`.
    `barred` are stories that the posts may not join. A batch with a post that was told apart from others is `guarded`.
    Of a post whose source is unknown, that is 0.
    """

    def __init__(
        self,
        terms: Terms,
        ids: list[int],
        times: list[float],
        barred: list[int],
        meanings: array[float],
        sources: list[int],
        guarded: bool = False,
    ) -> None:
        self.size = len(ids)
        self.starts, self.numbers = terms.starts, terms.numbers
        self.languages, self.unlisted = terms.languages, terms.unlisted
        self.weights, self.evidence, self.letters = terms.weights, terms.evidence, terms.letters
        self.ids, self.times, self.sources = array("q", ids), array("d", times), array("q", sources)
        self.barred, self.barred_count, self.guarded = array("i", [*barred, -1]), len(barred), guarded
        self.meanings = meanings
        self.stories, self.leaders = array("i", bytes(4 * self.size)), array("q", bytes(8 * self.size))
        self.kept, self.moved = (array("q", bytes(8 * self.size)) for _ in range(2))
        self.scores, self.met_scores = (array("f", bytes(4 * self.size)) for _ in range(2))
        self.moved_numbers, self.likely = array("i", bytes(4 * self.size)), array("i", [-1]) * (2 * self.size)
        self.logs = array("f", bytes(4 * 2 * self.size * LOGS))
        self.shown = array("i", [-1]) * (SHOWN * self.size)


def share_of_signs(batch: StoryBatch, post: int) -> float:
    """Which share of a post's terms are pairs of signs."""
    pairs = 0
    for at in range(batch.starts[post], batch.starts[post + 1]):
        if batch.evidence[at] == PAIR_EVIDENCE:
            pairs += 1
    return pairs / max(batch.starts[post + 1] - batch.starts[post], 1)


def is_barred(batch: StoryBatch, number: int) -> bool:
    for at in range(batch.barred_count):
        if batch.barred[at] == number:
            return True
    return False


def read_posts(terms: Terms) -> None:
    """Finds the terms of all posts. A post without a title has its text for one."""
    for post in range(terms.posts):
        terms.starts[post + 1] = terms.starts[post]
        read_part(terms, post, 2 * post, TITLE_WEIGHT)
        weight = LEAD_WEIGHT if terms.starts[post + 1] > terms.starts[post] else TITLE_WEIGHT
        read_part(terms, post, 2 * post + 1, weight)
        terms.languages[post] = most_marked(terms)
        is_unlisted = terms.words >= MANY_WORDS and terms.common_words <= FEW_COMMON
        terms.unlisted[post], terms.words, terms.common_words = is_unlisted, 0, 0


def most_marked(terms: Terms) -> int:
    """The language that most words of a post mark, if it is one and they are enough. Begins to count anew."""
    best = most = second = 0
    for language in range(1, LANGUAGE_COUNT + 1):
        marks = terms.marks[language]
        if marks > most:
            best, most, second = language, marks, most
        elif marks > second:
            second = marks
        terms.marks[language] = 0
    return best if most >= LEAST_MARKS and most >= second + LEAST_LEAD else 0


def mark(terms: Terms, key: int) -> None:
    """Counts a word for the languages that it marks, which are bits."""
    place = find(terms.marking, key)
    if place != NONE:
        terms.common_words += MANY_WORDS
        for language in range(1, LANGUAGE_COUNT + 1):
            if terms.marked[place] & (1 << language) != 0:
                terms.marks[language] += 1


def read_part(terms: Terms, post: int, part: int, weight: float) -> None:
    """Adds the terms of one part of a post."""
    sign = NONE
    for word in range(terms.first[part], terms.first[part + 1]):
        if terms.starts[post + 1] - terms.starts[post] == MOST_TERMS:
            break
        if terms.word_kinds[word] != SIGN:
            add_word(terms, post, word, weight)
            sign = NONE
            continue
        if sign != NONE:
            key = fingerprint(terms, FNV_START, terms.word_starts[sign], terms.word_ends[sign])
            key = fingerprint(terms, key, terms.word_starts[word], terms.word_ends[word])
            add_term(terms, post, key, sign, word, weight, PAIR_EVIDENCE)
        sign = word


def add_word(terms: Terms, post: int, word: int, weight: float) -> None:
    """Adds a word's stem, unless it is common or a single letter."""
    start, end = terms.word_starts[word], terms.word_ends[word]
    if is_one_character(terms, start, end) and terms.word_kinds[word] != DIGIT:
        return
    key = fingerprint(terms, FNV_START, start, end)
    mark(terms, key)
    terms.words += 1
    if find(terms.common, key) != NONE:
        terms.common_words += 1
        return
    ending = length_of_ending(terms, start, end)
    if ending:
        key = fingerprint(terms, FNV_START, start, end - ending)
        if ending > 1:
            key = extended(key, ord("y"))
        if find(terms.common, key) != NONE:
            return
    evidence = WORD_EVIDENCE
    if find(terms.everyday, key) != NONE or names_a_day(terms, start, end):
        evidence = EVERYDAY_EVIDENCE
    elif terms.word_kinds[word] == DIGIT:
        evidence = NUMBER_EVIDENCE
    elif is_phrase(terms, start, end):
        evidence = PHRASE_EVIDENCE
    add_term(terms, post, key, word, word, weight, evidence)


def add_term(
    terms: Terms, post: int, key: int, first_word: int, last_word: int, weight: float, evidence: float
) -> None:
    """Adds a term to a post's, unless it is there already."""
    number = add(terms.vocabulary, key)
    at = terms.starts[post + 1]
    for each in range(terms.starts[post], at):
        if terms.numbers[each] == number:
            return
    terms.numbers[at], terms.weights[at], terms.evidence[at] = number, weight, evidence
    terms.begins[at], terms.ends[at] = terms.word_starts[first_word], terms.word_ends[last_word]
    terms.letters[at] = letters_in(terms, terms.begins[at], terms.ends[at])
    if terms.word_kinds[first_word] == DIGIT and weight == TITLE_WEIGHT and is_version(terms, first_word):
        terms.letters[at] = VERSION
    terms.starts[post + 1] = at + 1


def fingerprint(terms: Terms, key: int, start: int, end: int) -> int:
    """The fingerprint with `text[start:end]` behind it."""
    for at in range(start, end):
        key = extended(key, terms.text[at])
    return key


def extended(key: int, byte: int) -> int:
    return ((key ^ byte) * FNV_PRIME) & BITS


def length_of_ending(terms: Terms, start: int, end: int) -> int:
    """How long the ending of a plural or of a verb's third person is, if the word is an English one and not short.

    3 is "ies", for which a "y" is to be put.
    """
    if end - start < SHORTEST_WITH_ENDING or terms.text[end - 1] != ord("s"):
        return 0
    before = terms.text[end - 2]
    if before == ord("s") or before == ord("u") or before == ord("i"):
        return 0
    for at in range(start, end):
        if terms.text[at] >= 0x80:
            return 0
    return 3 if before == ord("e") and terms.text[end - 3] == ord("i") and end - start > SHORTEST_WITH_ENDING else 1


def is_one_character(terms: Terms, start: int, end: int) -> bool:
    first = terms.text[start]
    return end - start == (1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4)


def is_phrase(terms: Terms, start: int, end: int) -> bool:
    """Whether a word is long and of a script without spaces: Thai and Lao, Burmese, Khmer."""
    if end - start < 3 * PHRASE_LETTERS or not 0xE0 <= terms.text[start] <= 0xE1:
        return False
    code = ((terms.text[start] & 0xF) << 12) | ((terms.text[start + 1] & 0x3F) << 6) | (terms.text[start + 2] & 0x3F)
    if not (0x0E00 <= code <= 0x0EFF or 0x1000 <= code <= 0x109F or 0x1780 <= code <= 0x17FF):
        return False
    return letters_in(terms, start, end) >= PHRASE_LETTERS


def names_a_day(terms: Terms, start: int, end: int) -> bool:
    """Whether a word is a day's name, as tags have them: "motherearthday". Who writes it tells of no event."""
    if end - start < SHORTEST_DAY or terms.text[end - 1] != ord("y"):
        return False
    return terms.text[end - 2] == ord("a") and terms.text[end - 3] == ord("d")


def letters_in(terms: Terms, start: int, end: int) -> int:
    letters = 0
    for at in range(start, end):
        if terms.text[at] & 0xC0 != 0x80:
            letters += 1
    return letters


def is_version(terms: Terms, word: int) -> bool:
    """Whether a number has two dots or more, and these do not set thousands apart: 1.12.9, not 10.000.000."""
    dots, digits, is_amount = 0, 0, True
    for at in range(terms.word_starts[word], terms.word_ends[word]):
        if terms.text[at] == ord("."):
            is_amount = is_amount and (dots == 0 or digits == 3)
            dots, digits = dots + 1, 0
        else:
            digits += 1
    return dots > 1 and not (is_amount and digits == 3)


def _table_of(listed: frozenset[str]) -> HashTable:
    table = HashTable()
    keys = array("q")
    for word in sorted(listed):
        key = FNV_START
        for byte in word.encode():
            key = extended(key, byte)
        keys.append(key)
    table.number(keys)
    return table


def _marked() -> tuple[HashTable, array[int]]:
    """The words that mark a language, and for each, as bits, which."""
    listed = [words(each) for each in LANGUAGES]
    every = sorted(frozenset[str]().union(*listed))
    bits = [sum(1 << number for number, some in enumerate(listed, 1) if word in some) for word in every]
    return _table_of(frozenset(every)), array("i", bits)


MARKING_TERMS, MARKED = _marked()
COMMON_TERMS = _table_of(COMMON)
EVERYDAY_TERMS = _table_of(
    EVERYDAY
    | OCCASIONS
    | {word.removesuffix("s") for word in EVERYDAY}
    | {word.removesuffix("s") for word in OCCASIONS}
)
