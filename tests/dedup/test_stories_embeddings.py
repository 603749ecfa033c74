"""C8: embeddings may be switched on. They move a likeness; words stay what decides."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from headwater.dedup.embeddings import PACKAGE, Embeddings, load
from headwater.dedup.repeats import Posting
from headwater.dedup.stories import StoryIndex
from headwater.errors import BadInput

AT = 1_700_000_000.0
FLOOD = Posting(1, "Dam bursts and floods the Halvorsen copper mine in Norland", created_at=AT)
SAME = Posting(2, "Norland: water fills Halvorsen pit after wall gives way on Monday night", created_at=AT)
OTHER = Posting(3, "Cold evenings ask for soup", created_at=AT)


def all_alike(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))


def turned_by_each(texts: Sequence[str]) -> NDArray[np.float32]:
    """Opposite meanings for the flood and the rest."""
    return np.array([[1.0, 0.0] if text.startswith("Dam") else [-1.0, 0.0] for text in texts], np.float32)


def score(embed, post: Posting) -> float:
    index = StoryIndex(threshold=0.01, embed=embed)
    index.add(FLOOD)
    decision = index.add(post)
    return decision.score if decision else 0.0


def test_a_close_meaning_raises_the_score_and_a_far_one_lowers_it() -> None:
    assert score(turned_by_each, SAME) < score(None, SAME) < score(all_alike, SAME)


def test_meaning_without_shared_words_does_not_make_a_story() -> None:
    assert score(all_alike, OTHER) == 0


def test_a_forgotten_post_takes_its_meaning_with_it() -> None:
    index = StoryIndex(embed=all_alike)
    again = FLOOD._replace(id=4)
    index.add_many([FLOOD, again])
    index.forget(again)
    assert index.add(again) is not None


def test_stories_keep_their_meaning_when_there_are_many() -> None:
    index = StoryIndex(embed=all_alike)
    index.add(FLOOD)
    index.add_many(Posting(10 + number, f"filler{number} text{number}", created_at=AT) for number in range(5000))
    decision = index.add(SAME._replace(title=FLOOD.title))
    assert decision is not None
    assert decision.score == 1


class Piece:
    def __init__(self, ids: list[int]) -> None:
        self.ids = ids


class LetterTokenizer:
    """Pieces are letters a to d."""

    def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool) -> list[Piece]:
        return [Piece([ord(letter) - ord("a") for letter in text]) for text in texts]


def test_a_text_is_the_mean_of_its_pieces_with_length_one() -> None:
    embed = Embeddings(np.array([[1, 0], [0, 1], [2, 0], [0, 0]], np.float32), LetterTokenizer())
    half = 0.5**0.5
    assert embed(["ab", "c", "", "d"]) == pytest.approx(np.array([[half, half], [1, 0], [0, 0], [0, 0]]))


def test_loading_uses_the_packages_own_files_or_says_what_to_install() -> None:
    if find_spec(PACKAGE) is None:
        with pytest.raises(BadInput, match=r"headwater\[embeddings\]"):
            load()
        return
    embed = load()
    flood, same, other = embed([FLOOD.title, SAME.title, OTHER.title])
    assert flood @ same > flood @ other
