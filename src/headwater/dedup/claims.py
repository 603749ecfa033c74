"""What a telling of a story says that none before it said, and where two tellings disagree. Pure.

A program cannot understand a text; it can compare words, numbers and names. A telling says something new if it has a
number or a name that no earlier one had, or a sentence of which a third is new words. What is in doubt counts as new:
a reader who is shown too much loses a moment, one who is shown too little misses the correction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

MOST_TEXT = 20_000  # signs of a text that are read
MOST_SENTENCES = 120
MOST_SHOWN = 3  # sentences, numbers and names of a telling that are shown
LONGEST_SHOWN = 240
NEW_SHARE = 1 / 3
NEW_WORDS = 2
SAME_SHARE = 0.6  # of the words of two sentences that say the same, but for a "not"
SHORTEST_WORD = 4
TITLE_CASE = 0.6
MOST_REMEMBERED = 128  # texts; what a long one says takes 80 KB

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,:/]\d+)*")
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_ENDINGS = re.compile(r"(?:ings?|edly|ed|es|ly|s)$")
_TIME_OF_DAY = re.compile(r"^\d{1,2}:\d\d(?::\d\d)?$")
_TEENS = """zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty"""
_NUMBER_WORDS = dict(zip(_TEENS.split(), map(str, (0, *range(2, 21))), strict=True)) | {  # "one" is no number mostly
    "dozen": "12",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "hundred": "100",
}
_CHINESE_NUMBERS = {sign: str(value) for value, sign in enumerate("零一二三四五六七八九十")} | {"两": "2"}
_CHINESE_COUNT = re.compile(
    r"([零一二两三四五六七八九十]|\d+)\s*(?:名|人|个|位)?[^，。！？\s]{0,4}?(死|遇难|身亡|受伤|伤|失踪)"
)
_CHINESE_NOBODY = re.compile(r"(?:无人|没有人|未造成(?:人员)?)(伤亡|受伤|死亡|遇难)")

# What is counted, under one name. A story says how many died in many words.
_COUNTED = {
    "dead": (
        "dead",
        "killed",
        "kills",
        "died",
        "die",
        "dies",
        "deaths",
        "death",
        "fatalities",
        "死",
        "遇难",
        "身亡",
        "死亡",
    ),
    "hurt": ("hurt", "injured", "injures", "wounded", "injuries", "casualties", "伤", "受伤", "伤亡"),
    "missing": ("missing", "unaccounted", "失踪"),
}
_COUNTS = {word: name for name, words in _COUNTED.items() for word in words}
_NOBODY = frozenset({"nobody", "none"})
_NEGATIONS = """not no never nobody none without denies denied deny refutes false cannot don't doesn't didn't won't
isn't wasn't aren't weren't"""
_NOT = frozenset(_NEGATIONS.split())
_MEASURES = """percent days hours minutes weeks months years times people million billion thousand hundred dozen metres
meters kilometres kilometers miles feet dollars euros pounds"""
_UNITS = frozenset(_MEASURES.split())


class Sentence(NamedTuple):
    text: str
    words: frozenset[str]
    is_negated: bool


class Claim(NamedTuple):
    """How many of something, such as dead or sailors, and the sentence that says so."""

    what: str
    number: str
    sentence: str


class Said(NamedTuple):
    """What a text says."""

    sentences: tuple[Sentence, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    names: Mapping[str, str]  # by their word, as they are written
    claims: tuple[Claim, ...]


class News(NamedTuple):
    """What a telling says that the others did not, a few of each, as it says it."""

    sentences: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(self)


class Disagreement(NamedTuple):
    """Two sentences of two tellings that cannot both be right: one of this telling, one of another."""

    sentence: str
    other_id: int
    other_sentence: str


@lru_cache(maxsize=MOST_REMEMBERED)
def said(title: str, text: str) -> Said:
    """Reads a text. The tellings of a story are read again with each post that joins it, so the last are remembered."""
    body = text[:MOST_TEXT]
    parts = [title, *(_SENTENCE.split(body) if body != title else [])]
    sentences: list[Sentence] = []
    numbers: set[str] = set()
    names: dict[str, str] = {}
    claims: list[Claim] = []
    for part in parts[:MOST_SENTENCES]:
        shown = " ".join(part.split())
        if not shown:
            continue
        tokens = _WORD.findall(shown)
        words = frozenset(_words(tokens))
        sentences.append(Sentence(shown[:LONGEST_SHOWN], words, any(token.casefold() in _NOT for token in tokens)))
        numbers.update(_numbers(tokens))
        names.update(_names(tokens))
        claims += _claims(tokens, shown[:LONGEST_SHOWN])
    vocabulary = frozenset[str]().union(*(one.words for one in sentences))
    return Said(tuple(sentences), vocabulary, frozenset(numbers), names, tuple(claims))


def news(telling: Said, earlier: Sequence[Said]) -> News:
    """Returns what a telling says that none of the earlier ones said."""
    words = frozenset[str]().union(*(one.words for one in earlier))
    numbers = frozenset[str]().union(*(one.numbers for one in earlier))
    claims = {(one.what, one.number) for before in earlier for one in before.claims}
    sentences = [one.text for one in telling.sentences if _is_new(one.words, words) or _is_turned(one, earlier)]
    told = [one.sentence for one in telling.claims if (one.what, one.number) not in claims]
    return News(
        tuple(dict.fromkeys([*told, *sentences]))[:MOST_SHOWN],
        tuple(sorted(telling.numbers - numbers, key=lambda one: (len(one), one)))[:MOST_SHOWN],
        tuple(name for word, name in telling.names.items() if word not in words)[:MOST_SHOWN],
    )


def echoed(telling: Said, earlier: Mapping[int, Said]) -> list[int]:
    """Returns the fewest earlier tellings, about, that together said all that this one says; none if it is new."""
    if not earlier or news(telling, list(earlier.values())):
        return []
    heard: list[int] = []
    while news(telling, [earlier[one] for one in heard]) or not heard:
        left = [one for one in earlier if one not in heard]
        heard.append(max(left, key=lambda one: _shared(telling, [earlier[other] for other in (*heard, one)])))
    return heard


def disagreements(telling: Said, earlier: Mapping[int, Said]) -> list[Disagreement]:
    """Returns where a telling and an earlier one say different numbers of the same thing, or one denies the other."""
    found: dict[tuple[str, int], Disagreement] = {}
    for other_id, other in earlier.items():
        for one, another in _contradicting(telling, other):
            found.setdefault((one, other_id), Disagreement(one, other_id, another))
    return list(found.values())[:MOST_SHOWN]


def _contradicting(telling: Said, other: Said) -> Iterator[tuple[str, str]]:
    for one in telling.claims:
        if any((same.what, same.number) == (one.what, one.number) for same in other.claims):
            continue
        yield from ((one.sentence, against.sentence) for against in other.claims if _opposes(one, against))
    for sentence in telling.sentences[:20]:
        for against in other.sentences[:20]:
            if sentence.is_negated != against.is_negated and _is_same(sentence.words, against.words):
                yield sentence.text, against.text


def _opposes(one: Claim, other: Claim) -> bool:
    if one.what == other.what:
        return one.number != other.number
    # Where nobody was hurt, nobody died.
    return any(
        a.what == "hurt" and a.number == "0" and b.what == "dead" and b.number != "0"
        for a, b in ((one, other), (other, one))
    )


def _shared(telling: Said, others: Sequence[Said]) -> int:
    words = frozenset[str]().union(*(one.words for one in others))
    numbers = frozenset[str]().union(*(one.numbers for one in others))
    return len(telling.words & words) + 3 * len(telling.numbers & numbers)


def _is_new(words: frozenset[str], known: frozenset[str]) -> bool:
    unheard = len(words - known)
    return unheard >= NEW_WORDS and unheard >= NEW_SHARE * len(words)


def _is_turned(sentence: Sentence, earlier: Sequence[Said]) -> bool:
    """Whether a sentence denies what others said, or says what others denied, and none said it so."""
    same = [one.is_negated for before in earlier for one in before.sentences if _is_same(sentence.words, one.words)]
    return bool(same) and sentence.is_negated not in same


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return min(len(one), len(other)) >= 3 and len(one & other) >= SAME_SHARE * len(one | other)


def _words(tokens: Sequence[str]) -> Iterator[str]:
    for token in tokens:
        if _CJK.search(token):
            yield from (token[place : place + 2] for place in range(max(1, len(token) - 1)))
        elif len(token) >= SHORTEST_WORD and not token[0].isdigit():
            yield _stem(token)


def _stem(word: str) -> str:
    word = word.casefold().partition("'")[0].partition("’")[0]
    stem = _ENDINGS.sub("", word) if len(word) > SHORTEST_WORD else word
    if len(stem) > 3 and stem[-1] == stem[-2]:
        stem = stem[:-1]
    return stem.removesuffix("e")[:7]


def _numbers(tokens: Sequence[str]) -> Iterator[str]:
    for token in tokens:
        if (number := _number(token)) is not None:
            yield number


def _number(token: str) -> str | None:
    if token[0].isdigit():
        return None if _TIME_OF_DAY.match(token) else token.replace(",", "")
    return _NUMBER_WORDS.get(token.casefold())


def _names(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields words with a capital that do not begin the sentence, unless it has capitals throughout."""
    words = [token for token in tokens if token[0].isalpha()]
    if not words or sum(word[0].isupper() for word in words) > TITLE_CASE * len(words):
        return
    for word in words[1:]:
        if word[0].isupper() and len(word) >= SHORTEST_WORD:
            yield _stem(word), word


def _claims(tokens: Sequence[str], sentence: str) -> Iterator[Claim]:
    """Yields what is counted: a number and the next word that can be counted, or nobody and what did not happen."""
    words = [token.casefold() for token in tokens]
    for place, word in enumerate(words):
        around = words[place + 1 : place + 5]
        number = "0" if word in _NOBODY or (word == "no" and around) else _number(tokens[place])
        if number is None:
            continue
        what = next((_COUNTS[one] for one in around if one in _COUNTS), None)
        if what is None and place and number != "0":
            what = _COUNTS.get(words[place - 1])
        if what is None and around and number != "0" and len(around[0]) >= SHORTEST_WORD and around[0] not in _UNITS:
            what = _stem(around[0])
        if what is not None:
            yield Claim(what, number, sentence)
    for match in _CHINESE_COUNT.finditer(sentence):
        yield Claim(_COUNTS[match[2]], _CHINESE_NUMBERS.get(match[1], match[1]), sentence)
    for match in _CHINESE_NOBODY.finditer(sentence):
        yield Claim(_COUNTS[match[1]], "0", sentence)
