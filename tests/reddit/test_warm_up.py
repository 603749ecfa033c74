"""A warm-up caches what communities show and changes nothing else (A5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update
from structlog.testing import capture_logs
from typer.testing import CliRunner

from api.running import Running, served
from headwater import wire
from headwater.cli.commands import program
from headwater.cli.crawl import visit_now, warm_up
from headwater.crawl import warm_up as warming
from headwater.crawl.warm_up import Warmed, WarmUpPlan
from headwater.follow.pool import Candidate, bring_in
from headwater.sim.reddit_world import CommunityHabits, SimReddit, listed, simulated
from headwater.store.sources import pool
from headwater.store.tables import crawls, event_outbox, hot_posts, posts, sources
from headwater.wire import Parts
from reddit.living import Living
from support.living import rows

HOUR = timedelta(hours=1)
BUSY = CommunityHabits(posts_per_day=400, late=0, deleted=0, removed=0)
QUIET = CommunityHabits(posts_per_day=40, late=0, deleted=0, removed=0)
NAMES = [f"community{number}" for number in range(15)]
PLAN = WarmUpPlan("top", "month", 100, 12, 24 * HOUR)
Serve = Callable[[SimReddit], SimReddit]
OpenParts = Callable[..., Parts]


def with_pool(parts: Parts, names: list[str]) -> None:
    owner = wire.prepare_store(parts)
    wanted = [Candidate(f"https://www.reddit.com/r/{name}", "low", ("test",)) for name in names]
    parts.db.write_now(bring_in, owner, wanted, parts.now())
    visits_wait(parts, False)


def visits_wait(parts: Parts, wait: bool) -> None:
    """Has every source wait for a visit, or none for an hour."""
    at = parts.now() if wait else parts.now() + HOUR
    parts.db.write_now(lambda conn: conn.execute(update(sources).values(next_check_at=at)))


def counts(parts: Parts) -> list[int]:
    tables = (posts, hot_posts, crawls, event_outbox)
    return parts.db.read_now(
        lambda conn: [conn.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]
    )


def day_of_reddit(serve: Serve, names: list[str]) -> SimReddit:
    reddit = serve(simulated(dict.fromkeys(names, BUSY), seed=3))
    reddit.clock.advance(12 * HOUR)
    return reddit


async def test_the_best_of_the_month_is_cached_and_nothing_else_changes(
    serve: Serve, open_parts: OpenParts
) -> None:  # A5
    reddit = day_of_reddit(serve, NAMES)
    parts = open_parts(reddit)
    with_pool(parts, NAMES)
    before, counted = rows(parts, sources), counts(parts)
    told: list[Warmed] = []
    assert await wire.warm_up(parts, on_warmed=told.append) == 15
    assert [asked.path.rpartition("/")[2] for asked in reddit.asked[1:]] == ["top"] * 15
    assert {(one.cached, one.watermark_updated, one.error) for one in told} == {(100, False, None)}
    assert rows(parts, sources) == before
    assert counts(parts) == counted
    listing = parts.db.read_now(pool.listing_of, before[0].id, parts.now())
    assert listing is not None
    scores = [post["score"] for post in listing.posts]
    assert scores == sorted(scores, reverse=True)
    assert parts.db.read_now(warming.warmth, parts.now()) == (15, 15)


async def test_a_warm_up_yields_to_visits_that_wait(serve: Serve, open_parts: OpenParts) -> None:  # A5, A10
    reddit = day_of_reddit(serve, NAMES)
    parts = open_parts(reddit)
    with_pool(parts, NAMES)
    visits_wait(parts, True)
    with capture_logs() as logged:
        assert await wire.warm_up(parts) == 0
    assert reddit.asked == []
    assert [(one["event"], one["visits_waiting"]) for one in logged] == [("warm_up.yields", 15)]
    visits_wait(parts, False)
    assert await wire.warm_up(parts) == 15


async def test_a_cached_listing_is_shown_on_its_sources_page_and_not_in_the_stream(
    serve: Serve, open_parts: OpenParts
) -> None:  # A5
    reddit = day_of_reddit(serve, ["python"])
    now = reddit.clock.now()
    best = listed(reddit.posts["python"], now, "top", "month")[0]
    titled = best._replace(versions=(best.version_at(now)._replace(title="<b>Best</b> of all", since=best.created_at),))
    reddit.posts["python"][reddit.posts["python"].index(best)] = titled
    parts = open_parts(reddit)
    with_pool(parts, ["python"])
    await wire.warm_up(parts)
    [source] = rows(parts, sources)
    with served(parts) as (port, metrics):
        browser = Running(parts, wire.prepare_store(parts), port, metrics).browser()
        page = browser.get(f"/sources/{source.id}").text
        stream = browser.get("/").text
    assert "&lt;b&gt;Best&lt;/b&gt; of all" in page
    assert f"{best.score_at(now):,} points" in page
    assert "Best&lt;/b&gt;" not in stream


async def test_what_is_visited_after_a_warm_up_is_stored_as_if_there_had_been_none(
    serve: Serve, open_parts: OpenParts
) -> None:  # A5
    reddit = serve(simulated({"python": QUIET}, seed=3))
    reddit.clock.advance(12 * HOUR)
    parts = open_parts(reddit)
    with_pool(parts, ["python"])
    await wire.warm_up(parts)
    async with Living(parts, reddit) as living:
        [community] = await living.follow("python", sort="new")
        [saved] = await living.visit(community)
    listed = {post.id for post in reddit.posts["python"] if post.is_listed(reddit.clock.now())}
    assert {one.post.source_post_id for one in saved.posts if one.change == "new"} == listed
    assert saved.watermark_updated


async def test_a_warm_up_takes_only_what_is_left_of_the_budget_and_goes_on_with_the_oldest(
    serve: Serve, open_parts: OpenParts
) -> None:  # A5, A10
    reddit = day_of_reddit(serve, NAMES[:8])
    parts = open_parts(reddit, REDDIT_RATE_LIMIT="6")
    with_pool(parts, NAMES[:8])
    async with Living(parts, reddit) as living:
        way = wire.reddit_access(parts, living.client, living.rest)
        tools = warming.WarmUpTools(parts.db, way, living.parsers, parts.now)
        told: list[Warmed] = []
        assert await warming.warm_up(tools, PLAN, on_warmed=told.append) == 5, "the sixth request was for a token"
        reddit.clock.advance(timedelta(minutes=2))
        assert await warming.warm_up(tools, PLAN, on_warmed=told.append) == 3
        assert sorted({one.source for one in told}) == sorted(row.address for row in rows(parts, sources))
        assert await warming.warm_up(tools, PLAN) == 0, "they are younger than two hours"
        reddit.clock.advance(24 * HOUR)
        assert parts.db.read_now(warming.warmth, parts.now()) == (8, 0)
        assert parts.db.write_now(pool.remove_expired_listings, parts.now()) == 8


async def test_a_community_that_cannot_be_read_is_reported_and_the_others_are_cached(
    serve: Serve, open_parts: OpenParts
) -> None:
    reddit = day_of_reddit(serve, ["python"])
    parts = open_parts(reddit)
    with_pool(parts, ["gone", "python"])
    told: list[Warmed] = []
    assert await wire.warm_up(parts, on_warmed=told.append) == 1
    gone, python = sorted(told, key=lambda one: one.source)
    assert (gone.cached, python.cached, python.error) == (0, 100, None)
    assert gone.error is not None
    assert rows(parts, sources)[0].failure_hit == 0


def test_the_command_warms_up_what_is_named(
    serve: Serve, open_parts: OpenParts, monkeypatch: pytest.MonkeyPatch
) -> None:  # A5, A13
    reddit = day_of_reddit(serve, NAMES[:2])
    parts = open_parts(reddit)
    with_pool(parts, NAMES[:2])
    values: dict[str, Any] = {
        "DATABASE_URL": parts.settings.store_url(),
        "REDDIT_URL": reddit.url,
        "REDDIT_API_URL": reddit.url,
        "REDDIT_CLIENT_ID": reddit.client[0],
        "REDDIT_CLIENT_SECRET": reddit.client[1],
        "ALLOW_PRIVATE_NETWORKS": "true",
        "PARSER_PROCESSES": "1",
        "CRAWLER_POST_LIMIT": "7",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"HEADWATER_{name}", value)
    told: list[Warmed] = []
    assert warm_up([f"r/{NAMES[1]}"], told.append) == 1
    assert [(one.source, one.cached) for one in told] == [(f"https://www.reddit.com/r/{NAMES[1]}", 7)]


async def test_a_forced_warm_up_caches_the_whole_pool_again_though_visits_wait(
    serve: Serve, open_parts: OpenParts
) -> None:  # A15
    reddit = day_of_reddit(serve, NAMES[:3])
    parts = open_parts(reddit)
    with_pool(parts, NAMES[:3])
    assert await wire.warm_up(parts) == 3
    reddit.clock.advance(HOUR)
    visits_wait(parts, True)
    for job in ("warm-up", "crawl-seed-communities"):
        assert await done_by(job, parts) == 0, "an hour old is young, and visits go first"
    assert await done_by("tasks.crawler.crawl_seed_communities", parts, force_refresh=True) == 3
    [listing] = {parts.db.read_now(pool.listing_of, row.id, parts.now()).fetched_at for row in rows(parts, sources)}
    assert listing == parts.now()


async def done_by(name: str, parts: Parts, *, force_refresh: bool = False) -> object:
    job = wire.job_named(name)
    assert job is not None
    return await job.work(wire.periodic_tools(parts, force_refresh=force_refresh))


def test_force_refresh_is_refused_where_it_means_nothing(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # A15
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    ran = CliRunner().invoke(program(), ["run", "clean-hot", "--force-refresh"])
    assert (ran.exit_code, str(ran.exception)[:48]) == (1, "--force-refresh is for `headwater run warm-up`: ")
    assert CliRunner().invoke(program(), ["run", "warm-up", "--force-refresh"]).output == "warm-up: 0\n"


async def test_the_variables_of_the_crawler_choose_the_listing_that_visits_and_warm_ups_read(
    serve: Serve, open_parts: OpenParts
) -> None:  # A12
    reddit = day_of_reddit(serve, NAMES[:2])
    parts = open_parts(reddit, CRAWLER_SORT="top", CRAWLER_TIME_FILTER="year", CRAWLER_POST_LIMIT="7")
    with_pool(parts, NAMES[:1])
    owner = wire.prepare_store(parts)
    parts.db.write_now(bring_in, owner, [Candidate(f"https://www.reddit.com/r/{NAMES[1]}", "high", ())], parts.now())
    ids = [row.id for row in rows(parts, sources)]
    assert await visit_now(parts, ids) == 0
    visits_wait(parts, False)
    assert await wire.warm_up(parts) == 2
    wanted = [f"/r/{name}/top?limit=7&raw_json=1&t=year" for name in NAMES[:2]]
    assert sorted(one.address for one in reddit.asked if one.path.startswith("/r/")) == sorted(wanted * 2)


async def test_without_them_each_tier_chooses_its_listing(serve: Serve, open_parts: OpenParts) -> None:  # A7, A12
    reddit = day_of_reddit(serve, NAMES[:1])
    parts = open_parts(reddit)
    with_pool(parts, NAMES[:1])
    assert await visit_now(parts, [row.id for row in rows(parts, sources)]) == 0
    assert reddit.asked[-1].address == f"/r/{NAMES[0]}/top?limit=100&raw_json=1&t=month"


async def test_as_many_communities_are_crawled_at_once_as_the_variable_says(
    serve: Serve, open_parts: OpenParts, monkeypatch: pytest.MonkeyPatch
) -> None:  # A12
    reddit = day_of_reddit(serve, NAMES)
    at_once = Counted()
    monkeypatch.setattr(reddit, "fault", at_once.fault)
    parts = open_parts(reddit, CRAWLER_MAX_CONCURRENCY="2")
    with_pool(parts, NAMES)
    assert await wire.warm_up(parts) == 15
    assert at_once.most == 2
    at_once.most = 0
    assert await visit_now(parts, [row.id for row in rows(parts, sources)]) == 0
    assert at_once.most == 2


class Counted:
    """Counts how many requests are answered at once. Every answer takes a moment."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def fault(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        with self.lock:
            self.now -= 1
