"""kill -9 at random moments of a crawl, for each kind of paged source: at most the page in flight is fetched again.

A kind is killed at least twenty times, in two ways in which its sites can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest

from headwater import urls, wire
from headwater.crawl.visit.listing import PAGES_AT_ONCE
from headwater.model import Reader
from headwater.sim import forum as sim_forum
from headwater.sim import forum_world, news_world, x_world
from headwater.sim import news as sim_news
from headwater.sim import x as sim_x
from headwater.store import sources
from headwater.wire import Parts
from support.fire import Fire, states, stored_ids
from support.gate import Gate

KILLS = 12
DAY = timedelta(days=1)
ARTICLES = 60
CURSOR = {"form": "json", "items": "data.items[*]", "next": "data.next", "date": "published", "mark": "updated"}


class Site(NamedTuple):
    """A simulated site, and what the store has to hold when all of it was read."""

    kind: str
    address: str
    settings: dict[str, Any]
    post_ids: set[str]
    items: int = 0
    environ: dict[str, str] = {}


@contextmanager
def forum(gate: Gate, path: str, profile: str) -> Iterator[Site]:
    habits = forum_world.ForumHabits(threads_per_day=45, long=0.2)
    made = forum_world.simulated({"mining": habits}, seed=7, threads_a_page=8)
    made.clock.advance(DAY)
    by_number = profile == "discourse"
    threads = made.listed("mining", made.clock.now())
    ids = {
        f"{thread.id}/{thread.place_of(post.id) if by_number else post.id}"
        for thread in threads
        for post in thread.posts_at(made.clock.now())
    }
    with gate.before(partial(sim_forum.answer, made)) as made.url:
        yield Site("forum", made.url + path, {"profile": profile}, ids, len(threads))


@contextmanager
def news(gate: Gate, path: str, **settings: str) -> Iterator[Site]:
    made = news_world.simulated(seed=7, before=ARTICLES, after=0)
    with gate.before(partial(sim_news.answer, made)) as made.url:
        listed = {name: value.format(site=made.url, cursor="{cursor}") for name, value in settings.items()}
        host = made.url.removeprefix("http://")
        ids = {
            str(article.id) if settings else host + sim_news.address_of(article)  # a list of JSON names ids of its own
            for article in made.shown()
        }
        yield Site("news", made.url + path, listed, ids, ARTICLES)


@contextmanager
def x(gate: Gate, address: str) -> Iterator[Site]:
    habits = {"hashrate": x_world.AccountHabits(posts_per_day=300)}
    made = x_world.simulated(habits, seed=7, begins=wire.utc_now() - 2 * DAY, lasts=2 * DAY)
    made.clock.advance(2 * DAY - timedelta(minutes=5))
    ids = {str(post.id) for post in made.posts["hashrate"] if post.is_listed(made.clock.now())}
    with gate.before(partial(sim_x.answer, made)) as made.url:
        environ = {"HEADWATER_X_API_URL": made.url, "HEADWATER_X_BEARER_TOKEN": made.token}
        settings = {"page_size": 10, "max_pages": 0, "history": 10_000}
        yield Site("x", address, settings, ids, environ=environ)


SITES: dict[str, Callable[[Gate], Any]] = {
    "forum of pages": lambda gate: forum(gate, "/bbs/forum-1-1.html", "discuz"),
    "forum of JSON": lambda gate: forum(gate, "/talk/c/mining/1", "discourse"),
    "news of pages": lambda gate: news(gate, "/news"),
    "news behind a cursor": lambda gate: news(
        gate, "/api/articles", list="{site}/api/articles?cursor={cursor}", **CURSOR
    ),
    "account of X": lambda gate: x(gate, "https://x.com/hashrate"),
    "search of X": lambda gate: x(gate, "https://x.com/search?q=from%3Ahashrate"),
}


def add(parts: Parts, owner: Reader, site: Site) -> None:
    host = urls.host_of(urls.split(site.address))
    parts.db.write_now(
        lambda conn: sources.add(
            conn,
            owner,
            kind=site.kind,
            address=site.address,
            host=host,
            now=parts.now(),
            settings=site.settings,
        )
    )


def crawled_under_fire(
    parts: Parts, owner: Reader, serve: Callable[[Gate], Any], environ: dict[str, str]
) -> tuple[Site, Fire]:
    """Serves a site and crawls all of it in processes that are killed."""
    gate = Gate()
    with serve(gate) as site:
        add(parts, owner, site)
        fire = Fire(parts, gate, {**environ, **site.environ})
        fire.crawl(KILLS)
    return site, fire


@pytest.mark.parametrize("name", SITES)
def test_a_crawl_killed_at_random_moments_fetches_at_most_the_page_in_flight_again(
    environ: dict[str, str], parts: Parts, owner: Reader, name: str
) -> None:  # B10
    # Without any gap a few pages would be asked for ahead, and all of those would be in flight.
    alone = {"HEADWATER_PARSER_PROCESSES": "1", "HEADWATER_HOST_GAP_SECONDS": "0.001"}
    site, fire = crawled_under_fire(parts, owner, SITES[name], {**environ, **alone})
    assert stored_ids(parts) == site.post_ids  # nothing lost, nothing made up
    assert states(parts) == ({"done": site.items} if site.items else {})
    fire.assert_only_pages_in_flight_were_fetched_again()


@pytest.mark.parametrize("name", ["forum of pages", "news of pages"])
def test_where_no_gap_is_kept_it_fetches_at_most_those_again_that_were_asked_for_ahead(
    environ: dict[str, str], parts: Parts, owner: Reader, name: str
) -> None:  # B10
    site, fire = crawled_under_fire(parts, owner, SITES[name], {**environ, "HEADWATER_HOST_GAP_SECONDS": "0"})
    assert stored_ids(parts) == site.post_ids
    assert states(parts) == {"done": site.items}
    fire.assert_only_pages_in_flight_were_fetched_again(PAGES_AT_ONCE)
