"""Comments of a community are read where its settings ask for them: as replies, within its budget (A10)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater import wire
from headwater.cli.commands import program
from headwater.follow.add import follow
from headwater.model import Response, Source, SourceState
from headwater.sim.reddit_world import CommunityHabits, RedditLimits, SimReddit, simulated
from headwater.sources import reddit as kind
from headwater.store.tables import posts, sources
from headwater.wire import Parts
from reddit.living import Living
from support.living import rows

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
LIVELY = CommunityHabits(posts_per_day=60, late=0, deleted=0, removed=0)
Serve = Callable[[SimReddit], SimReddit]
OpenParts = Callable[..., Parts]


def half_a_day(serve: Serve, **options: Any) -> SimReddit:
    reddit = serve(simulated({"python": LIVELY}, seed=5, **options))
    reddit.clock.advance(12 * HOUR)
    return reddit


async def test_comments_are_stored_as_replies_and_move_no_watermark(serve: Serve, open_parts: OpenParts) -> None:  # A2
    reddit = half_a_day(serve)
    async with Living(open_parts(reddit), reddit) as living:
        [community] = await living.follow("python", comments=True)
        [saved] = await living.visit(community)
        assert [asked.path for asked in reddit.asked[1:]] == ["/r/python/new", "/r/python/comments"]
        stored = rows(living.parts, posts)
        comments = [row for row in stored if row.source_post_id.startswith("t1_")]
        now = reddit.clock.now()
        written = sum(post.comments_at(now) for post in reddit.posts["python"] if post.is_listed(now))
        assert len(comments) == min(100, written) > 50
        assert {row.reference_kind for row in comments} == {"reply"}
        ids = {row.source_post_id for row in stored}
        assert all(row.extra["post"] in ids and row.title.startswith("Re: ") for row in comments)
        newest = max((row for row in stored if row not in comments), key=lambda row: row.created_at)
        [source] = rows(living.parts, sources)
        assert (source.last_seen_post_id, source.last_seen_created_at) == (newest.source_post_id, newest.created_at)
        assert saved.watermark_updated


async def test_comments_come_once_and_the_listing_still_says_its_gap(serve: Serve, open_parts: OpenParts) -> None:
    reddit = half_a_day(serve, limits=RedditLimits(listing=5))
    async with Living(open_parts(reddit), reddit) as living:
        [community] = await living.follow("python", comments=True)
        await living.visit(community)
        reddit.clock.advance(11 * HOUR)
        [saved] = await living.visit(community)
        assert saved.visit.facts is not None
        assert saved.visit.facts.gap
        ids = [row.source_post_id for row in rows(living.parts, posts)]
        assert len(ids) == len(set(ids))


async def test_without_the_setting_no_comments_are_asked_for(serve: Serve, open_parts: OpenParts) -> None:
    reddit = half_a_day(serve)
    async with Living(open_parts(reddit), reddit) as living:
        await living.visit(*await living.follow("python"))
        assert not [asked for asked in reddit.asked if asked.path.endswith("/comments")]


@pytest.mark.parametrize(
    "child",
    [None, 7, {}, {"kind": "t1"}, {"kind": "t1", "data": {"name": "t3_a"}}, {"kind": "t1", "data": {"name": 5}}],
)
def test_what_is_no_comment_is_passed_over(child: Any) -> None:
    good = {"kind": "t1", "data": {"name": "t1_a", "body": "[removed]", "author": "[deleted]", "created_utc": "soon"}}
    body = json.dumps({"kind": "Listing", "data": {"children": [child, good, good]}}).encode()
    url = "https://oauth.reddit.com/r/python/comments?limit=100"
    page = kind.read(
        Source(1, "reddit", "https://www.reddit.com/r/python"), SourceState(), Response(url, 200, {}, body, NOW)
    )
    [comment] = page.comments
    assert page.posts == []
    assert (comment.source_post_id, comment.content, comment.author, comment.created_at) == ("t1_a", "", None, NOW)
    assert comment.extra == {"gone": "removed"}


def test_comments_are_switched_on_and_off_on_the_terminal(
    serve: Serve, open_parts: OpenParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = open_parts(half_a_day(serve))
    owner = wire.prepare_store(parts)
    for address in ("r/python", "https://news.example/feed"):
        parts.db.write_now(follow, owner, address, parts.now())
    monkeypatch.setenv("HEADWATER_DATABASE_URL", parts.settings.store_url())

    def run(*words: str) -> int:
        return CliRunner().invoke(program(), ["comments", *words]).exit_code

    def settings() -> list[Any]:
        return [row.settings for row in sorted(rows(parts, sources), key=lambda row: row.id)]

    assert run("r/Python") == 0
    assert settings() == [{"comments": True}, {}]
    assert run("r/python", "--off", "--json") == 0
    assert settings() == [{"comments": False}, {}]
    assert run("news.example/feed") != 0
