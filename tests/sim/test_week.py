"""Simulated weeks with faults, restarts and two processes on one store: it holds what was true (A2, A3, A10)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.sim.reddit_world import SimReddit, simulated
from headwater.sim.serving import BEGINS
from headwater.sim.week.course import Report, Size, communities, live_through
from headwater.sim.week.truth import compare, looks, over_budget, paired
from headwater.store.posts import Contents, StoredTexts, Visited

SMALL = Size(communities=12, requests=5)


def week(seed: int, url: str, folder: Path) -> Report:
    return asyncio.run(live_through(seed, SMALL, {"HEADWATER_DATABASE_URL": url, "HEADWATER_DATA_DIR": str(folder)}))


def assert_exact(report: Report) -> None:
    counts = report.findings.counts
    assert report.findings.wrong == []
    assert report.over_budget == 0
    assert counts["gaps"] >= 1, "no flood was larger than a listing"
    assert counts["visits failed"] > 10, "the faults did not fall into visits"
    assert counts["versions"] > counts["posts"] > 1000
    assert report.crashes + report.stops >= 2, "no process ended in the middle of its visits"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1, 2])
def test_after_a_week_the_store_is_what_reddit_showed(seed: int, sqlite_url: str, tmp_path: Path) -> None:
    assert_exact(week(seed, sqlite_url, tmp_path))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_after_a_week_postgresql_holds_what_reddit_showed(store_url: str, tmp_path: Path) -> None:
    assert_exact(week(3, store_url, tmp_path))


def test_a_seed_decides_which_communities_there_are() -> None:
    size = Size()
    assert communities(1, size) == communities(1, size) != communities(2, size)
    assert len(communities(1, size)) == 200


def test_requests_are_counted_in_every_window_wherever_it_begins() -> None:
    times = [BEGINS + timedelta(seconds=at) for at in (0, 59, 60, 61, 200)]
    assert over_budget(times, 2, timedelta(seconds=60)) == 1


# What the truth says of a store that is not right: each of these would be a bug of the crawler.


def one_visit() -> tuple[SimReddit, Contents]:
    """A community that was visited twice, and a store that holds exactly that."""
    from headwater.sim.reddit import answer
    from headwater.sim.serving import Ask
    from headwater.sim.week.truth import words

    reddit = simulated(communities(1, Size(communities=1, listing=40)), seed=1, lasts=timedelta(days=2))
    key = f"Bearer {reddit.new_token()}"
    visits = []
    for hours in (12, 2):
        reddit.clock.advance(timedelta(hours=hours))
        reddit.tokens = dict.fromkeys(reddit.tokens, reddit.clock.now() + timedelta(hours=1))
        answer(reddit, Ask("GET", "/r/c000/new", {"limit": "100"}, key))
        visits.append(Visited(reddit.clock.now(), "ok", len(reddit.pages[-1].posts), False, True))
    everything = {post.id: post for post in reddit.posts["c000"]}
    stored = [
        StoredTexts(id, [as_html(*words(everything[id], version)) for version in shown])
        for id, shown in reddit.shown.items()
    ]
    newest = max(post.created_at for post in reddit.pages[-1].posts)
    return reddit, Contents(1, newest, visits, stored)


def as_html(title: str, text: str) -> tuple[str, str]:
    return title, text.replace("&", "&amp;").replace("<", "&lt;")


def test_a_store_that_is_right_is_found_right() -> None:
    reddit, kept = one_visit()
    assert compare(reddit, {"c000": kept}).wrong == []


@pytest.mark.parametrize(
    ("otherwise", "said"),
    [
        (lambda kept: kept._replace(posts=kept.posts[1:]), "not stored"),
        (lambda kept: kept._replace(posts=[*kept.posts, StoredTexts("t3_x", [("a", "b")])]), "never shown"),
        (lambda kept: kept._replace(posts=[*kept.posts, kept.posts[0]]), "twice"),
        (lambda kept: kept._replace(posts=[one._replace(texts=one.texts * 2) for one in kept.posts]), "other versions"),
        (lambda kept: kept._replace(watermark=BEGINS), "the watermark is"),
        (lambda kept: kept._replace(visits=[one._replace(gap=True) for one in kept.visits]), "told of a gap"),
        (lambda kept: kept._replace(visits=[one._replace(watermark_updated=False) for one in kept.visits]), "the rule"),
        (lambda kept: kept._replace(visits=kept.visits[:1]), "never shown"),
    ],
)
def test_a_store_that_is_wrong_is_found_wrong(otherwise: object, said: str) -> None:
    reddit, kept = one_visit()
    assert callable(otherwise)
    assert any(said in wrong for wrong in compare(reddit, {"c000": otherwise(kept)}).wrong)


def test_posts_that_no_page_showed_and_no_gap_covers_are_found() -> None:
    reddit, kept = one_visit()
    last = reddit.pages[-1]
    unseen = next(post for post in last.posts if post.created_at > kept.visits[0].started_at)
    reddit.pages[-1] = last._replace(posts=tuple(post for post in last.posts if post is not unseen))
    left = kept._replace(posts=[post for post in kept.posts if post.source_post_id != unseen.id])
    assert any("overlooked 1 posts" in wrong for wrong in compare(reddit, {"c000": left}).wrong)


def test_pages_of_a_visit_that_is_not_on_record_belong_to_nobody() -> None:
    reddit, kept = one_visit()
    counts: Counter[str] = Counter()
    [(_, look)] = paired(kept.visits[1:], looks(reddit.pages), counts)
    assert look == [reddit.pages[1]]
    assert counts["visits broken off"] == 1
