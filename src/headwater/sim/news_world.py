"""A simulated news site: its articles with their times, edits and images, made from a seed, and its state."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.sim.serving import BEGINS, Clock, SimSite, version_at

FIRST_ID = 48_000

_PLACES = ("Harbour", "Valley", "Riverside", "Northgate", "Old Mill", "Station", "Market", "Bridge")
_THINGS = ("council", "school", "power plant", "railway", "hospital", "library", "data centre", "water works")
_DOINGS = (
    "opens after two years",
    "asks for more time",
    "closes one of its halls",
    "signs a new contract",
    "is to be sold",
)
_SENTENCES = (
    "The {thing} in {place} told its neighbours on Monday, and most of them had heard it before.",
    "Work is expected to take {n} weeks, said a person who has seen the plans and was not allowed to speak about them.",
    "About {n} people came to the meeting, more than the room in {place} was made for.",
    "A study from last year put the cost at {n} million, of which the town has paid a third.",
    "Critics say that nobody asked whether the {thing} is needed at all; its friends say that this was asked often.",
    "The next vote is on the {d}th, and both sides expect it to be close.",
    "What happens to the {n} jobs at the {thing} is open, although a first offer is on the table.",
    "For {place} this is the third such plan since the flood, and the first one with money behind it.",
)
_PLACES_ZH = ("临江", "北关", "东湖", "老城", "新港", "西山")
_THINGS_ZH = ("图书馆", "发电厂", "地铁站", "医院", "数据中心", "水厂")
_DOINGS_ZH = ("时隔两年重新开放", "申请延长工期", "签署新的合同", "计划整体出售", "关闭一座大厅")
_SENTENCES_ZH = (
    "{place}{thing}周一向附近居民通报了这一消息,多数人此前已有耳闻。",
    "一位看过方案的人士表示,工程预计需要{n}周时间,目前各方仍在协商细节。",
    "约有{n}人参加了说明会,{place}的会场几乎坐不下。",
    "去年的一份研究报告估算费用为{n}百万元,其中三分之一由市里承担。",
    "批评者认为从来没有人问过是否真的需要这座{thing},支持者则说这个问题已经讨论了多年。",
    "下一次表决定于{d}日举行,双方都预计结果会非常接近。",
)
_NAMES = ("Ada Winter", "Jon Barlow", "Mei Tan", "Ruth Okafor", "Sam Ellery")
_NAMES_ZH = ("王晓明", "李静", "陈思远")


class ArticleVersion(NamedTuple):
    since: datetime
    title: str
    paragraphs: tuple[str, ...]


class SimArticle(NamedTuple):
    """An article. `versions` are its texts in order, each valid from a time on."""

    id: int
    published_at: datetime
    author: str
    image: str
    language: str
    versions: tuple[ArticleVersion, ...]

    def version_at(self, now: datetime) -> ArticleVersion:
        return version_at(self.versions, now)

    @property
    def slug(self) -> str:
        words = self.versions[0].title.lower().replace(",", "").split()
        return "-".join(words) if self.language == "en" else "article"


@dataclass
class SimNews(SimSite):
    """All of a site's state. `articles` are ordered by time; those of the future are not shown yet."""

    title: str
    articles: list[SimArticle]
    language: str = "en"
    page_size: int = 10

    def shown(self) -> list[SimArticle]:
        """Returns what has been published by now, newest first."""
        now = self.clock.now()
        return [article for article in reversed(self.articles) if article.published_at <= now]

    def article(self, id: int) -> SimArticle | None:
        return next((one for one in self.shown() if one.id == id), None)


def simulated(
    *,
    seed: int = 0,
    before: int = 35,
    after: int = 20,
    every: timedelta = timedelta(hours=1),
    begins: datetime = BEGINS,
    language: str = "en",
) -> SimNews:
    """Returns a site with `before` articles when its clock starts and `after` more to come. One in five is edited."""
    chance = random.Random(f"news:{language}:{seed}")
    articles = [
        _article(FIRST_ID + number * 7 + chance.randrange(7), begins + (number - before + 1) * every, language, chance)
        for number in range(before + after)
    ]
    title = "The Simulated Herald" if language == "en" else "模拟日报"
    return SimNews(title, articles, language, clock=Clock(begins))


def filler(language: str, seed: int) -> str:
    """Returns a paragraph that fits any article."""
    chance, english = random.Random(seed), language == "en"
    place, thing = (_PLACES, _THINGS) if english else (_PLACES_ZH, _THINGS_ZH)
    return _paragraph(chance.choice(place), chance.choice(thing), english, chance)


def _article(id: int, at: datetime, language: str, chance: random.Random) -> SimArticle:
    english = language == "en"
    place = chance.choice(_PLACES if english else _PLACES_ZH)
    thing = chance.choice(_THINGS if english else _THINGS_ZH)
    doing = chance.choice(_DOINGS if english else _DOINGS_ZH)
    title = f"{place} {thing} {doing}" if english else f"{place}{thing}{doing}"
    paragraphs = tuple(_paragraph(place, thing, english, chance) for _ in range(chance.randint(4, 7)))
    versions = [ArticleVersion(at, title, paragraphs)]
    if chance.random() < 0.2:
        added = _paragraph(place, thing, english, chance)
        versions.append(ArticleVersion(at + timedelta(hours=chance.randint(1, 6)), title, (*paragraphs, added)))
    author = chance.choice(_NAMES if english else _NAMES_ZH)
    return SimArticle(id, at, author, f"/pictures/{id}.png", language, tuple(versions))


def _paragraph(place: str, thing: str, english: bool, chance: random.Random) -> str:
    sentences = chance.sample(_SENTENCES if english else _SENTENCES_ZH, 3)
    said = [
        text.format(place=place, thing=thing, n=chance.randint(3, 400), d=chance.randint(4, 28)) for text in sentences
    ]
    return (" " if english else "").join(said)
