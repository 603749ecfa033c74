"""What must never be folded into one story, class by class, with posts that we made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headwater.dedup.engine import Engine, Found
from headwater.model import PostText, Reference

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def post(number: int, title: str, text: str = "", *, source: int | None = None, reply: str = "") -> PostText:
    """A post of a source of its own, unless one is named."""
    reference = Reference("reply", reply) if reply else None
    return PostText(number, source or 1000 + number, title, text, None, NOON + timedelta(minutes=number), reference)


def folded(*posts: PostText) -> list[Found]:
    return [found for found in Engine(window_seconds=72 * 3600).decide(posts) if found]


MINE = (
    "Floods close Halvorsen copper mine after dam gives way",
    "Halvorsen copper mine shut as dam bursts and floods shafts",
    "Copper output at Halvorsen stops: dam failure floods mine",
    "Miners safe after Halvorsen dam bursts, copper mine flooded",
    "Halvorsen copper mine under water after dam bursts",
    "Dam of Halvorsen copper mine bursts, shafts flooded",
)


# C2
def test_one_shared_word_joins_no_story_however_large_it_is() -> None:
    story = [post(number, title) for number, title in enumerate(MINE, 1)]
    assert len(folded(*story)) == len(story) - 1
    joined = folded(*story, post(9, "Prayers for the choir of Halvorsen tonight"), post(10, "Copper"))
    assert {one.post_id for one in joined} <= {one.id for one in story}


@pytest.mark.parametrize(
    "titles",
    [
        ("Quarry editor 4.1 released with faster search", "Quarry editor 4.2 released with faster tabs"),
        ("Episode 112: the tide tables of Brekke", "Episode 113: the tide mills of Brekke"),
        ("Thursday links: maps, moss and bridges", "Thursday links: maps, mills and bridges"),
        ("Two rooms for rent near the old harbour, Brekke", "Three rooms for rent near the old harbour, Brekke"),
        ("Recorded vote ordered on the Brekke harbour bill", "Recorded vote ordered on the Brekke tunnel bill"),
    ],
    ids=["release notes", "episodes", "links of the week", "flats", "votes"],
)
# C2
def test_a_series_of_one_source_is_no_story(titles: tuple[str, str]) -> None:
    assert folded(*(post(number, title, source=7) for number, title in enumerate(titles, 1))) == []


# C2
@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("Quarry editor 1.12.112", "Quarry editor 1.12.6", False),
        ("Quarry editor 1.12.6: tabs repaired", "Quarry editor 1.12.6 repairs tabs", True),
        ("Quarry editor repairs tabs and search", "Quarry editor: tabs, search repaired", True),
        ("Loterie pays 10.000.000 to Osterby baker", "Osterby baker wins Loterie, 12.000.000 paid", True),
    ],
)
def test_another_version_is_another_event(one: str, other: str, is_one: bool) -> None:
    text = "Queued messages, several patches and repairs of the terminal and of the tabs of the Quarry editor."
    assert bool(folded(post(1, one, text), post(2, other, f"{text} Thanks to all.")) or []) == is_one


# C2
def test_a_story_is_told_in_one_language() -> None:
    english = "Momiji Ikeda takes the skateboard gold for Norland at the Osterby games"
    spanish = "Momiji Ikeda gana el oro de skateboard para Norland en los juegos de Osterby"
    again = "Skateboard gold for Norland: Momiji Ikeda is the champion of the Osterby games"
    assert [(one.with_id, one.post_id) for one in folded(post(1, english), post(2, spanish), post(3, again))] == [
        (1, 3)
    ]


def test_a_source_that_says_the_same_again_repeats_itself() -> None:
    title = "Harbour tunnel at Brekke opens to trains on Friday"
    [found] = folded(post(1, title, source=7), post(2, f"UPDATE: {title}", source=7))
    assert found.rule == "exact"


def test_what_a_site_adds_to_all_its_articles_makes_them_no_repeats() -> None:
    filler = " ".join(
        f"The council of ward {number} meets again next week to hear what residents of ward {number} think."
        for number in range(12)
    )
    articles = [
        post(
            1, "Library asks for more time", f"The library at Brekke asks for another year to move. {filler}", source=7
        ),
        post(
            2, "Power station to be sold", f"A buyer for the power station at Tarn was named today. {filler}", source=7
        ),
    ]
    assert folded(*articles) == []


# C2
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Kestrel index opens lower as traders wait for the bank",
            "Kestrel index opens higher as traders wait for the bank",
        ),
        (
            "Brekke harbour authority will close the old ferry dock",
            "Brekke harbour authority will not close the old ferry dock",
        ),
        ("Storm at Brekke leaves 12 houses without a roof", "Storm at Brekke leaves 240 houses without a roof"),
        ("红隼指数周二早盘低开百分之一", "红隼指数周二早盘高开百分之一"),
        ("布雷克港务局将关闭旧渡轮码头", "布雷克港务局将不关闭旧渡轮码头"),
        ("布雷克风暴致12栋房屋屋顶受损", "布雷克风暴致240栋房屋屋顶受损"),
    ],
)
def test_posts_that_differ_in_a_number_a_negation_or_an_opposite_tell_two_stories(one: str, other: str) -> None:
    assert folded(post(1, one), post(2, other)) == []
    assert folded(post(1, other), post(2, one)) == []


# C2
def test_a_reply_belongs_to_its_thread_and_tells_no_story() -> None:
    news = "Halvorsen copper mine shut as dam bursts and floods shafts"
    assert folded(post(1, news), post(2, f"Re: {news}", "Anybody seen pictures of the dam at Halvorsen?")) == []
    assert folded(post(1, news), post(2, "Halvorsen mine shut, dam bursts, shafts flooded: pictures", reply="1")) == []
    assert folded(post(1, f"Re: {news}", "Terrible."), post(2, "Floods close Halvorsen copper mine, dam bursts")) == []
    telling = post(2, "Halvorsen mine shut, dam bursts, shafts flooded")
    assert folded(post(1, news), telling) != []
    for link in ("/t/halvorsen-mine/2144/31", "/t/halvorsen-mine/2144?page=2#post_31"):
        assert folded(post(1, news), telling._replace(url=f"https://forum.example{link}")) == []
    assert folded(post(1, news), telling._replace(url="https://forum.example/t/halvorsen-mine/2144/1")) != []
    assert folded(post(1, f"回复：{news}", "可怕"), post(2, "Floods close Halvorsen copper mine, dam bursts")) == []
