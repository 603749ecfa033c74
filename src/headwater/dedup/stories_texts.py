"""What is read of posts for stories: titles and the beginnings of texts, without what does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.normal import spelled, trimmed_post

# Of a text, so many signs are read: who did what stands at the beginning.
LEAD = 600
# So many of a title: it may be all that a post has.
LONGEST_TITLE = 4096

_LINK = re.compile(r"https?:\S+|www\.\S+")


class Texts(NamedTuple):
    """Posts, one behind the other. Of each, `bounds` are where its title begins, where its lead does, and its end."""

    text: str
    codes: NDArray[np.int32]
    bounds: NDArray[np.int64]


def texts_of(posts: Iterable[tuple[str, str]]) -> Texts:
    """Titles and texts without labels, publishers and links, in lower case."""
    parts = [part for title, text in posts for part in (_title(title), _lead(text) if text else "")]
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=bounds[1:])
    text = "".join(parts)
    return Texts(text, codes_of(text), np.column_stack((bounds[:-1:2], bounds[1::2], bounds[2::2])))


def codes_of(text: str) -> NDArray[np.int32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


def word_at(texts: Texts, begin: int, end: int) -> str:
    """The word that a term was read from, in one spelling."""
    return spelled(texts.text[begin:end]).replace(" ", "")


def _title(title: str) -> str:
    trimmed = trimmed_post(title, "")
    return f"{trimmed.body[:LONGEST_TITLE]} {trimmed.tail[:LEAD]}" if trimmed.tail else trimmed.body[:LONGEST_TITLE]


def _lead(text: str) -> str:
    text = text[:LEAD]
    if not text.isascii():
        text = normalize("NFKC", text)
    text = text.lower()
    return _LINK.sub(" ", text) if "http" in text or "www." in text else text
