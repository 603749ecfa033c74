"""When two texts are the same text. Each trap has its test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.repeats_reference import compare, is_slip
from headwater.dedup.normal import normal, normal_post
from headwater.dedup.repeats import Verdict

WORDS = st.sampled_from(
    [
        "the",
        "harbour",
        "bridge",
        "opens",
        "not",
        "again",
        "after",
        "two",
        "repairs",
        "in",
        "spring",
        "12",
        "13",
        "$12",
        "of",
        "tehn",
        "then",
        "港",
        "口",
        "大",
        "了",
    ]
)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)


def same(one: str, other: str) -> Verdict | None:
    return compare(normal(one), normal(other))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        # C1
        ("Harbour bridge opens to traffic", "BREAKING: Harbour bridge opens to traffic", "the label breaking"),
        ("Harbour bridge opens to traffic", "RT @coast: Harbour bridge opens to traffic", "being passed on"),
        ("Harbour bridge opens to traffic", "Harbour bridge opens to traffic - Reuters", "the label reuters"),
        ("Harbour bridge opens to traffic", "harbour bridge opens: to traffic 🔥", "same text"),
        ("Harbour bridge opens to traffic", "Harbour bridge opens to trafic", "a slip in one word"),
        ("The harbour bridge opens to traffic", "Harbour bridge opens to traffic", "a small word"),
        ("Harbour bridge opens to traffic after repairs", "Harbour bridge opens to traffic af…", "cut off"),
        ("Harbour bridge opens to traffic", "Harbour bridge opens to traffic #city #open", "what follows it"),
        ("Harbour bridge opens to traffic", "Harbour bridge opens to traffic - Coast and Sea", "what follows it"),
        ("港口大桥今天正式通车", "港口大桥今天正式通车了", "a small word"),
        ("Fares rise by $12 on all ferries", "Fares rise by 12 on all ferries", "same text"),
        ("Ferry fares rise by 12% in spring", "Ferry fares rise by 12 in spring", "same text"),
    ],
)
def test_the_same_text_is_recognised_and_the_difference_said(one: str, other: str, why: str) -> None:
    found = same(one, other)
    assert found is not None
    assert why in found.why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Chip maker reports record profit in Q1", "Chip maker reports record profit in Q2"),
        ("Copper price rises after the strike ends", "Copper price falls after the strike ends"),
        ("海港城队3比0战胜山城队", "海港城队3比1战胜山城队"),
        ("The minister has signed the treaty", "The minister has not signed the treaty"),
        ("Rep. Alvarez votes against the bill today", "Rep. Okafor votes against the bill today"),
        ("How our river came back, part 1/2", "How our river came back, part 2/2"),
        ("Opening day of the 115th regatta", "Opening day of the 815th regatta"),
        ("Deal is worth four million in total", "Deal is worth four billion in total"),
        ("Iran agrees on a railway standard", "Iraq agrees on a railway standard"),
        ("警方回应夜间施工噪音投诉", "警方拒绝回应夜间施工噪音投诉"),
        ("All american teams are through again", "All americans teams are through again"),
        ("Ferry fares will double in spring", "Ferry fares will double in spring and fall"),
        ("Night was cold: -37 at the station", "Night was cold: 37 at the station"),
    ],
)
def test_a_changed_number_name_negation_or_word_is_another_text(one: str, other: str) -> None:
    assert same(one, other) is None


@pytest.mark.parametrize(
    "text", ["Thank you!", "Thank you so much", "谢谢大家", "", "🔥🔥🔥", "#a #b #c #d #e", "https://x.example/"]
)
def test_what_says_nothing_is_never_folded(text: str) -> None:
    assert same(text, text) is None


def test_replies_that_differ_by_one_mention_are_different() -> None:
    thanks = "Thanks for showing us around the lab"
    assert same(f"@mira {thanks}", f"@jonas {thanks}") is None
    assert same(f"@mira {thanks}", f"@mira @jonas {thanks}") is None
    assert same(f"@mira {thanks}", f"@mira {thanks}!") is not None


def test_a_quotation_with_a_comment_is_not_a_copy() -> None:
    assert (
        same("Nobody listens. RT @coast: Ferry fares will double in spring", "Ferry fares will double in spring")
        is None
    )


def test_other_scripts_are_told_apart_by_every_sign() -> None:
    assert same("नदी के किनारे नया पुल खुला", "नदी के किनारे नयी पुल खुली") is None
    assert same("서울 시내버스 요금이 내년부터 오른다", "서울 시내버스 요금이 내년부터 오른다!") is not None


def test_a_title_alone_is_the_post_that_has_a_text_as_well() -> None:
    title = "Harbour bridge opens to traffic"
    assert compare(normal(title), normal_post(title, "The mayor walked across first. Trucks have to wait.")) is not None


def test_two_texts_under_one_title_are_two_posts() -> None:
    title = "What we read this week at the harbour"
    assert compare(normal_post(title, "Three novels about ferries."), normal_post(title, "A history of salt.")) is None


def test_articles_are_the_same_if_most_of_one_is_in_the_other() -> None:
    body = " ".join(f"word{n} and thing{n * 7 % 13} near" for n in range(60))
    page = f"Home News Sport Share this page {body} Read next Subscribe to us"
    found = same(body, page)
    assert found is not None
    assert found.rule == "similar"
    assert found.score > 0.8
    assert same(body, " ".join(reversed(body.split()))) is None


def test_an_article_with_other_numbers_is_another_bulletin() -> None:
    bulletin = " ".join(f"wind station{n} from the north at {{}}{n} knots" for n in range(14))
    assert same(bulletin.format(*[1] * 14), bulletin.format(*[2] * 14)) is None


def test_a_slip_is_one_letter_missing_wrong_or_swapped() -> None:
    assert is_slip("traffic", "trafic")
    assert is_slip("traffic", "trafifc")
    assert is_slip("traffic", "traxfic")
    assert not is_slip("cat", "car")
    assert not is_slip("2024a", "2025a")
    assert not is_slip("dream", "dreams")
    assert not is_slip("traffic", "terrific")


@given(TEXTS, TEXTS)
def test_the_decision_is_symmetric_and_its_score_a_share(one: str, other: str) -> None:
    # C3
    found = same(one, other)
    assert found == same(other, one)
    assert found is None or 0 <= found.score <= 1


@given(TEXTS)
def test_a_text_is_itself_or_says_too_little(text: str) -> None:
    found = same(text, text)
    assert found is None or found == Verdict("exact", 1.0, "same text")
