"""Compiled reading finds the terms that the readable one finds, and tables find what was put into them."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dedup.stories_reference import evidence, stem, terms_of
from headwater.dedup.arrays import HashTable
from headwater.dedup.stories import StoriesOfPosts
from headwater.dedup.story_choice import decide
from headwater.dedup.story_memory import StoryMemory
from headwater.dedup.story_rules import StoryRules, parts_of
from headwater.dedup.story_terms import StoryBatch, Terms

PIECES = [
    *(
        "stocks",
        "stock",
        "parties",
        "ties",
        "Boss",
        "virus",
        "the",
        "does",
        "wills",
        "A",
        "7",
        "1,000",
        "1,000s",
        "$5.2bn",
    ),
    *(
        "don't",
        "rock'n'roll",
        "-3%",
        "水坝",
        "水",
        "，",
        "垮塌。",
        "カ",
        "เขื่อนแตกน้ำท่วม",
        "Прорыв",
        "𠀀𠀁",
        "🔥",
        "#tag",
        "RT @a:",
    ),
    *("https://example.org/x", "www.example.org", "BREAKING:", "- Reuters", "ﬁne", "\ud800", "…", "(via agency)"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30).map(" ".join)


def read(posts: list[tuple[str, str]]) -> list[dict[str, list[float]]]:
    """For each post its terms as words, with weight and evidence."""
    found = Terms(parts_of(posts), HashTable())
    answers = []
    for first, end in pairwise(found.starts):
        words = [found.word(at) for at in range(first, end)]
        answers.append(
            {
                stem(word): [found.weights[at], found.evidence[at]]
                for at, word in zip(range(first, end), words, strict=True)
            }
        )
    return answers


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
@example([("", "")])
@example([("the of", "Stocks fall 1,000 points"), ("水，坝 a 塌", "水坝")])
@example([("word%d " * 100 % tuple(range(100)), "more words")])
@settings(max_examples=150, deadline=None)
def test_compiled_reading_finds_what_the_readable_one_finds(posts: list[tuple[str, str]]) -> None:
    for (title, text), found in zip(posts, read(posts), strict=True):
        expected = {term: [pytest.approx(weight), evidence(term)] for term, weight in terms_of(title, text).items()}
        assert found == expected


def test_a_very_long_title_is_read_as_far_as_titles_go() -> None:
    [found] = read([("seldom " * 1000 + "never-reached-word", "")])
    assert list(found) == ["seldom"]


def test_terms_that_were_not_seen_lose_their_number_and_the_rest_is_found() -> None:
    vocabulary, memory = HashTable(), StoryMemory(StoryRules(0.5, 1e9), 1024, 0)
    words = [f"word{number}" for number in range(2000)]
    parts = parts_of((word, "") for word in words)
    all_of_them = Terms(parts, vocabulary)
    assert list(all_of_them.numbers) == list(range(2000))
    memory.make_room_for_terms(len(vocabulary))
    seen = Terms(parts_of((word, "") for word in words[::2]), vocabulary)
    decide(memory, StoryBatch(seen, list(range(1000)), [1.0] * 1000, [], array("f", [0.0]), [0] * 1000))
    chosen = memory.terms_seen()
    assert list(chosen) == [1, 0] * 1000
    vocabulary.keep(chosen)
    memory.keep_terms(chosen)
    assert len(vocabulary) == memory.terms == 1000
    again = Terms(parts, vocabulary)
    assert list(again.numbers[::2]) == list(range(1000))
    assert len(vocabulary) == 2000
    memory.make_room_for_terms(len(vocabulary))
    assert list(memory.terms_seen()) == [1] * 1000 + [0] * 1000


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), max_size=200))
@settings(max_examples=40, deadline=None)
def test_the_stories_of_posts_are_remembered_as_a_dict_would(steps: list[tuple[int, bool]]) -> None:
    remembered, expected = StoriesOfPosts(), dict[int, int]()
    for number, (post, stays) in enumerate(steps):
        if post not in remembered:
            remembered.put([post], [number], [1])
            expected[post] = number
        if not stays:
            remembered.forget(post)
            del expected[post]
    posts = [post for post, _ in steps]
    assert remembered.of(posts) == expected
    assert len(remembered) == len(expected)
    remembered.keep(bytearray(number % 2 == 0 for number in remembered.numbers()))
    assert remembered.of(posts) == {post: number for post, number in expected.items() if number % 2 == 0}


def test_the_first_post_of_a_story_is_the_one_that_came_first() -> None:
    remembered = StoriesOfPosts()
    remembered.put([9, 3, 5], [1, 2, 2], [1, 1, 1])
    assert [remembered.first_of(pieces) for pieces in ([2], [2, 1], [7])] == [3, 9, -1]
