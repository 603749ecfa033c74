"""What is asked of a post to join a story, and what of it is read: its title and the beginning of its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import normalize

from headwater.dedup.normal import trimmed_post

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
EVERYDAY_EVIDENCE = 0.875
# A number or a year says little without a word.
NUMBER_EVIDENCE = 0.0
# A long run of letters in a script without spaces is a whole phrase.
PHRASE_EVIDENCE = 2.0
PHRASE_LETTERS = 8

_LINK = re.compile(r"https?:\S+|www\.\S+")


# By these words the language of a post is known: a story is told in one. Where none of these is written, or as many of
# two languages, nobody knows. Scripts other than the Latin one need none: they share no words with it.
LANGUAGES = (
    " the and of to for is are was were with at by from as after over will has have be it that his her their who how"
    " what says not this into about in on an so do no me he she we you your my out up off if or but us all now can"
    " die",
    " el la los las de del en con por para que una un al su sus más está fue tras y lo le como se desde hasta pero ser",
    " do da de dos das em na nas ao aos com por para que uma um não mais é foi são pelo pela após até se como"
    " no os as sem",
    " le les des du de et une un au aux dans pour sur avec est sont par pas qui que plus après ce cette ses en il la",
    " der die das den dem des ein eine einen und ist sind wird im am zum zur bei nach von vom vor aus auf mit für über"
    " nicht auch sich er sie wie",
    " il lo gli di del della dei delle nel nella che è sono non più per con una un alla dopo anche ha si da la le",
    " het een van voor niet met zijn wordt naar bij uit dat op te aan om is de en ook maar",
    " je na za se ki ne bo iz po ob pri tudi kot že še da od ali ter pa",
    " w z na do nie się jest są od po za dla że jak przez przed oraz ale już",
    " och att det som på är av för inte ett till har med den en efter vid mot om",
    " ve bir bu için ile çok daha olarak olan sonra",
    " yang dan di ke dari untuk dengan pada ini itu tidak akan",
)


# What makes the odds that a post and a story tell of one event: a constant, and what is added for each of these: the
# logarithms of the odds of their likeness, of the shared words, of the story's posts, of the post's terms, of posts
# times words, of how many other posts have the second rarest word that is shared; and which share of the posts that
# have the shared words are the story's; and by how much fewer posts of late joined a story than in the sets that the
# odds were found with (0 if not fewer): where hardly any post has another, a likeness is more often by chance.
# `bench/train_verifier.py` finds them; the last was found by reading merges of real feeds.
ODDS = (-2.0449, 1.4024, 0.9328, 0.7489, 0.2567, -0.6062, -0.196, 2.1956, 0.18)
# The same for posts of many terms (title and lead) that are words; between few and many terms, in between. There were
# no long posts in signs to find them with.
LONG_ODDS = (-3.3773, 2.3128, 1.0397, 0.7768, 0.2607, -0.8836, 0.0067, 2.7078, 0.18)
LOGS = len(ODDS) - 1
# What makes the odds that two stories are one: a constant, the logarithms of the larger's and the smaller's posts, the
# odds that the last bridge belongs to the second, and the logarithm of the sum of these probabilities over all bridges.
MEETING_ODDS = (0.0422, 0.4998, -0.8945, 0.6149, 0.7901)


class StoryRules(NamedTuple):
    """What is asked of a post: a likeness, and that it belongs to the story with at least the probability `threshold`.

    `short` and `long` are the likeness asked of posts with few and with many terms, `signs` of those with many pairs of
    signs: one word of Chinese is several pairs, and likeness is spread over them.
    """

    threshold: float
    window: float
    short: float = 0.12
    long: float = 0.18
    signs: float = 0.16
    odds: tuple[float, ...] = ODDS
    long_odds: tuple[float, ...] = LONG_ODDS
    # Of stories that are nearly as alike as the most alike one, the most probable is chosen. Nearly is by this factor,
    # and the closer to 1 the more alike that one is: between two texts of one pattern, the word that differs decides.
    nearly: float = 0.3
    # For a second story, which a post may be a bridge to, nearly is by this factor.
    nearly_second: float = 0.0
    # A post that belongs to a second story with this probability is a bridge. Two stories become one if that is this
    # probable.
    bridge: float = 0.1
    meeting: float = 0.75
    meeting_odds: tuple[float, ...] = MEETING_ODDS
    few_terms: float = 8.0
    many_terms: float = 16.0
    most_posts: int = 1000
    least_evidence: float = 1.5
    # The same while few posts were seen, and of posts in signs: half a pair is no half of a word.
    least_at_first: float = 2.0
    # To this evidence, an everyday word adds so much, and 1 over so many for each post of the story, up to 1.
    everyday: float = 0.4
    everyday_posts: float = 60.0
    # While few posts were seen, a shared word that stands behind another adds this much: the two may be one name.
    side_by_side: float = 0.4
    # A word of more stories than this share of all, but at least and at most so many, adds nothing to it.
    everyday_share: float = 0.15
    least_everyday: float = 10.0
    most_everyday: float = 100.0
    # How many entries of posting lists are read for a post, those of the rarest terms first: at least, for each of its
    # terms, and at most of one term.
    least_entries: int = 480
    entries_per_term: int = 24
    most_entries_per_term: int = 144
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
