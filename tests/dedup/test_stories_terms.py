"""Compiled reading finds the terms that the readable one finds, and tables find what was put into them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dedup.stories_reference import evidence, stem, terms_of
from headwater.dedup.stories_memory import vocabulary, with_room_for_terms, without_unseen_terms
from headwater.dedup.stories_posts import StoriesOfPosts
from headwater.dedup.stories_terms import TERM, Reading, read_posts, room_for_terms, tables
from headwater.dedup.stories_texts import texts_of, word_at

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


def read(posts: list[tuple[str, str]]) -> list[dict[str, tuple[float, float]]]:
    """For each post its terms as words, with weight and evidence."""
    characters = texts_of(posts)
    found = room_for_terms(characters)
    known = with_room_for_terms(vocabulary(np.zeros(0, TERM)), len(found.places))
    read_posts(Reading(characters.codes, tables(), known, found), characters.bounds)
    answers = []
    for first, end in zip(found.starts[:-1], found.starts[1:], strict=True):
        words = [word_at(characters, found.begins[at], found.ends[at]) for at in range(first, end)]
        weights = found.weights[first:end].tolist()
        shares = known.terms["evidence"][found.places[first:end]].tolist()
        answers.append({stem(word): of for word, *of in zip(words, weights, shares, strict=True)})
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


def test_terms_that_were_not_seen_lose_their_place_and_the_rest_is_found() -> None:
    known = with_room_for_terms(vocabulary(np.zeros(0, TERM)), 2000)
    words = texts_of([(f"word{number}", "") for number in range(2000)])
    found = room_for_terms(words)
    read_posts(Reading(words.codes, tables(), known, found), words.bounds)
    known.terms["seen"][found.places[:2000:2]] = 1.0
    kept = with_room_for_terms(without_unseen_terms(known), 2000)
    assert kept.size[0] == 1000
    again = room_for_terms(words)
    read_posts(Reading(words.codes, tables(), kept, again), words.bounds)
    assert again.places[:2000:2].tolist() == list(range(1000))
    assert kept.size[0] == 2000


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), max_size=200))
@settings(max_examples=40, deadline=None)
def test_the_stories_of_posts_are_remembered_as_a_dict_would(steps: list[tuple[int, bool]]) -> None:
    remembered, expected = StoriesOfPosts(), dict[int, int]()
    for number, (post, stays) in enumerate(steps):
        if post not in remembered:
            remembered.put(np.array([post], np.int64), np.array([number], np.int32))
            expected[post] = number
        if not stays:
            remembered.forget(post)
            del expected[post]
    posts = [post for post, _ in steps]
    assert remembered.of(posts) == expected
    assert len(remembered) == len(expected)
    remembered.keep(remembered.numbers() % 2 == 0)
    assert remembered.of(posts) == {post: number for post, number in expected.items() if number % 2 == 0}


def test_the_first_post_of_a_story_is_the_one_that_came_first() -> None:
    remembered = StoriesOfPosts()
    remembered.put(np.array([9, 3, 5], np.int64), np.array([1, 2, 2], np.int32))
    assert (remembered.first_of(2), remembered.first_of(7)) == (3, -1)
