"""What of a text is compared, and what is set aside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.dedup.normal import normal, normal_post

HEADLINE = "harbour bridge opens to traffic"


@pytest.mark.parametrize(
    "text",
    [
        "Harbour bridge opens to traffic",
        "BREAKING: Harbour bridge opens to traffic",
        "Just in - Harbour bridge opens to traffic",
        "[VIDEO] Harbour bridge opens to traffic",
        "🔥🔥 Harbour bridge opens to traffic!",
        "RT @coast: Harbour bridge opens to traffic",
        "RT @coast: BREAKING: Harbour bridge opens to traffic",
        "Harbour bridge opens to traffic - Reuters",
        "Harbour bridge opens to traffic | BBC News",
        "Harbour bridge opens to traffic (Reuters)",
        "Harbour bridge opens to traffic via @dailycoast_news_times",
        "Harbour bridge opens to traffic https://example.org/a",
        "Ｈａｒｂｏｕｒ bridge opens to traffic",
        "“Harbour” bridge: opens, to traffic",
    ],
)
def test_what_newsrooms_and_readers_put_around_a_headline_is_set_aside(text: str) -> None:
    found = normal(text)
    assert " ".join(found.words[: len(found.words) - found.tail]) == HEADLINE


@pytest.mark.parametrize(
    "text",
    [
        "【快讯】港口大桥今天通车",
        "突发：港口大桥今天通车",
        "#热搜# 港口大桥今天通车",
        "#港口大桥今天通车#",
        "//@城市观察:港口大桥今天通车",
        "转发微博 //@城市观察:港口大桥今天通车",
        "港口大桥今天通车_都市日报",
        "港口大桥今天通车 - 新华社",
        "港口大桥今天通车（来源：都市日报）",
        "港口大桥今天通车[心]",
        "港口 大桥，今天通车！ http://t.cn/A1",
    ],
)
def test_chinese_headlines_lose_the_same_things(text: str) -> None:
    assert normal(text).core == "港 口 大 桥 今 天 通 车"


def test_numbers_stay_whole() -> None:
    found = normal("Q1 profit up 4.5% to $1,250,000; part 1/2 of the 115th, at 12:30, -37 outside")
    assert found.core == "q1 profit up 4.5% to $1250000 part 1/2 of the 115th at 12:30 -37 outside"
    assert normal("海港城队3比0战胜山城队").words[4:7] == ["3", "比", "0"]


def test_tags_at_the_end_are_the_tail_and_within_the_text_are_words() -> None:
    found = normal("We walked to #Harbour and back again #sunny #walk")
    assert found.core == "we walked to harbour and back again sunny walk"
    assert found.tail == 2


def test_dots_at_the_end_say_that_a_text_is_cut_and_whether_a_word_is_torn() -> None:
    assert normal("The bridge was op…")[5:] == (True, True)
    assert normal("The bridge was open ...")[5:] == (True, True)
    assert normal("The bridge was open.")[5:] == (False, False)


def test_whom_a_text_speaks_to_is_kept_apart() -> None:
    found = normal("@mira @jonas thanks for the tour")
    assert found.core == "thanks for the tour"
    assert found.mentions == ("@jonas", "@mira")


def test_a_comment_before_a_quotation_is_no_label() -> None:
    # A quote is a relation and not a copy.
    assert normal("So true. RT @coast: Harbour bridge opens").core == "so true rt coast harbour bridge opens"


def test_a_title_that_repeats_the_beginning_of_the_text_counts_once() -> None:
    found = normal_post("The bridge is open", "The bridge is open. Trucks have to wait.")
    assert found.core == "the bridge is open trucks have to wait"
    assert found.head == 4
    assert normal_post("The bridge is…", "The bridge is open. Trucks have to wait.").head == 0


def test_nothing_is_left_of_links_and_faces() -> None:
    assert normal("https://example.org/x 🔥🔥").core == ""
    assert normal("").core == ""


@given(st.text())
def test_any_text_has_a_normal_form_that_is_its_own_normal_spelling(text: str) -> None:
    found = normal(text)
    assert found.core == " ".join(found.words)
    assert found.head + found.tail <= len(found.words)


@given(st.text(alphabet="#@:[]【】()-|_.…/ ab中1", max_size=400))
def test_punctuation_in_any_order_is_read_in_reasonable_time(text: str) -> None:
    assert len(normal(text * 50).core) <= 2 * len(text) * 50
