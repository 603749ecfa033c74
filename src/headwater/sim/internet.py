"""The simulated internet as a whole: one newsroom, told of by newspapers, communities, boards, sites and accounts.

Everything runs in this process, on loopback, by the clock of the day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from headwater.sim import communities, feeds, forum, forum_world, news, news_world, reddit, x, x_accounts, x_world
from headwater.sim.forum_world import SimForum, SimThread
from headwater.sim.news_world import SimArticle, SimNews
from headwater.sim.newsroom import Place, Rhythm, Telling, history, told_in
from headwater.sim.reddit_world import Clock, Faults, Limits, SimReddit
from headwater.sim.x_world import SimX

PLACES = (
    Place("feed", "The Harbour Post", "en"),
    Place("feed", "Morning Ledger", "en"),
    Place("feed", "望江晨报", "zh"),
    Place("reddit", "varnholm", "en"),
    Place("reddit", "worldtalk", "en"),
    Place("forum", "harbour", "en"),
    Place("forum", "chaguan", "zh"),
    Place("news", "Tidewater", "en"),
    Place("news", "青屿在线", "zh"),
    Place("x", "ingridfalk", "en"),
    Place("x", "guanchao", "zh"),
)
BEFORE = timedelta(minutes=75)  # so much has happened when it starts
LASTS = timedelta(minutes=105)
RHYTHM = Rhythm(spread=timedelta(minutes=15))
_REPLIES = {
    "en": ("Has anybody seen this confirmed elsewhere?", "My cousin lives there, she says it is true."),
    "zh": ("有其他消息来源吗？", "住在附近，确有此事。"),
}


class LiveClock(Clock):
    """The time as it is."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Site(NamedTuple):
    """Something to follow in the simulated internet, as a person would add it."""

    kind: str
    address: str
    settings: Mapping[str, Any] = {}


class Internet(NamedTuple):
    """What there is to follow, and what Headwater has to be told to find it here instead of elsewhere."""

    sites: list[Site]
    settings: dict[str, Any] = {}


@contextmanager
def internet(seed: int = 1) -> Iterator[Internet]:
    """A small internet, until the block ends."""
    clock = LiveClock()
    told = history(PLACES, clock.now() - BEFORE, LASTS, seed, RHYTHM)
    by_place = {place: told_in(place, told) for place in PLACES}
    with ExitStack() as stack:
        parts = [
            stack.enter_context(part(by_place, clock))
            for part in (_newspapers, _communities, _boards, _news_sites, _accounts)
        ]
        yield Internet(
            [site for part in parts for site in part.sites],
            {name: value for part in parts for name, value in part.settings.items()},
        )


Told = Mapping[Place, Sequence[Telling]]


def _of_kind(told: Told, kind: str) -> dict[str, Sequence[Telling]]:
    return {place.name: tellings for place, tellings in told.items() if place.kind == kind}


@contextmanager
def _newspapers(told: Told, clock: Clock) -> Iterator[Internet]:
    papers = _of_kind(told, "feed")
    with feeds.serving(papers, clock.now) as url:
        yield Internet([Site("rss", feeds.feed_address(url, paper)) for paper in papers])


@contextmanager
def _communities(told: Told, clock: Clock) -> Iterator[Internet]:
    posts = {name: [_as_submission(name, one) for one in theirs] for name, theirs in _of_kind(told, "reddit").items()}
    world = SimReddit(posts, clock, Limits(), Faults())
    with reddit.serving(world):
        settings = {
            "reddit_url": world.url,
            "reddit_api_url": world.url,
            "reddit_client_id": world.client[0],
            "reddit_client_secret": world.client[1],
        }
        yield Internet([Site("reddit", f"r/{name}") for name in posts], settings)


@contextmanager
def _boards(told: Told, clock: Clock) -> Iterator[Internet]:
    boards = _of_kind(told, "forum")
    langs = {place.name: place.lang for place in told if place.kind == "forum"}
    threads = {one.id: _as_thread(name, one, langs[name]) for name, theirs in boards.items() for one in theirs}
    habits = {name: forum_world.Habits(lang=langs[name]) for name in boards}
    with forum.serving(SimForum(habits, threads, clock, Faults())) as world:
        # The same boards stand there as pages and as JSON: one of each.
        yield Internet(
            [
                Site("forum", f"{world.url}/talk/c/{name}/{number}", {"profile": "discourse"})
                if place
                else Site("forum", f"{world.url}/bbs/forum-{number}-1.html")
                for place, (number, name) in enumerate(world.boards.items())
            ]
        )


@contextmanager
def _news_sites(told: Told, clock: Clock) -> Iterator[Internet]:
    with ExitStack() as stack:
        sites = []
        for place, theirs in told.items():
            if place.kind == "news":
                older = news_world.simulated(
                    before=12, after=0, begins=clock.now() - BEFORE, language=place.lang
                ).articles
                world = SimNews(place.name, [*older, *map(_as_article, theirs)], clock, place.lang)
                sites.append(Site("news", f"{stack.enter_context(news.serving(world)).url}/news"))
        yield Internet(sites)


@contextmanager
def _accounts(told: Told, clock: Clock) -> Iterator[Internet]:
    places = {place.name: place for place in told if place.kind == "x"}
    accounts = x_accounts.accounts_of({name: x_accounts.Habits(lang=place.lang) for name, place in places.items()})
    posts = {name: [_as_post(one) for one in told[place]] for name, place in places.items()}
    world = SimX(accounts, posts, clock, x_world.Limits(), Faults())
    with x.serving(world):
        yield Internet(
            [Site("x", f"@{name}") for name in places], {"x_api_url": world.url, "x_bearer_token": world.token}
        )


def _as_submission(community: str, one: Telling) -> communities.SimPost:
    said = [communities.Version(one.at, one.title, one.text)]
    if one.edited:
        said.append(communities.Version(one.edited[0], one.title, one.edited[1]))
    id = f"t3_{one.id:06x}"
    return communities.SimPost(id, community, one.author, one.at, one.at, tuple(said), liked=one.id * 37 % 900)


def _as_thread(board: str, one: Telling, lang: str) -> SimThread:
    said = [forum_world.Version(one.at, one.text)]
    if one.edited:
        said.append(forum_world.Version(*one.edited))
    first = forum_world.SimPost(one.id * 10, one.author, one.at, tuple(said), picture=one.id if one.story else None)
    replies = [
        forum_world.SimPost(one.id * 10 + place, f"guest{place}", at, (forum_world.Version(at, words),))
        for place, words in enumerate(_REPLIES[lang], 1)
        for at in [one.at + timedelta(minutes=4 * place)]
    ]
    return SimThread(one.id, board, one.title, (first, *replies))


def _as_article(one: Telling) -> SimArticle:
    rest = [news_world.filler(one.place.lang, one.id), news_world.filler(one.place.lang, -one.id)]
    said = [news_world.Version(one.at, one.title, (one.text, *rest))]
    if one.edited:
        said.append(news_world.Version(one.edited[0], one.title, (one.edited[1], *rest)))
    return SimArticle(
        news_world.FIRST_ID * 2 + one.id, one.at, one.author, f"/pictures/{one.id}.png", one.place.lang, tuple(said)
    )


def _as_post(one: Telling) -> x_accounts.SimPost:
    id = x_accounts.number_at(one.at, one.id)
    words = f"{one.title}\n\n{one.text}"
    return x_accounts.SimPost(
        one.place.name, (x_accounts.Version(id, one.at, words),), one.at, one.place.lang, liked=40
    )
