"""Visits of communities over real HTTP: keys, limits, pages, gaps, and the public feed (A2, A10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headwater import wire
from headwater.errors import BadSetting
from headwater.settings import load
from headwater.sim.reddit_world import CommunityHabits, RedditLimits, SimReddit, simulated
from headwater.sim.serving import Faults
from headwater.store.sources import limits
from headwater.store.tables import posts, sources
from headwater.wire import Parts, reddit_budget
from reddit.living import Living, last_crawl, stored_ids
from support.living import rows

HOUR = timedelta(hours=1)
QUIET = CommunityHabits(posts_per_day=40, late=0, deleted=0, removed=0)
Serve = Callable[..., SimReddit]
OpenParts = Callable[..., Parts]


def listed_ids(reddit: SimReddit, name: str) -> list[str]:
    return sorted(post.id for post in reddit.posts[name] if post.is_listed(reddit.clock.now()))


async def test_a_community_is_read_by_the_api_with_a_token_that_is_asked_for_once(
    serve: Serve, open_parts: OpenParts
) -> None:  # A2, A10
    reddit = serve(simulated({"python": QUIET, "news": QUIET}, seed=1), 12 * HOUR)
    async with Living(open_parts(reddit), reddit) as living:
        first, second = await living.visit(*await living.follow("Python", "news"))
        assert (first.visit.outcome, second.visit.outcome) == ("ok", "ok")
        assert first.watermark_updated
        assert stored_ids(living.parts) == sorted(listed_ids(reddit, "python") + listed_ids(reddit, "news"))
        paths = [asked.path for asked in reddit.asked]
        assert paths == ["/api/v1/access_token", "/r/python/new", "/r/news/new"]
        python, _ = rows(living.parts, sources)
        assert (python.kind, python.address, python.title) == ("reddit", "https://www.reddit.com/r/python", "r/python")
        newest = max(rows(living.parts, posts), key=lambda row: (row.source_id == python.id, row.created_at))
        assert python.last_seen_created_at == newest.created_at


async def test_a_visit_with_nothing_new_is_one_request_and_writes_no_posts(serve: Serve, open_parts: OpenParts) -> None:
    reddit = serve(simulated({"python": QUIET}, seed=1), 12 * HOUR)
    async with Living(open_parts(reddit), reddit) as living:
        community = await living.visited("python")
        before = len(reddit.asked)
        [again] = await living.visit(community)
        assert len(reddit.asked) == before + 1
        assert (again.visit.outcome, again.posts, again.watermark_updated) == ("unchanged", [], False)


async def test_a_token_that_has_ended_or_is_not_known_any_more_is_renewed(serve: Serve, open_parts: OpenParts) -> None:
    reddit = serve(simulated({"python": QUIET}, seed=2))
    async with Living(open_parts(reddit), reddit) as living:
        community = await living.visited("python")
        reddit.clock.advance(2 * HOUR)
        await living.visit(community)
        assert len(reddit.tokens) == 2
        reddit.tokens.clear()
        reddit.clock.advance(timedelta(minutes=10))
        [visit] = await living.visit(community)
        assert visit.visit.outcome in ("ok", "unchanged")
        assert [asked.status for asked in reddit.asked[-3:]] == [401, 200, 200]


async def test_wrong_credentials_are_a_failure_that_names_the_settings(serve: Serve, open_parts: OpenParts) -> None:
    reddit = serve(simulated({"python": QUIET}))
    parts = open_parts(reddit, REDDIT_CLIENT_SECRET="another")
    async with Living(parts, reddit) as living:
        [visit] = await living.visit(*await living.follow("python"))
        assert visit.visit.outcome == "failed"
        assert "HEADWATER_REDDIT_CLIENT_SECRET" in (visit.visit.error or "")


def test_an_id_without_its_secret_is_refused() -> None:
    with pytest.raises(BadSetting, match="go together"):
        wire.open_parts(load({"REDDIT_CLIENT_ID": "x"}))


async def test_a_community_that_is_not_there_is_said_to_be_missing(serve: Serve, open_parts: OpenParts) -> None:
    reddit = serve(simulated({"python": QUIET}))
    async with Living(open_parts(reddit), reddit) as living:
        [visit] = await living.visit(*await living.follow("nosuchthing"))
        assert visit.visit.outcome == "failed"
        assert "no community" in (visit.visit.error or "")
        [source] = rows(living.parts, sources)
        assert source.address == "https://www.reddit.com/r/nosuchthing"


async def test_more_new_posts_than_a_page_shows_are_followed_to_the_watermark(
    serve: Serve, open_parts: OpenParts
) -> None:  # A2
    reddit = serve(simulated({"busy": QUIET._replace(posts_per_day=600)}, seed=3), HOUR)
    async with Living(open_parts(reddit), reddit) as living:
        community = await living.visited("busy", limit=20)
        reddit.clock.advance(20 * HOUR)
        [visit] = await living.visit(community)
        assert visit.watermark_updated
        assert not last_crawl(living.parts).gap
        first = min(row.created_at for row in rows(living.parts, posts))
        due = [post.id for post in reddit.posts["busy"] if first < post.created_at <= reddit.clock.now()]
        assert set(due) <= set(stored_ids(living.parts))


async def test_a_listing_that_ends_before_the_watermark_is_a_gap_that_is_on_record(
    serve: Serve, open_parts: OpenParts
) -> None:
    reddit = serve(
        simulated({"busy": QUIET._replace(posts_per_day=600)}, seed=3, limits=RedditLimits(listing=150)), HOUR
    )
    async with Living(open_parts(reddit), reddit) as living:
        community = await living.visited("busy")
        reddit.clock.advance(20 * HOUR)
        await living.visit(community)
        assert last_crawl(living.parts).gap
        [source] = rows(living.parts, sources)
        assert source.gap_at == reddit.clock.now()
        reddit.clock.advance(HOUR)
        await living.visit(community)
        assert not last_crawl(living.parts).gap


async def test_where_a_further_page_fails_the_posts_are_kept_and_the_watermark_stays(
    serve: Serve, open_parts: OpenParts
) -> None:  # A2
    reddit = serve(simulated({"busy": QUIET._replace(posts_per_day=600)}, seed=3), HOUR)
    async with Living(open_parts(reddit), reddit) as living:
        community = await living.visited("busy")
        [before] = rows(living.parts, sources)
        reddit.clock.advance(20 * HOUR)
        real = type(reddit).fault
        seen = iter([None, None, "broken"])  # a token, a page, and then
        reddit.fault = lambda: next(seen, None)  # type: ignore[method-assign]
        [cut] = await living.visit(community)
        [after] = rows(living.parts, sources)
        assert (cut.visit.outcome, cut.count("new"), cut.watermark_updated) == ("failed", 100, False)
        assert after.last_seen_created_at == before.last_seen_created_at
        reddit.fault = lambda: real(reddit)  # type: ignore[method-assign]
        [whole] = await living.visit(community)
        assert whole.watermark_updated
        assert set(listed_ids(reddit, "busy")) <= set(stored_ids(living.parts))


async def test_a_spent_budget_puts_a_visit_off_and_never_fails_it(serve: Serve, open_parts: OpenParts) -> None:  # A10
    names = [f"c{number}" for number in range(6)]
    reddit = serve(simulated(dict.fromkeys(names, QUIET), seed=4))
    reddit.clock.advance(6 * HOUR)
    parts = open_parts(reddit, REDDIT_RATE_LIMIT="4")
    async with Living(parts, reddit) as living:
        await living.follow(*names)
        first = await living.visit_due()
        assert [one.visit.outcome for one in first] == ["ok"] * 3 + ["deferred"] * 3
        assert budgets_used(parts) == 4
        reddit.clock.advance(timedelta(seconds=59))
        assert await living.visit_due() == []
        reddit.clock.advance(timedelta(seconds=1))
        second = await living.visit_due()
        assert [one.visit.outcome for one in second] == ["ok"] * 3
        assert all(row.failure_hit == 0 for row in rows(parts, sources))


async def test_a_place_in_the_budget_is_used_when_it_is_taken_however_slow_the_answers_are(
    serve: Serve, open_parts: OpenParts
) -> None:  # A10
    names = [f"c{number}" for number in range(8)]
    reddit = serve(simulated(dict.fromkeys(names, QUIET), seed=4))
    reddit.clock.advance(6 * HOUR)
    reddit.fault = lambda: slowness(reddit)  # type: ignore[method-assign]
    parts = open_parts(reddit, REDDIT_RATE_LIMIT="4", REDDIT_MAX_CONCURRENCY="1")
    async with Living(parts, reddit) as living:
        await living.follow(*names)
        while len(reddit.asked) < len(names) + 1:
            await living.visit_due_at_once()
            reddit.clock.advance(timedelta(seconds=5))
    times = [asked.at for asked in reddit.asked]
    assert all(end - begin >= timedelta(seconds=60) for begin, end in zip(times, times[4:], strict=False))


def slowness(reddit: SimReddit) -> None:
    """The first answers take long and the later ones do not, so that those who queue would come all at once."""
    reddit.clock.advance(timedelta(seconds=40 if len(reddit.asked) < 3 else 0))


def budgets_used(parts: Parts) -> int:
    return parts.db.read_now(limits.used, reddit_budget(parts.settings), parts.now())


async def test_reddits_own_limit_is_heeded_before_it_is_passed(serve: Serve, open_parts: OpenParts) -> None:  # A10
    names = [f"c{number}" for number in range(6)]
    reddit = serve(simulated(dict.fromkeys(names, QUIET), seed=4, limits=RedditLimits(requests=4)), 6 * HOUR)
    async with Living(open_parts(reddit), reddit) as living:
        await living.follow(*names)
        outcomes = [one.visit.outcome for one in await living.visit_due()]
        assert outcomes == ["ok"] * 3 + ["deferred"] * 3
        assert {asked.status for asked in reddit.asked} == {200}
        reddit.clock.advance(timedelta(minutes=10))
        assert [one.visit.outcome for one in await living.visit_due()] == ["ok"] * 3


async def test_a_refusal_with_retry_after_holds_every_community(serve: Serve, open_parts: OpenParts) -> None:  # H31
    reddit = serve(simulated({"a1": QUIET, "a2": QUIET}, seed=5, faults=Faults(busy=1.0)))
    async with Living(open_parts(reddit), reddit) as living:
        await living.follow("a1", "a2")
        first, second = await living.visit_due()
        assert (first.visit.outcome, first.visit.http_status) == ("failed", 429)
        assert second.visit.outcome == "deferred"
        assert len(reddit.asked) == 1
        assert all(row.consecutive_failures == 0 for row in rows(living.parts, sources))


async def test_without_credentials_the_public_feed_is_read_slowly_and_the_source_says_so(
    serve: Serve, open_parts: OpenParts
) -> None:  # A10
    reddit = serve(simulated({"a1": QUIET, "a2": QUIET}, seed=6))
    reddit.clock.advance(12 * HOUR)
    parts = open_parts(reddit, REDDIT_CLIENT_ID="", REDDIT_CLIENT_SECRET="")
    async with Living(parts, reddit) as living:
        await living.follow("a1", "a2")
        outcomes = [one.visit.outcome for one in await living.visit_due()]
        assert outcomes == ["ok", "deferred"]
        reddit.clock.advance(timedelta(seconds=60))
        assert [one.visit.outcome for one in await living.visit_due()] == ["ok"]
        assert [asked.path for asked in reddit.asked] == ["/r/a1/new/.rss", "/r/a2/new/.rss"]
        assert all("HEADWATER_REDDIT_CLIENT_ID" in row.note for row in rows(parts, sources))
        assert stored_ids(parts) == sorted(listed_ids(reddit, "a1") + listed_ids(reddit, "a2"))


async def test_credentials_that_are_set_later_change_no_post_that_was_read_by_the_feed(
    serve: Serve, open_parts: OpenParts
) -> None:
    reddit = serve(simulated({"python": QUIET}, seed=7), 12 * HOUR)
    async with Living(open_parts(reddit, REDDIT_CLIENT_ID="", REDDIT_CLIENT_SECRET=""), reddit) as living:
        community = await living.visited("python")
    parts = open_parts(reddit)
    async with Living(parts, reddit) as living:
        [visit] = await living.visit(community)
        assert {post.change for post in visit.posts} == {"touched"}  # the API knows their scores
        assert rows(parts, sources)[0].note == ""
