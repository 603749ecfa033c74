"""Words that many unrelated posts share tell no story: phrases, small words, a day's topic, a name, boilerplate."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from headwater.dedup.engine import Engine, Found
from headwater.model import PostText

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
SYLLABLES = ["".join(parts) for parts in product(("bra", "kel", "mor", "tis", "vun", "zad"), repeat=6)]


def told(*titles: str, text: str = "") -> list[PostText]:
    """Posts of a source of their own, a minute after each other."""
    return [
        PostText(number, 1000 + number, title, text, None, NOON + timedelta(minutes=number), None)
        for number, title in enumerate(titles, 1)
    ]


def joined(posts: list[PostText]) -> set[tuple[int, int]]:
    """Which posts are in one story with which, by the numbers of both."""
    found: list[Found | None] = Engine(window_seconds=72 * 3600).decide(posts)
    return {(one.with_id, one.post_id) for one in found if one}


EVERYDAY = {
    "always a pleasure": (
        "Always a pleasure to welcome the rowing club of Tarn to our office",
        "Always a pleasure to welcome beekeepers from Osterby to our office",
        "It is always a pleasure to meet the apprentices of the Virrat shipyard",
        "Always a pleasure visiting the school kitchen at Kolstad",
        "Always a pleasure to meet veterans, this time those of Sundvik",
        "What a pleasure to meet the nurses who run the night shift at Lindal",
        "Always a pleasure to meet the firefighters of Mirador",
        "Such a pleasure to welcome the chess team of Brekke to the hall",
    ),
    "speedy recovery": (
        "Wishing goalkeeper Anna Holt a full and speedy recovery",
        "We wish the mayor of Tarn a full and speedy recovery",
        "A full and speedy recovery to our colleague Ines Marek",
        "Wishing the injured pilot of Kolstad a speedy recovery",
        "Thoughts and a speedy recovery to those hurt at Virrat",
        "Wishing conductor Pavel Drozd a full and speedy recovery",
        "We hope for the speedy recovery of the crew at Sundvik",
        "A speedy recovery to Councillor Brandt after surgery",
    ),
    "my full statement": (
        "My full statement on the harbour bill",
        "Read my full statement on the pension reform",
        "My full statement on the resignation of Minister Drozd",
        "My full statement on the grain tariffs",
        "Here is my full statement on the tunnel vote",
        "My full statement on the floods at Lindal",
    ),
    "greetings on a holiday": (
        "Merry Christmas from my family to yours! Wishing you a day of joy",
        "From our family to yours: a merry Christmas and much happiness",
        "Merry Christmas to all who celebrate, and a joyful day with loved ones",
        "Wishing everyone a blessed and merry Christmas",
    ),
    "a day of remembrance": (
        "On #HarbourMinersDay we remember those who lost their lives and honor their legacy",
        "Today is #HarbourMinersDay. Grateful for the sacrifice of the fallen, and for their families",
        "This #HarbourMinersDay, let us reflect on the legacy and the sacrifice of those who served",
    ),
}


# C2: everyday phrases
@pytest.mark.parametrize("titles", EVERYDAY.values(), ids=EVERYDAY)
def test_an_everyday_phrase_is_no_event(titles: tuple[str, ...]) -> None:
    assert joined(told(*titles)) == set()


# C2: a feed's own boilerplate, in several feeds of one kind
def test_what_a_forum_adds_to_each_entry_is_no_event() -> None:
    titles = (
        "Which moss grows on slate?",
        "My first sourdough",
        "Rust on a cargo bike",
        "Maps of the old tram lines",
        "Is this amber?",
        "Night trains to the coast",
    )
    posts = [
        post._replace(text=f"submitted by /u/reader{number} to r/topic{number} [link] [comments]")
        for number, post in enumerate(told(*titles))
    ]
    assert joined(posts) == set()


# C2: the same person or place, another event, in a store with nothing else
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna Holt opens a bakery in the old harbour of Brekke", "Anna Holt wins the downhill race by a second"),
        ("Mayor Ines Marek opens new library at Tarn", "Mayor Ines Marek fined for speeding"),
        ("Brekke harbour tunnel opens to trains", "Brekke harbour fish market burns down"),
        ("Chess champion Pavel Drozd marries in secret", "Chess champion Pavel Drozd loses title in Tarn"),
        ("Kolstad shipyard hires 200 welders", "Thieves empty safe at Kolstad shipyard"),
        ("President Brandt to visit Norland in May", "President Brandt vetoes pension bill"),
        ("张伟丽在北京开了一家面包店", "张伟丽在上海谈新书出版"),
        ("布雷克港海底隧道正式通车", "布雷克港鱼市昨夜发生大火"),
    ],
)
def test_another_event_of_the_same_person_or_place_is_another_story(one: str, other: str) -> None:
    assert joined(told(one, other)) == set()
    assert joined(told(other, one)) == set()


GAMES = {
    "swim": ("Holt wins swimming gold for Norland at Games", "Norland's Holt takes swimming gold at the Games"),
    "judo": ("Marek wins judo gold for Sudria at Games", "Sudria judo gold: Marek wins final at Games"),
    "rowing": ("Drozd wins rowing gold for Tarn at Games", "Rowing gold for Tarn as Drozd wins at Games"),
    "archery": ("Ikeda wins archery gold for Virrat at Games", "Archery: Ikeda wins gold for Virrat at Games"),
    "sprint": ("Okoro wins sprint gold for Kolstad at Games", "Okoro of Kolstad wins sprint gold at Games"),
    "fencing": ("Laurent wins fencing gold for Osterby at Games", "Fencing gold: Laurent of Osterby wins at Games"),
    "sailing": ("Petrov wins sailing gold for Mirador at Games", "Mirador's Petrov wins sailing gold at Games"),
    "diving": ("Chen wins diving gold for Lindal at Games", "Diving: Chen wins gold at Games for Lindal"),
}


# C2: a burst of one topic
def test_the_events_of_one_day_of_the_games_stay_apart() -> None:
    titles = [title for turn in range(2) for title in (ways[turn] for ways in GAMES.values())]
    pairs = joined(told(*titles))
    assert pairs <= {(number, number + len(GAMES)) for number in range(1, len(GAMES) + 1)}
    assert len(pairs) >= len(GAMES) - 2  # and each is told once


SMALL_WORDS = {
    "Urdu": (
        "کیا بریکے کا پل دوبارہ کھل گیا ہے",
        "کیا لندال کا اسکول بند ہو گیا ہے",
        "تارن کا میلہ کل شروع ہو گیا ہے",
        "کیا ویرات کا بازار مہنگا ہو گیا ہے",
        "کولستاد کا ہوائی اڈہ بند ہو گیا ہے",
        "کیا سندوک کا دریا خشک ہو گیا ہے",
        "میرادور کا کسان پریشان ہو گیا ہے",
        "کیا اوستربی کا جہاز روانہ ہو گیا ہے",
    ),
    "Polish": (
        "W Brekke nie ma już miejsca dla rowerów, ale jest dla łodzi",
        "Dla szkoły w Tarn nie ma już pieniędzy, ale jest nadzieja",
        "Nie ma już śniegu w Lindal, ale jest błoto",
        "W porcie Virrat nie ma już ryb, ale jest muzeum",
        "Nie ma już kina w Kolstad, ale jest teatr",
        "Dla piekarzy z Osterby nie ma już mąki, ale jest żyto",
        "W Sundvik nie ma już prądu, ale jest woda",
        "Nie ma już lekarza w Mirador, ale jest apteka",
    ),
    # Languages without a list of small words, in a store that holds nothing yet.
    "Welsh": (
        "Mae ysgol newydd wedi cael ei hagor gan y cyngor yn Brekke",
        "Mae pont wedi cael ei chau gan yr heddlu yn Lindal",
        "Mae cwmni pysgota wedi cael ei werthu gan y teulu yn Tarn",
        "Mae amgueddfa fach wedi cael ei llosgi gan fellten yn Virrat",
    ),
    "Basque": (
        "Brekke herriko eskola berria ireki dute gaur eta ez dago lekurik",
        "Lindal inguruko zubia itxi dute gaur eta ez dago biderik",
        "Tarn aldeko arrantza konpainia saldu dute gaur eta ez dago lanik",
    ),
    "Icelandic": (
        "Nýr skóli hefur verið opnaður hjá okkur við höfnina í Brekke",
        "Gömul brú hefur verið lokuð hjá okkur við ána í Lindal",
        "Stór verslun hefur verið seld hjá okkur við torgið í Tarn",
    ),
}


# C2: small words of languages other than English
@pytest.mark.parametrize("titles", SMALL_WORDS.values(), ids=SMALL_WORDS)
def test_small_words_of_other_languages_are_no_event(titles: tuple[str, ...]) -> None:
    assert joined(told(*titles)) == set()


# C2: a stream in which hardly any post has another
def test_where_hardly_any_post_joins_a_story_the_same_likeness_is_less_probable() -> None:
    pair = told(
        "Strike closes Brekke copper smelter as wage talks collapse",
        "Wage talks fail: Brekke copper workers walk out at smelter",
    )
    chance = random.Random(7)
    scores = []
    for tellings in (4, 1):
        events = [chance.sample(SYLLABLES, 9) for _ in range(2000 // tellings)]
        titles = [" ".join((*event[:7], chance.choice(SYLLABLES))) for event in events for _ in range(tellings)]
        engine = Engine(window_seconds=72 * 3600)
        engine.decide([post._replace(id=post.id + 10, source_id=post.source_id + 10) for post in told(*titles)])
        at = NOON + timedelta(minutes=2000)
        found = engine.decide([post._replace(created_at=at) for post in pair])[-1]
        scores.append(found.score if found else 0.0)
    where_most_join, where_hardly_any_does = scores
    assert where_hardly_any_does < where_most_join
