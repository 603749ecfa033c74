"""News sites through the whole path: a simulated site, reading processes, a real store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from shutil import which
from typing import Any

import pytest
from sqlalchemy import select

from headwater.sim.news_world import SimNews, simulated
from headwater.store.tables import posts
from headwater.wire import Parts

Serve = Callable[[SimNews], SimNews]
Visit = Callable[[int], Awaitable[dict[str, Any]]]
Follow = Callable[..., int]
AS_JSON = {
    "form": "json",
    "items": "data.items[*]",
    "next": "data.next",
    "date": "published",
    "mark": "updated",
}


def stored(parts: Parts) -> dict[str, str]:
    """Titles and texts by the address of the article."""
    rows = parts.db.read_now(lambda conn: conn.execute(select(posts.c.url, posts.c.title, posts.c.content)).all())
    return {row.url: f"{row.title}\n{row.content}" for row in rows}


def published(site: SimNews) -> set[str]:
    return {f"{article.published_at:/%Y/%m/%d}/{article.id}-{article.slug}" for article in site.shown()}


def paths(parts: Parts, site: SimNews) -> set[str]:
    return {url.removeprefix(site.url) for url in stored(parts)}


def assert_texts_are_whole(parts: Parts, site: SimNews) -> None:
    texts = stored(parts)
    for article in site.shown():
        version = article.version_at(site.clock.now())
        text = texts[f"{site.url}{article.published_at:/%Y/%m/%d}/{article.id}-{article.slug}"]
        for part in (version.title, *version.paragraphs):
            assert part in text
        assert "All rights reserved" not in text


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_paged_site_is_read_whole_and_then_only_what_is_new(
    parts: Parts, follow: Follow, visit: Visit, serve: Serve, language: str
) -> None:
    # B6
    site = serve(simulated(seed=3, before=23, language=language))
    settings = {"items": ".teaser h2 a"} if language == "zh" else {}
    source = follow(f"{site.url}/news", **settings)
    report = await visit(source)
    assert (report["outcome"], report["new"]) == ("ok", 23)
    assert paths(parts, site) == published(site)
    assert_texts_are_whole(parts, site)
    asked = len(site.asked)
    assert (await visit(source))["new"] == 0
    assert len(site.asked) == asked + 1
    site.clock.advance(timedelta(hours=4))
    assert (await visit(source))["new"] == 4
    assert paths(parts, site) == published(site)


async def test_a_cursor_leads_through_the_endpoint_and_edits_are_seen_by_their_mark(
    parts: Parts, follow: Follow, visit: Visit, serve: Serve
) -> None:
    # B6
    site = serve(simulated(seed=4, before=25, after=0, every=timedelta(minutes=10)))
    source = follow(f"{site.url}/api/articles", list=f"{site.url}/api/articles?cursor={{cursor}}", **AS_JSON)
    assert (await visit(source))["new"] == 25
    site.clock.advance(timedelta(hours=8))
    assert (await visit(source))["updated"] > 0
    recent = site.shown()[:10]
    assert all(article.version_at(site.clock.now()).paragraphs[-1] in str(stored(parts)) for article in recent)


async def test_ascending_ids_go_on_where_the_last_crawl_ended(
    parts: Parts, follow: Follow, visit: Visit, serve: Serve
) -> None:
    # B6
    site = serve(simulated(seed=5, before=14))
    address = f"{site.url}/api/articles?min_id={{min_id}}"
    source = follow(f"{site.url}/api/articles", list=address, order="ascending", **AS_JSON)
    assert (await visit(source))["new"] == 14
    highest = max(article.id for article in site.shown())
    site.clock.advance(timedelta(hours=3))
    before = len(site.asked)
    assert (await visit(source))["new"] == 3
    assert site.asked[before].address == f"/api/articles?min_id={highest}"


@pytest.mark.skipif(which("chromium") is None, reason="no chromium (scripts/services install chromium)")
async def test_a_list_made_by_a_script_is_read_through_the_browser(
    parts: Parts, follow: Follow, visit: Visit, serve: Serve
) -> None:
    # B6
    site = serve(simulated(seed=6, before=4, after=0))
    source = follow(f"{site.url}/live", render=True)
    assert (await visit(source))["new"] == 4
    assert_texts_are_whole(parts, site)


async def test_a_sitemap_index_leads_to_the_articles(parts: Parts, follow: Follow, visit: Visit, serve: Serve) -> None:
    site = serve(simulated(seed=7, before=8, after=0))
    assert (await visit(follow(f"{site.url}/sitemap.xml")))["new"] == 8
    assert_texts_are_whole(parts, site)
