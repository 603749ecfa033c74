"""Stories that we made up, told by several outlets each, with neighbours that share words and are other events."""

from __future__ import annotations

import pytest

from headwater.dedup.evaluate import agreement, grouped
from headwater.dedup.repeats import Posting
from headwater.dedup.stories import StoryIndex

ENGLISH = {
    "mine flood": [
        "Floods close Halvorsen copper mine after dam gives way",
        "Halvorsen copper mine shut as dam bursts and floods shafts",
        "Copper output at Halvorsen stops: dam failure floods mine",
        "Miners safe after Halvorsen dam bursts, copper mine flooded",
    ],
    "mine strike": [
        "Workers at Brenta lithium mine walk out over pay",
        "Pay dispute: strike begins at Brenta lithium mine",
        "Brenta lithium workers strike for higher pay",
    ],
    "chip delay": [
        "Orrin delays launch of K9 mining chip until autumn",
        "K9 mining chip from Orrin slips to autumn",
        "Orrin says K9 chip will not ship before autumn",
    ],
    "chip recall": [
        "Tessel recalls power supplies after two fires",
        "Two fires lead Tessel to recall its power supplies",
        "Power supplies recalled by Tessel over fire risk",
    ],
    "rate cut": [
        "Central bank of Norland cuts rates for first time in six years",
        "Norland's central bank lowers interest rates, first cut in six years",
        "First rate cut in six years from Norland central bank",
    ],
    "rate hold": [
        "Sudria keeps interest rates unchanged and warns of inflation",
        "Interest rates unchanged in Sudria as inflation worries stay",
        "Sudria leaves rates unchanged, inflation a worry",
    ],
    "ferry": [
        "Ferry with 200 aboard runs aground off Quill Island",
        "Quill Island ferry aground: 200 passengers taken off",
        "All 200 rescued from ferry that ran aground near Quill Island",
    ],
    "alone": ["Five easy soups for a cold evening"],
    "alone too": ["What the longest novel of the century taught its translator"],
}
CHINESE = {
    "水灾": ["暴雨冲垮水坝 哈沃铜矿被淹停产", "哈沃铜矿因水坝垮塌被淹 全面停产", "水坝垮塌致哈沃铜矿被淹没停产"],
    "罢工": ["布伦塔锂矿工人罢工要求加薪", "要求加薪 布伦塔锂矿工人开始罢工", "布伦塔锂矿罢工：工人要求加薪"],
    "降息": ["诺兰央行六年来首次降息", "诺兰央行宣布降息 为六年来首次", "六年来首次！诺兰央行降息"],
    "渡轮": ["奎尔岛渡轮搁浅 两百人获救", "渡轮在奎尔岛附近搁浅两百人全部获救", "两百名乘客获救 奎尔岛渡轮搁浅"],
    "无关": ["冬天夜里最适合喝的五种汤"],
}


def postings(stories: dict[str, list[str]]) -> tuple[list[Posting], list[str]]:
    """The outlets take turns: first each story's first headline, then each one's second."""
    told = [(turn, name, title) for name, titles in stories.items() for turn, title in enumerate(titles)]
    told.sort(key=lambda one: one[0])
    posts = [Posting(number, title, created_at=1e9 + 60 * number) for number, (_, _, title) in enumerate(told)]
    return posts, [name for _, name, _ in told]


# C2: English and Chinese
@pytest.mark.parametrize("stories", [ENGLISH, CHINESE, ENGLISH | CHINESE], ids=["english", "chinese", "both"])
def test_headlines_of_one_event_meet_and_those_of_others_do_not(stories: dict[str, list[str]]) -> None:
    posts, names = postings(stories)
    figures = agreement(grouped(posts, StoryIndex()), names)
    assert figures["precision"] == 1
    assert figures["f1"] >= 0.9


def test_title_and_lead_are_compared_together() -> None:
    lead = (
        "The dam above the Halvorsen copper mine gave way on Monday night and water filled the shafts within an hour."
    )
    other = "Engineers had inspected the Halvorsen dam, they said; water still fills the copper mine's shafts."
    index = StoryIndex()
    index.add(Posting(1, "Flood closes mine", lead, 1e9))
    index.add(Posting(2, "Five soups", "Evenings are cold, and soup is what helps. These take an hour at most.", 1e9))
    decision = index.add(Posting(3, "Inspectors had seen no cracks", other, 1e9))
    assert decision is not None
    assert decision.leader == 1


# C4: each membership says why
def test_a_decision_names_the_words_that_were_shared_and_the_score() -> None:
    index = StoryIndex()
    index.add(Posting(1, "Plosser sees high bar for slowing the taper", created_at=1e9))
    decision = index.add(Posting(2, "High bar to change taper, says Plosser", created_at=1e9))
    assert decision is not None
    words, score = decision.why.removeprefix("shares: ").split("; ")
    assert set(words.split(", ")) < {"plosser", "high", "bar", "taper"}
    assert score == f"{decision.score:.2f}"
    assert decision.rule == "similar"


@pytest.mark.parametrize(
    "title",
    [
        "เขื่อนแตกน้ำท่วมเหมืองทองแดงฮาลวอร์เซน",
        "Прорыв плотины затопил медный рудник",
        "انهيار سد يغمر منجم النحاس",
        "구리 광산 댐 붕괴로 침수",
    ],
)
def test_the_same_headline_meets_in_any_script(title: str) -> None:
    index = StoryIndex()
    index.add(Posting(1, title, created_at=1e9))
    decision = index.add(Posting(2, title, created_at=1e9))
    assert decision is not None
    assert decision.score == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("title", ["", "   ", "🙂", "https://example.org/a", "the and of", "Thanks!", "好"])
def test_posts_that_say_next_to_nothing_make_no_story(title: str) -> None:
    index = StoryIndex()
    assert index.add_many([Posting(number, title, created_at=1e9) for number in range(5)]) == [None] * 5


# A name alone is no event.
def test_one_shared_name_does_not_make_a_story() -> None:
    index = StoryIndex()
    index.add(Posting(1, "Halvorsen opens a bakery in the old harbour", created_at=1e9))
    assert index.add(Posting(2, "Halvorsen wins the downhill race", created_at=1e9)) is None
    index.add(Posting(3, "张伟丽卫冕成功", created_at=1e9))
    assert index.add(Posting(4, "张伟丽谈新书出版", created_at=1e9)) is None
