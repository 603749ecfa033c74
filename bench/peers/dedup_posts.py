"""Made-up posts that load an index like real ones: word frequencies, lengths, repeats, near misses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

VOCABULARY = 200_000
WINDOW_SECONDS = 72 * 3600
_BEGINNINGS = "ba be bi co da de fa ga ha in ka la le ma mi na no pa"
_SYLLABLES = tuple(_BEGINNINGS.split())
_ENDINGS = ("ra", "re", "ri", "sa", "se", "ta", "te", "ti", "to", "un", "va", "we", "ter", "ing", "ment", "sion")
_SMALL_WORDS = "the of and to in a for is on that with as by at from it this"
_SMALL = _SMALL_WORDS.split()
_BEFORE = ("BREAKING: ", "JUST IN: ", "RT @newsroom: ", "【快讯】", "🔥 ", "WATCH: ")
_BEHIND = (" - Reuters", " | BBC News", " https://t.co/a1B2c3D4", " #breaking", " via @agency", " 😂")
_SIGNS = [chr(0x4E00 + number) for number in range(3500)]


def posts(count: int, seed: int = 1) -> Iterator[tuple[str, float]]:
    """Yields texts with times. One in four repeats a recent one with an edit; one in fifty is a near miss."""
    chance = random.Random(seed)
    vocabulary = _vocabulary(chance)
    weights = list(accumulate(1 / (rank + 8) for rank in range(VOCABULARY)))
    recent: list[str] = []
    for number in range(count):
        draw = chance.random()
        if recent and draw < 0.25:
            text = _edited(chance.choice(recent), chance)
        elif recent and draw < 0.27:
            text = f"{chance.choice(recent)} {chance.randrange(10_000)} more"
        else:
            text = _headline(chance) if draw > 0.9 else _tweet(chance, vocabulary, weights)
            if len(recent) < 5000:
                recent.append(text)
            else:
                recent[number % 5000] = text
        yield text, 1_700_000_000 + number * WINDOW_SECONDS / count


def _vocabulary(chance: random.Random) -> list[str]:
    """Returns words by frequency: the rarer, the longer."""
    words = list(_SMALL)
    while len(words) < VOCABULARY:
        syllables = chance.choices(_SYLLABLES, k=1 + min(3, len(words) // 300))
        words.append("".join(syllables) + chance.choice(_ENDINGS))
    return words


def _tweet(chance: random.Random, vocabulary: list[str], weights: list[float]) -> str:
    words = chance.choices(vocabulary, cum_weights=weights, k=chance.randrange(6, 36))
    if chance.random() < 0.3:
        words.insert(chance.randrange(len(words)), str(chance.randrange(10_000)))
    return " ".join(words).capitalize() + "."


def _headline(chance: random.Random) -> str:
    return "".join(chance.choices(_SIGNS, k=chance.randrange(8, 24)))


def _edited(text: str, chance: random.Random) -> str:
    draw = chance.randrange(6)
    if draw == 0:
        return chance.choice(_BEFORE) + text
    if draw == 1:
        return text + chance.choice(_BEHIND)
    if draw == 2 and len(text) > 80:
        return text[: chance.randrange(60, len(text))] + "…"
    if draw == 3 and len(text) > 20:
        at = chance.randrange(3, len(text) - 2)
        return text[:at] + text[at + 1 :]
    return text
