"""What is asked of a post to join a story, and what of it is read: its title and the beginning of its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import normalize

from headwater.dedup.normal import trimmed_post, words

# Of a text, so many characters are read: who did what stands at the beginning.
LEAD = 600
# So many of a title: it may be all that a post has.
LONGEST_TITLE = 4096
MOST_TERMS = 64
TITLE_WEIGHT = 1.0
LEAD_WEIGHT = 0.6
# How much of a coincidence a shared term excludes: a pair of signs is often half a name.
WORD_EVIDENCE = 1.0
PAIR_EVIDENCE = 0.5
# A number or a year says little without a word.
NUMBER_EVIDENCE = 0.0
# A long run of letters in a script without spaces is a whole phrase.
PHRASE_EVIDENCE = 2.0
PHRASE_LETTERS = 8

_LINK = re.compile(r"https?:\S+|www\.\S+")


# Words that any two headlines may share. Rarer ones weigh little by themselves once enough posts have been seen.
COMMON = words(
    "a about after again against all also am amid among an and any are around as at away back be became because been"
    " before behind being between both but by came can come could day days did do does doesnt doing done dont down"
    " during each even ever every few first for from get gets getting give go goes going gone got had has have having"
    " he her here him himself his how i if im in into is isnt it its itself just keep last less let like look made"
    " make makes making many may me might more most much must my near never new next no not now of off on once one"
    " only onto or other our out over own per put said same saw say saying says see she should since so some still"
    " such take takes than that the their them then there these they thing things this those though three through to"
    " today told tomorrow tonight too took two under until up upon us use used very via vs want wants was wasnt way we"
    " week well went were what when where which while who whom whose why will with within without wont would year"
    " years yes yet yesterday you your monday tuesday wednesday thursday friday saturday sunday amp rt january february"
    " march april june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec"
)


# What makes the odds that a post and a story tell of one event: a constant, and what is added for each of these: the
# logarithms of the odds of their likeness, of the shared words, of the story's posts, of the post's terms, of posts
# times words, of how many other posts have the second rarest word that is shared; and which share of the posts that
# have the shared words are the story's. `bench/train_verifier.py` finds them.
ODDS = (-2.0449, 1.4024, 0.9328, 0.7489, 0.2567, -0.6062, -0.196, 2.1956)
LOGS = len(ODDS) - 1
# What makes the odds that two stories are one: a constant, the logarithms of the larger's and the smaller's posts, the
# odds that the last bridge belongs to the second, and the logarithm of the sum of these probabilities over all bridges.
MEETING_ODDS = (0.4129, 0.224, -1.2251, 0.5571, 1.1159)


class StoryRules(NamedTuple):
    """What is asked of a post: a likeness, and that it belongs to the story with at least the probability `threshold`.

    `short` and `long` are the likeness asked of posts with few and with many terms, `signs` of those with many pairs of
    signs: one word of Chinese is several pairs, and likeness is spread over them.
    """

    threshold: float
    window: float
    short: float = 0.12
    long: float = 0.25
    signs: float = 0.16
    odds: tuple[float, ...] = ODDS
    # Of stories that are nearly as alike as the most alike one, the most probable is chosen. Nearly is by this factor,
    # and the closer to 1 the more alike that one is: between two texts of one pattern, the word that differs decides.
    nearly: float = 0.6
    # A post that belongs to a second story with this probability is a bridge, if at least this share of the posts with
    # the shared words are that story's: posts that only follow one pattern share words with everything. Two stories
    # become one if that is this probable.
    bridge: float = 0.3
    least_specific: float = 0.2
    meeting: float = 0.75
    meeting_odds: tuple[float, ...] = MEETING_ODDS
    few_terms: float = 8.0
    many_terms: float = 16.0
    most_posts: int = 1000
    least_evidence: float = 2.0
    # How many entries of posting lists are read for a post, those of the rarest terms first: at least, for each of its
    # terms, and at most of one term.
    least_entries: int = 320
    entries_per_term: int = 16
    most_entries_per_term: int = 96
    # Embeddings add so much to a likeness, times by how much the meaning is closer than that of any two posts, but only
    # for stories whose words reach this share of what is asked.
    meaning: float = 0.1
    usual_closeness: float = 0.5
    least_share: float = 0.4
    # Before anything was seen, each term is thought to be one of so many.
    background: float = 10000.0


def parts_of(posts: Iterable[tuple[str, str]]) -> list[str]:
    """For each title and text what is read of them, without labels, publishers and links, in lower case."""
    return [part for title, text in posts for part in (_title(title), _lead(text) if text else "")]


def _title(title: str) -> str:
    trimmed = trimmed_post(title, "")
    return f"{trimmed.body[:LONGEST_TITLE]} {trimmed.tail[:LEAD]}" if trimmed.tail else trimmed.body[:LONGEST_TITLE]


def _lead(text: str) -> str:
    text = text[:LEAD]
    if not text.isascii():
        text = normalize("NFKC", text)
    text = text.lower()
    return _LINK.sub(" ", text) if "http" in text or "www." in text else text
