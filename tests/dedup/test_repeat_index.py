"""Finding what a post repeats: the plain index and the compiled one keep the same promises, and decide the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.repeats_reference import PlainIndex
from headwater.dedup.normal import spelled
from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.repeats import HOUR, Posting, RepeatDecision
from headwater.dedup.spelling import Spelling

NewIndex = Callable[..., RepeatIndex | PlainIndex]
HEADLINE = "Harbour bridge opens to traffic after repairs"
PIECES = st.sampled_from(
    [
        "BREAKING: ",
        "RT @coast: ",
        "@mira ",
        "the ",
        "harbour ",
        "bridge ",
        "opens ",
        "again ",
        "today ",
        "after ",
        "two ",
        "repairs ",
        "reparis ",
        "repair s ",
        "12 ",
        "13 ",
        "$12 ",
        "1,200 ",
        "not ",
        "港口",
        "大桥",
        "通车",
        "了",
        "#sea ",
        "…",
        "ß",
        " - Reuters",
        "https://x.example/ ",
        "पुल ",
        "мост ",
    ]
)
TITLES = st.lists(PIECES, max_size=12).map("".join)
POSTINGS = st.lists(
    st.tuples(TITLES, st.sampled_from(["", "", "More words to read here."]), st.integers(0, 200)), max_size=30
)


@pytest.fixture(params=[PlainIndex, RepeatIndex])
def new_index(request: pytest.FixtureRequest) -> NewIndex:
    made: NewIndex = request.param
    return made


def some_posts(count: int, seed: int = 1) -> list[Posting]:
    """Posts of which a third repeat others with an edit and a third nearly do."""
    chance = random.Random(seed)
    words = [
        f"{first}{second}" for first in ("mar", "tel", "vi", "sor") for second in ("ket", "dan", "los", "min", "rup")
    ]
    texts: list[str] = []
    for _ in range(count):
        old = chance.choice(texts) if texts else ""
        edits = [f"BREAKING: {old}", f"{old} #news", old.replace("e", "", 1), f"{old} 12", f"{old[:30]}…", old]
        fresh = " ".join(chance.choices(words, k=chance.randrange(5, 12)))
        long = " ".join(chance.choices(words, k=90)) if chance.random() < 0.1 else fresh
        texts.append(chance.choice(edits) if old and chance.random() < 0.6 else long)
    return [Posting(number, text, "", number * 60.0) for number, text in enumerate(texts)]


def test_a_repeat_is_found_with_rule_score_and_reason(new_index: NewIndex) -> None:
    index = new_index()
    assert index.add(Posting(1, HEADLINE)) is None
    assert index.add(Posting(2, f"BREAKING: {HEADLINE}")) == RepeatDecision(
        2, 1, "exact", 1.0, "same text but for the label breaking"
    )
    similar = index.add(Posting(3, HEADLINE.replace("traffic", "trafifc")))
    assert similar is not None
    assert (similar.leader, similar.rule, similar.why) == (1, "similar", "same text but for a slip in one word")


def test_a_post_is_in_one_group_and_groups_do_not_chain(new_index: NewIndex) -> None:
    # C3
    index = new_index()
    decisions = index.add_many(some_posts(600))
    led = {decision.leader for decision in decisions if decision}
    followers = {decision.post for decision in decisions if decision}
    assert led
    assert not led & followers
    assert all(decision.leader < decision.post for decision in decisions if decision)
    assert all(0.5 <= decision.score <= 1 for decision in decisions if decision)


def test_a_higher_threshold_only_takes_decisions_away(new_index: NewIndex) -> None:
    # C2, C8
    posts = [Posting(1, HEADLINE), Posting(2, HEADLINE), Posting(3, HEADLINE.replace("traffic", "trafifc"))]
    assert [bool(found) for found in new_index(threshold=0.99).add_many(posts)] == [False, True, False]


def test_only_the_window_is_looked_at(new_index: NewIndex) -> None:
    index = new_index(window_seconds=72 * HOUR)
    index.add(Posting(1, HEADLINE, created_at=0.0))
    assert index.add(Posting(2, HEADLINE, created_at=73.0 * HOUR)) is None
    late = index.add(Posting(3, HEADLINE, created_at=71.0 * HOUR))
    assert late is not None
    assert late.leader == 1


def test_what_is_too_old_is_forgotten_and_the_rest_is_still_found(new_index: NewIndex) -> None:
    index = new_index()
    posts = some_posts(900)
    index.add_many(posts)
    before = len(index)
    index.expire(posts[700].created_at)
    assert 0 < len(index) < before / 2
    index.add(Posting(5000, HEADLINE, created_at=posts[-1].created_at))
    found = index.add(Posting(5001, f"WATCH: {HEADLINE}", created_at=posts[-1].created_at))
    assert found is not None
    assert found.leader == 5000


def test_a_forgotten_post_is_repeated_by_nobody(new_index: NewIndex) -> None:
    index = new_index()
    index.add(Posting(1, HEADLINE))
    index.forget(1)
    index.forget(77)
    assert len(index) == 0
    assert index.add(Posting(2, HEADLINE)) is None


def test_what_a_person_told_apart_stays_apart(new_index: NewIndex) -> None:
    # C5
    index = new_index()
    index.add(Posting(1, HEADLINE))
    assert index.add(Posting(2, HEADLINE, apart=frozenset({1}))) is None
    third = index.add(Posting(3, HEADLINE))
    assert third is not None
    assert third.leader == 1


def test_a_repost_says_itself_what_it_repeats(new_index: NewIndex) -> None:
    # C1
    found = new_index().add(Posting(2, "Look at this", repost_of=1))
    assert found == RepeatDecision(2, 1, "exact", 1.0, "passes the other on")


def test_few_words_are_repeated_only_about_the_same_link(new_index: NewIndex) -> None:
    index = new_index()
    index.add(Posting(1, "Thank you!", link="https://example.org/a"))
    assert index.add(Posting(2, "Thank you!", link="https://example.org/b")) is None
    assert index.add(Posting(3, "Thank you!")) is None
    found = index.add(Posting(4, "Thank you!", link="https://example.org/a"))
    assert found is not None
    assert (found.leader, found.why) == (1, "same words and same link")


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        # C1
        ("Harbour bridge reopens", "Harbour bridge reopens", "same text"),
        ("Harbour bridge reopens", "RT @coast: Harbour bridge reopens", "same text but for being passed on"),
        ("Harbour bridge reopens", "The harbour bridge reopens!", "same text"),
        ("Okafor道歉", "Okafor道歉了", "same text"),
        (
            "Harbour bridge reopens on Sunday morning",
            "Harbour bridge reopens…",
            "same text but for its end, which is cut off",
        ),
    ],
)
def test_few_words_that_somebody_else_wrote_as_well_are_a_repeat(
    new_index: NewIndex, one: str, other: str, why: str
) -> None:
    index = new_index()
    index.add(Posting(1, one, source=1))
    found = index.add(Posting(2, other, source=2))
    assert found is not None
    assert (found.leader, found.why) == (1, why)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Happy Thanksgiving everyone!", "Happy Thanksgiving everyone!"),
        ("Weekly discussion thread", "Weekly discussion thread"),
        ("Scheduled maintenance", "Scheduled maintenance"),
        ("Version 2.0", "Version 2.0"),
        ("Good morning, friends", "Good morning, friends"),
        ("谢谢大家", "谢谢大家"),
        ("Harbour bridge reopens", "Harbour bridge closes"),
        ("@mira see the harbour bridge", "@jonas see the harbour bridge"),
        ("New harbour…", "New harbour bridge opens to traffic"),
    ],
)
def test_few_words_that_anybody_writes_or_that_differ_are_no_repeat(new_index: NewIndex, one: str, other: str) -> None:
    index = new_index()
    index.add(Posting(1, one, source=1))
    assert index.add(Posting(2, other, source=2)) is None


def test_a_source_that_writes_the_same_few_words_again_has_a_series(new_index: NewIndex) -> None:
    index = new_index()
    index.add(Posting(1, "Harbour bridge diary", source=1, link="https://example.org/a"))
    assert index.add(Posting(2, "Harbour bridge diary", source=1, link="https://example.org/b")) is None
    found = index.add(Posting(3, "Harbour bridge diary", source=1, link="https://example.org/a"))
    assert found is not None
    assert found.leader == 1


def test_an_index_that_is_rebuilt_decides_as_before(new_index: NewIndex) -> None:
    posts = some_posts(400)
    index = new_index()
    leaders = [post for post, found in zip(posts, index.add_many(posts), strict=True) if found is None]
    rebuilt = new_index()
    rebuilt.add_many(leaders)
    again = Posting(9999, f"JUST IN: {posts[0].title}", created_at=posts[0].created_at)
    assert index.add(again) == rebuilt.add(again)
    one_by_one = RepeatIndex()
    assert [one_by_one.add(post) for post in leaders] == [None] * len(leaders)
    assert len(one_by_one) == len(rebuilt)


def test_the_order_of_arrival_does_not_change_which_texts_are_one_group(new_index: NewIndex) -> None:
    edits = [HEADLINE, f"BREAKING: {HEADLINE}", f"{HEADLINE} - Reuters", HEADLINE.replace("bridge", "brigde")]
    others = [HEADLINE.replace("opens", "closes"), HEADLINE.replace("bridge", "tunnel")]
    chance = random.Random(4)
    for _ in range(20):
        posts = [Posting(number, text) for number, text in enumerate(edits + others)]
        chance.shuffle(posts)
        group = {}
        for post, found in zip(posts, new_index().add_many(posts), strict=True):
            group[post.id] = found.leader if found else post.id
        assert len({group[number] for number in range(len(edits))}) == 1
        assert len(set(group.values())) == 3


@settings(max_examples=60, deadline=None)
@given(POSTINGS, st.sampled_from([0.0, 50.0, 1000.0]))
def test_compiled_and_plain_decide_the_same(drafts: list[tuple[str, str, int]], window: float) -> None:
    posts = [Posting(number, title, text, float(at)) for number, (title, text, at) in enumerate(drafts)]
    fast, plain = RepeatIndex(window_seconds=window), PlainIndex(window_seconds=window)
    assert fast.add_many(posts) == plain.add_many(posts)
    assert fast.contradicted == plain.contradicted
    assert len(fast) == len(plain)


def test_compiled_and_plain_decide_the_same_about_many_posts() -> None:
    posts = some_posts(1500, seed=7)
    fast, plain = RepeatIndex(), PlainIndex()
    assert fast.add_many(posts[:1000]) == plain.add_many(posts[:1000])
    assert fast.contradicted == plain.contradicted
    fast.expire(700 * 60.0)
    plain.expire(700 * 60.0)
    assert fast.add_many(posts[1000:]) == plain.add_many(posts[1000:])


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="'’‘")) | st.text("a1 .,-$%:中_", max_size=40))
def test_compiled_spelling_is_the_plain_spelling(text: str) -> None:
    found = Spelling([text])
    words = [bytes(found.text[found.starts[word] : found.ends[word]]).decode() for word in range(found.first[1])]
    assert words == spelled(text).split()
    end = found.ends[len(words) - 1] if words else 0
    assert bytes(found.text[:end]).decode() == spelled(text)
