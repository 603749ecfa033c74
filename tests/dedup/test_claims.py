"""What a telling says that none before it said, and where two disagree (F7): posts of our own invention."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.dedup.claims import disagreements, echoed, news, said

CALM = "Fire at the paper mill in Brekke: nobody was hurt"
WORDS = st.sampled_from(
    [
        "Brekke",
        "mill",
        "fire",
        "three",
        "12",
        "nobody",
        "hurt",
        "dead",
        "not",
        "paper",
        "Quint",
        "worn",
        "cables",
        "低开",
        "停工",
        "opens",
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)


@pytest.mark.parametrize(
    ("text", "numbers", "names"),
    [
        ("Three dead in fire at the paper mill in Brekke", ("3",), ()),
        ("Fire at the paper mill in Brekke burns for 14 hours, nobody was hurt", ("14",), ()),
        ("Nobody was hurt in the Brekke mill fire, says Aldous Quint of the paper union", (), ("Aldous", "Quint")),
    ],
)
def test_a_new_number_or_name_is_new(text: str, numbers: tuple[str, ...], names: tuple[str, ...]) -> None:  # F7
    found = news(said(text, ""), [said(CALM, "")])
    assert found.numbers == numbers
    assert set(names) <= set(found.names)


@pytest.mark.parametrize("text", ["Brekke paper mill: nobody hurt at fire", "BREAKING: " + CALM, CALM.upper()])
def test_the_same_in_other_words_is_not_new(text: str) -> None:  # F7
    assert echoed(said(text, ""), {7: said(CALM, "")}) == [7]


def test_a_new_sentence_is_new_and_shown_as_it_is_written() -> None:  # F7
    before = said("Mill burns", "A fire broke out at the mill. Work has stopped.")
    later = said(
        "Mill burns", "A fire broke out at the mill. Insurers expect heavy losses this quarter. Work has stopped."
    )
    assert news(later, [before]).sentences == ("Insurers expect heavy losses this quarter.",)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Three dead in fire at the paper mill", "Fire at the paper mill: nobody was hurt"),
        ("Mill fire: 5 people injured", "Mill fire: 2 people injured"),
        ("Acme denies it will buy the Norland bank", "Acme will buy the Norland bank"),
        ("造纸厂火灾致三人死亡", "造纸厂起火，无人伤亡"),
        ("Eleven sailors aboard the Alba", "Nine sailors aboard the Alba"),
    ],
)
def test_tellings_that_cannot_both_be_right_disagree(one: str, other: str) -> None:  # F7
    for this, that in ((one, other), (other, one)):
        [found, *_] = disagreements(said(this, ""), {4: said(that, "")})
        assert (found.sentence, found.other_id, found.other_sentence) == (this, 4, that)
        assert news(said(this, ""), [said(that, "")]), "a contradiction is never a mere repeat"


def test_tellings_that_add_to_each_other_do_not_disagree() -> None:
    one, other = said("Mill fire: two dead, five injured", ""), said("Five injured and two dead in mill fire", "")
    assert disagreements(one, {1: other}) == []


@given(TEXTS)
def test_nothing_is_new_in_what_was_said(text: str) -> None:
    assert not news(said(text, ""), [said(text, "")])
    assert echoed(said(text, ""), {3: said(text, "")}) == [3]
    assert disagreements(said(text, ""), {3: said(text, "")}) == []


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_a_telling_is_an_echo_of_tellings_that_together_said_it_or_it_is_new(text: str, before: list[str]) -> None:
    telling, earlier = said(text, ""), {number: said(one, "") for number, one in enumerate(before)}
    echoes = echoed(telling, earlier)
    if echoes:
        assert len(set(echoes)) == len(echoes)
        assert not news(telling, [earlier[one] for one in echoes])
    else:
        assert not earlier or news(telling, list(earlier.values()))


@given(st.text(max_size=300), st.text(max_size=600))
def test_any_text_can_be_read(title: str, text: str) -> None:
    telling = said(title, text)
    assert not news(telling, [telling])
