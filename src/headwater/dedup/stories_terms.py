"""By what a post is recognised as telling of an event: the words of its title and of the beginning of its text.

Words are cut to a stem so that "stocks" and "stock" meet; signs of Chinese and Japanese go in pairs. Each term has a
place, a small number, as long as it is in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import normalize

from headwater.dedup.normal import CJK, normal, spelled

# Of a text, so many signs are read: who did what stands at the beginning.
LEAD = 600
MOST_TERMS = 64
TITLE_WEIGHT = 1.0
LEAD_WEIGHT = 0.6
# How much of a coincidence a shared term excludes: a pair of signs is often half a name.
WORD_EVIDENCE = 1.0
PAIR_EVIDENCE = 0.5
# A long run of letters in a script without spaces is a whole phrase.
PHRASE_EVIDENCE = 2.0
PHRASE_LETTERS = 8

_NOWHERE = -1
_LINK = re.compile(r"https?:\S+|www\.\S+")
_SIGN = re.compile(f"[{CJK}]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that any two headlines may share. Rarer ones weigh little by themselves once enough posts have been seen.
COMMON = _words(
    "a about after again against all also am amid among an and any are around as at away back be became because been"
    " before behind being between both but by came can come could day days did do does doesnt doing done dont down"
    " during each even ever every few first for from get gets getting give go goes going gone got had has have having"
    " he her here him himself his how i if im in into is isnt it its itself just keep last less let like look made"
    " make makes making many may me might more most much must my near never new next no not now of off on once one"
    " only onto or other our out over own per put said same saw say saying says see she should since so some still"
    " such take takes than that the their them then there these they thing things this those though three through to"
    " today told tomorrow tonight too took two under until up upon us use used very via vs want wants was wasnt way we"
    " week well went were what when where which while who whom whose why will with within without wont would year"
    " years yes yet yesterday you your monday tuesday wednesday thursday friday saturday sunday amp rt"
)


class Vocabulary:
    """The place of each term. Words that share a stem share a place; common words have none."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._evidence: list[float] = []

    def __len__(self) -> int:
        return len(self._evidence)

    def read(self, title: str, text: str) -> tuple[dict[int, str], int]:
        """The terms of a post, each with a word that stands for it, and how many of them are the title's.

        A post without a title has its text for one.
        """
        terms = self._placed(normal(title).core)
        if not terms:
            terms, text = self._placed(_lead(text)), ""
        in_title = len(terms)
        if text:
            for place, word in self._placed(_lead(text)).items():
                terms.setdefault(place, word)
        if len(terms) > MOST_TERMS:
            terms = dict(list(terms.items())[:MOST_TERMS])
        return terms, min(in_title, MOST_TERMS)

    def evidence(self, first: int) -> list[float]:
        """The evidence of the terms that have the places from `first` on."""
        return self._evidence[first:]

    def keep(self, places: list[int]) -> None:
        """Forgets all terms but those at `places`; they move up and keep their order."""
        moved = {place: new for new, place in enumerate(places)}
        moved[_NOWHERE] = _NOWHERE
        self._evidence = [self._evidence[place] for place in places]
        self._places = {word: moved[place] for word, place in self._places.items() if place in moved}

    def _placed(self, core: str) -> dict[int, str]:
        words = core.split() if core.isascii() else list(_words_and_pairs(core))
        places = self._places
        try:
            terms = {places[word]: word for word in words}
        except KeyError:
            terms = {self._place(word): word for word in words}
        terms.pop(_NOWHERE, None)
        return terms

    def _place(self, word: str) -> int:
        place = self._places.get(word)
        if place is None:
            term = stem(word)
            place = self._places.get(term)
            if place is None:
                place = self._new_place(term)
                self._places[term] = place
            self._places[word] = place
        return place

    def _new_place(self, term: str) -> int:
        if term in COMMON or (len(term) == 1 and not term.isdigit()):
            return _NOWHERE
        self._evidence.append(_evidence(term))
        return len(self._evidence) - 1


def stem(word: str) -> str:
    """The word without the ending of a plural or of a verb's third person, if it is an English one and not short."""
    if word in COMMON or len(word) < 4 or not word.endswith("s") or not word.isascii():
        return word
    if word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def _lead(text: str) -> str:
    text = text[:LEAD]
    if not text.isascii():
        text = normalize("NFKC", text)
    text = text.lower()
    return spelled(_LINK.sub(" ", text) if "http" in text or "www." in text else text)


def _words_and_pairs(core: str) -> Iterator[str]:
    """Words as they are, neighbouring signs in pairs. A sign that stands alone is nothing."""
    before = ""
    for word in core.split():
        if len(word) == 1 and _SIGN.match(word):
            if before:
                yield before + word
            before = word
        else:
            before = ""
            yield word


def _evidence(term: str) -> float:
    if len(term) == 2 and _SIGN.match(term):
        return PAIR_EVIDENCE
    if len(term) >= PHRASE_LETTERS and _UNSPACED.match(term):
        return PHRASE_EVIDENCE
    return WORD_EVIDENCE
