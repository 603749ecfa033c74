"""Visits of accounts and searches over real HTTP: look-up, pages, watermark, gaps, limits, the month, trouble."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from headwater.sim.serving import Faults
from headwater.sim.x_world import AccountHabits, SimX, XLimits, simulated
from headwater.store.sources import limits
from headwater.store.tables import crawls, post_versions, posts, sources
from headwater.wire import Parts
from support.living import rows
from x.living_x import Living, listed_ids, stored_ids

HOUR = timedelta(hours=1)
QUIET = AccountHabits(posts_per_day=40, late=0, deleted=0, edited=0)
BUSY = QUIET._replace(posts_per_day=600)
Serve = Callable[..., SimX]
OpenParts = Callable[..., Parts]


async def test_an_account_is_looked_up_once_and_then_asked_for_what_is_new(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"HashRate": QUIET}, seed=1), 12 * HOUR)
    async with Living(open_parts(x), x) as living:
        [account] = await living.follow("@hashrate")
        first = await living.visit(account)
        assert (first.visit.outcome, first.watermark_updated) == ("ok", True)
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")
        [source] = rows(living.parts, sources)
        assert (source.kind, source.title, source.settings) == (
            "x",
            "Hashrate of X (@HashRate)",
            {"user_id": "1000000"},
        )
        x.clock.advance(6 * HOUR)
        await living.visit(account)
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")
        assert living.paths == ["/2/users/by/username/hashrate", *["/2/users/1000000/tweets"] * 2]


async def test_a_visit_with_nothing_new_is_one_request_and_costs_no_posts(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"hashrate": QUIET}, seed=1), 25 * HOUR)
    async with Living(open_parts(x), x) as living:
        account = await living.visited("@hashrate")
        before, read = len(x.asked), x.read
        for _ in range(2):
            x.clock.advance(HOUR)
            again = await living.visit(account)
            assert (again.visit.outcome, again.visit.status, again.posts) == ("unchanged", "ok", [])
        assert (len(x.asked), x.read) == (before + 2, read)


async def test_an_edit_is_a_version_of_the_post_and_deleted_ones_stay(serve: Serve, open_parts: OpenParts) -> None:
    habits = QUIET._replace(edited=0.5, deleted=0.3, reposts=0, quotes=0)
    x = serve(simulated({"hashrate": habits}, seed=4))
    async with Living(open_parts(x), x) as living:
        [account] = await living.follow("@hashrate")
        for _ in range(100):
            x.clock.advance(timedelta(minutes=15))
            await living.visit(account)
    assert stored_ids(living.parts) == sorted(x.shown)
    versions = len(rows(living.parts, posts)) + len(rows(living.parts, post_versions))
    assert versions == sum(len(texts) for texts in x.shown.values()) > len(x.shown)
    assert any(post.deleted_at and post.deleted_at <= x.clock.now() and post.id in x.shown for post in x.by_id.values())


async def test_more_new_posts_than_a_page_shows_are_followed_to_the_watermark(
    serve: Serve, open_parts: OpenParts
) -> None:  # A2
    x = serve(simulated({"hashrate": BUSY}, seed=3), HOUR)
    async with Living(open_parts(x), x) as living:
        account = await living.visited("@hashrate", page_size=50)
        x.clock.advance(15 * HOUR)
        visit = await living.visit(account)
        assert visit.watermark_updated
        assert not rows(living.parts, crawls)[-1].gap
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")


async def test_a_crawl_that_fails_in_the_middle_goes_on_there_and_the_watermark_waits_for_its_end(
    serve: Serve, open_parts: OpenParts
) -> None:  # A2, B10
    x = serve(simulated({"hashrate": BUSY}, seed=3), HOUR)
    async with Living(open_parts(x), x) as living:
        account = await living.visited("@hashrate", page_size=20)
        [before] = rows(living.parts, sources)
        x.clock.advance(10 * HOUR)
        x.faults = Faults(broken=0.5)
        failed = [await living.visit(account) for _ in range(4)]
        assert "failed" in {visit.visit.outcome for visit in failed[:1]}
        x.faults = Faults()
        x.clock.advance(HOUR)
        [source] = rows(living.parts, sources)
        if failed[-1].visit.outcome == "failed":
            assert source.last_seen_post_id == before.last_seen_post_id
        for _ in range(2):
            await living.visit(account)
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")


async def test_a_page_that_x_does_not_find_any_more_is_no_dead_end(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"hashrate": BUSY}, seed=3), HOUR)
    async with Living(open_parts(x), x) as living:
        account = await living.visited("@hashrate", page_size=20)
        x.clock.advance(10 * HOUR)
        real = SimX.fault
        x.fault = lambda: "broken" if len(x.asked) % 5 == 4 else None  # type: ignore[method-assign]
        while (await living.visit(account)).visit.outcome != "failed":
            x.clock.advance(HOUR)
        x.fault = real.__get__(x)  # type: ignore[method-assign]
        x.forget_pages()
        for _ in range(2):
            await living.visit(account)
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")


async def test_a_timeline_that_ends_before_the_watermark_is_a_gap_that_is_on_record(
    serve: Serve, open_parts: OpenParts
) -> None:
    x = serve(simulated({"hashrate": AccountHabits(posts_per_day=5000, late=0, deleted=0)}, seed=3), HOUR)
    async with Living(open_parts(x), x) as living:
        account = await living.visited("@hashrate", max_pages=0)
        x.clock.advance(20 * HOUR)
        while (await living.visit(account)).visit.unfinished:
            pass
        assert rows(living.parts, crawls)[-1].gap
        [source] = rows(living.parts, sources)
        assert source.gap_at == x.clock.now()


async def test_a_search_finds_what_is_new_and_says_what_it_has_forgotten(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(
        simulated({"hashrate": QUIET, "kuangji": QUIET._replace(lang="zh")}, seed=5, lasts=timedelta(days=12)),
        20 * HOUR,
    )
    async with Living(open_parts(x), x) as living:
        [search] = await living.follow("x: lang:zh")
        first = await living.visit(search)
        assert (first.visit.outcome, living.paths) == ("ok", ["/2/tweets/search/recent"])
        assert stored_ids(living.parts) == listed_ids(x, "kuangji")
        x.clock.advance(3 * HOUR)
        await living.visit(search)
        assert stored_ids(living.parts) == listed_ids(x, "kuangji")
        assert not rows(living.parts, crawls)[-1].gap
        x.clock.advance(timedelta(days=9))
        late = await living.visit(search)
        assert (late.visit.outcome, rows(living.parts, crawls)[-1].gap) == ("ok", True)
        assert rows(living.parts, sources)[0].title == "X: lang:zh"


async def test_accounts_that_show_nothing_say_why(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"shy": QUIET._replace(protected=True), "bad": QUIET._replace(suspended=True)}))
    async with Living(open_parts(x), x) as living:
        ids = await living.follow("@shy", "@bad", "@nobody")
        visits = [await living.visit(id) for id in ids]
    assert [visit.visit.status for visit in visits] == ["blocked", "blocked", "failing"]
    assert [(visit.visit.error or "").split(":")[0] for visit in visits] == [
        "The account is protected",
        "X has suspended the account.",
        "X has no account @nobody",
    ]


async def test_a_token_that_x_does_not_know_is_a_failure_that_says_what_to_do(
    serve: Serve, open_parts: OpenParts
) -> None:
    x = serve(simulated({"hashrate": QUIET}))
    async with Living(open_parts(x, X_BEARER_TOKEN="another-one"), x) as living:
        visit = await living.visit(*await living.follow("@hashrate"))
        assert visit.visit.outcome == "failed"
        assert "headwater x token" in (visit.visit.error or "")


async def test_without_a_token_nothing_is_asked_and_the_source_says_what_is_missing(
    serve: Serve, open_parts: OpenParts
) -> None:
    x = serve(simulated({"hashrate": QUIET}))
    async with Living(open_parts(x, X_BEARER_TOKEN=""), x) as living:
        [account] = await living.follow("@hashrate")
        for _ in range(5):
            visit = await living.visit(account)
            assert (visit.visit.status, visit.visit.error_code) == ("blocked", "key_missing")
            x.clock.advance(HOUR)
        [source] = rows(living.parts, sources)
        assert (source.consecutive_failures, x.asked) == (0, [])


async def test_a_spent_window_makes_all_wait_before_x_has_to_refuse(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({f"a{n}": QUIET for n in range(6)}, limits=XLimits(requests=3)), 12 * HOUR)
    async with Living(open_parts(x), x) as living:
        await living.follow(*(f"@a{n}" for n in range(6)))
        there = {id for n in range(6) for id in listed_ids(x, f"a{n}")}
        for _ in range(12):
            await living.visit_due()
            x.clock.advance(timedelta(minutes=5))
        assert 429 not in {asked.status for asked in x.asked}
        assert there <= set(stored_ids(living.parts))


async def test_a_refusal_of_x_holds_every_source_until_its_end(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"a": QUIET, "b": QUIET}), 12 * HOUR)
    async with Living(open_parts(x), x) as living:
        first, _ = await living.follow("@a", "@b")
        x.faults = Faults(busy=1.0)
        refused = await living.visit(first)
        assert (refused.visit.outcome, refused.visit.blames_source) == ("failed", False)
        x.faults = Faults()
        asked = len(x.asked)
        await living.visit_due()
        assert len(x.asked) == asked
        x.clock.advance(timedelta(minutes=16))
        await living.visit_due()
        assert len(x.asked) > asked


async def test_a_spent_month_makes_sources_wait_for_the_next_and_say_so(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"hashrate": QUIET}, lasts=timedelta(days=31)), 12 * HOUR)
    async with Living(open_parts(x, X_MONTHLY_REQUESTS="3"), x) as living:
        account = await living.visited("@hashrate")
        x.clock.advance(HOUR)
        await living.visit(account)
        x.clock.advance(HOUR)
        waits = await living.visit(account)
        assert (waits.visit.outcome, len(x.asked)) == ("deferred", 3)
        [source] = rows(living.parts, sources)
        assert source.next_check_at == limits.month_ends(x.clock.now())
        assert "3 requests" in source.waits_for
        assert source.status == "ok"
        x.clock.advance(source.next_check_at - x.clock.now())
        [again] = await living.visit_due()
        assert again.visit.outcome == "ok"


async def test_a_month_that_is_spent_in_the_middle_of_a_crawl_lets_it_go_on_in_the_next(
    serve: Serve, open_parts: OpenParts
) -> None:
    x = serve(simulated({"hashrate": BUSY}, seed=3), HOUR)
    async with Living(open_parts(x, X_MONTHLY_POSTS="90"), x) as living:
        account = await living.visited("@hashrate", page_size=20)
        x.clock.advance(10 * HOUR)
        half = await living.visit(account)
        assert (half.visit.outcome, half.visit.unfinished) == ("ok", True)
        used = living.parts.db.read_now(limits.used_this_month, "x", x.clock.now())
        assert 90 <= used.posts < 90 + 40 * 2
    async with Living(open_parts(x, X_MONTHLY_POSTS="0"), x) as living:
        assert (await living.visit(account)).visit.outcome == "ok"
        assert stored_ids(living.parts) == listed_ids(x, "hashrate")


async def test_x_saying_that_the_month_is_spent_is_believed_for_a_day(serve: Serve, open_parts: OpenParts) -> None:
    x = serve(simulated({"a": QUIET, "b": QUIET}, limits=XLimits(month=1)), 12 * HOUR)
    async with Living(open_parts(x), x) as living:
        first, second = await living.follow("@a", "@b")
        await living.visit(first)
        waits = await living.visit(second)
        assert (waits.visit.outcome, waits.visit.next_check_at - x.clock.now()) == ("deferred", timedelta(days=1))
        assert "Usage cap exceeded" in (waits.visit.waits_for or "")
