"""The whole simulated internet: newspapers, communities, boards, news sites and accounts that report the same
stories, and a market.

Everything runs in this process, on loopback, by the real clock. Newspapers are served here: each has a front page that
names its feed, and a feed of its latest articles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from headwater.sim import forum, forum_world, market, news, news_world, reddit, reddit_world, x, x_world
from headwater.sim.forum_world import SimForum, SimThread
from headwater.sim.news_world import SimArticle, SimNews
from headwater.sim.newsroom import Place, Rhythm, SimTelling, history, told_in
from headwater.sim.reddit_world import SimReddit
from headwater.sim.serving import Answer, Ask, Clock, conditional, request_handler, served
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
BEFORE = timedelta(minutes=75)  # of history at the start
LASTS = timedelta(minutes=105)
FEED_LENGTH = 30
RHYTHM = Rhythm(spread=timedelta(minutes=15))
_REPLIES = {
    "en": ("Has anybody seen this confirmed elsewhere?", "My cousin lives there, she says it is true."),
    "zh": ("有其他消息来源吗？", "住在附近，确有此事。"),
}


class LiveClock(Clock):
    """The real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Site(NamedTuple):
    """A source to follow in the simulated internet, as a person would add it."""

    kind: str
    address: str
    settings: Mapping[str, Any] = {}


class Internet(NamedTuple):
    """The sources to follow, and the settings with which Headwater finds them here."""

    sites: list[Site]
    settings: dict[str, Any] = {}


@contextmanager
def internet(seed: int = 1) -> Iterator[Internet]:
    """Serves a small internet until the block ends."""
    clock = LiveClock()
    told = history(PLACES, clock.now() - BEFORE, LASTS, seed, RHYTHM)
    by_place = {place: told_in(place, told) for place in PLACES}
    with ExitStack() as stack:
        parts = [
            stack.enter_context(part(by_place, clock))
            for part in (_newspapers, _communities, _boards, _news_sites, _accounts, _market)
        ]
        yield Internet(
            [site for part in parts for site in part.sites],
            {name: value for part in parts for name, value in part.settings.items()},
        )


Told = Mapping[Place, Sequence[SimTelling]]


def _of_kind(told: Told, kind: str) -> dict[str, Sequence[SimTelling]]:
    return {place.name: tellings for place, tellings in told.items() if place.kind == kind}


@contextmanager
def _newspapers(told: Told, clock: Clock) -> Iterator[Internet]:
    papers = _of_kind(told, "feed")
    with served(request_handler(lambda asked: _newspaper(papers, asked, clock.now()))) as url:
        yield Internet([Site("rss", f"{url}/{quote(paper)}/feed.xml") for paper in papers])


@contextmanager
def _communities(told: Told, clock: Clock) -> Iterator[Internet]:
    posts = {name: [_as_submission(name, one) for one in theirs] for name, theirs in _of_kind(told, "reddit").items()}
    world = SimReddit(posts, clock=clock)
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
    habits = {name: forum_world.ForumHabits(lang=langs[name]) for name in boards}
    with forum.serving(SimForum(habits, threads, clock=clock)) as world:
        # The forum serves every board as pages and as JSON; follow one of each.
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
                world = SimNews(place.name, [*older, *map(_as_article, theirs)], place.lang, clock=clock)
                sites.append(Site("news", f"{stack.enter_context(news.serving(world)).url}/news"))
        yield Internet(sites)


@contextmanager
def _accounts(told: Told, clock: Clock) -> Iterator[Internet]:
    places = {place.name: place for place in told if place.kind == "x"}
    accounts = x_world.accounts_of({name: x_world.AccountHabits(lang=place.lang) for name, place in places.items()})
    posts = {name: [_as_post(one) for one in told[place]] for name, place in places.items()}
    world = SimX(accounts, posts, clock=clock)
    with x.serving(world):
        yield Internet(
            [Site("x", f"@{name}") for name in places], {"x_api_url": world.url, "x_bearer_token": world.token}
        )


@contextmanager
def _market(told: Told, clock: Clock) -> Iterator[Internet]:
    with market.serving(clock) as address:
        yield Internet([Site("market", address)])


def _as_submission(community: str, one: SimTelling) -> reddit_world.SimRedditPost:
    said = [reddit_world.RedditVersion(one.at, one.title, one.text)]
    if one.edited:
        said.append(reddit_world.RedditVersion(one.edited[0], one.title, one.edited[1]))
    id = f"t3_{one.id:06x}"
    return reddit_world.SimRedditPost(id, community, one.author, one.at, one.at, tuple(said), liked=one.id * 37 % 900)


def _as_thread(board: str, one: SimTelling, lang: str) -> SimThread:
    said = [forum_world.ForumVersion(one.at, one.text)]
    if one.edited:
        said.append(forum_world.ForumVersion(*one.edited))
    first = forum_world.SimForumPost(one.id * 10, one.author, one.at, tuple(said), image=one.id if one.story else None)
    replies = [
        forum_world.SimForumPost(one.id * 10 + place, f"guest{place}", at, (forum_world.ForumVersion(at, words),))
        for place, words in enumerate(_REPLIES[lang], 1)
        for at in [one.at + timedelta(minutes=4 * place)]
    ]
    return SimThread(one.id, board, one.title, (first, *replies))


def _as_article(one: SimTelling) -> SimArticle:
    rest = [news_world.filler(one.place.lang, one.id), news_world.filler(one.place.lang, -one.id)]
    said = [news_world.ArticleVersion(one.at, one.title, (one.text, *rest))]
    if one.edited:
        said.append(news_world.ArticleVersion(one.edited[0], one.title, (one.edited[1], *rest)))
    return SimArticle(
        news_world.FIRST_ID * 2 + one.id, one.at, one.author, f"/pictures/{one.id}.png", one.place.lang, tuple(said)
    )


def _as_post(one: SimTelling) -> x_world.SimTweet:
    id = x_world.number_at(one.at, one.id)
    words = f"{one.title}\n\n{one.text}"
    return x_world.SimTweet(
        one.place.name, (x_world.TweetVersion(id, one.at, words),), one.at, one.place.lang, liked=40
    )


def _newspaper(papers: Mapping[str, Sequence[SimTelling]], asked: Ask, now: datetime) -> Answer:
    found = page_at(papers, unquote(asked.path), f"http://{asked.host}", now)
    if found is None:
        return Answer(404, b"There is no such page.", {"Content-Type": "text/plain"})
    body, media_type = found
    return conditional(Answer(200, body, {"Content-Type": f"{media_type}; charset=utf-8"}), asked)


def page_at(
    papers: Mapping[str, Sequence[SimTelling]], path: str, site: str, now: datetime
) -> tuple[bytes, str] | None:
    """Returns the page at this path now and its media type."""
    _, paper, page = [*path.split("/", 2), "", ""][:3]
    if paper not in papers:
        return None
    told = [telling for telling in papers[paper] if telling.at <= now][-FEED_LENGTH:]
    home = f"{site}/{quote(paper)}"
    if page == "feed.xml":
        return _feed(paper, home, told, now).encode(), "application/rss+xml"
    if page == "":
        link = f'<link rel="alternate" type="application/rss+xml" href="{home}/feed.xml">'
        return f"<!doctype html><title>{escape(paper)}</title>{link}<h1>{escape(paper)}</h1>".encode(), "text/html"
    story = next((telling for telling in told if page == str(telling.id)), None)
    if story is None:
        return None
    title = escape(story.title)
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{escape(_text(story, now))}".encode(), "text/html"


def _feed(paper: str, home: str, told: Sequence[SimTelling], now: datetime) -> str:
    items = "".join(_item(home, telling, now) for telling in reversed(told))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>{escape(paper)}</title>'
        f"<link>{home}/</link><description>What {escape(paper)} tells.</description>{items}</channel></rss>"
    )


def _item(home: str, telling: SimTelling, now: datetime) -> str:
    return (
        f"<item><title>{escape(telling.title)}</title><link>{home}/{telling.id}</link><guid>{home}/{telling.id}</guid>"
        f"<author>{escape(telling.author)}</author><pubDate>{format_datetime(telling.at)}</pubDate>"
        f"<description>{escape(f'<p>{escape(_text(telling, now))}</p>')}</description></item>"
    )


def _text(telling: SimTelling, now: datetime) -> str:
    return telling.edited[1] if telling.edited and telling.edited[0] <= now else telling.text
