"""One queue of crawl work: claimed sources, as many as fit; nothing else hands any out (B8)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import headwater
from headwater import wire
from headwater.follow.add import follow
from headwater.model import Reader, SavedVisit
from headwater.wire import Parts
from headwater.work import crawl_loop
from headwater.work.crawl_loop import CrawlPace
from support.web import Answer, Asked, Web, rss

MOST = 4
SOURCES = 20


async def test_no_more_visits_are_in_hand_than_there_is_room_for(parts: Parts, owner: Reader, world: Web) -> None:
    # B8
    most_at_once = 0

    def feed(asked: Asked) -> Answer:
        nonlocal most_at_once
        with world.lock:
            most_at_once = max(most_at_once, sum(world.under_way.values()))
        return Answer(rss(asked.path), delay=0.02)

    world.fallback = feed
    for number in range(SOURCES):
        parts.db.write_now(follow, owner, world.url(f"/{number}"), parts.now())
    stop, saved = asyncio.Event(), []

    def on_saved(one: SavedVisit) -> None:
        saved.append(one)
        if len(saved) == SOURCES:
            stop.set()

    async with wire.crawling(parts, on_saved) as crawler:
        pace = CrawlPace(MOST, timedelta(minutes=3), timedelta(0))
        await crawl_loop.run(parts.db, crawler, pace, parts.now, parts.woken, stop)
    assert 0 < most_at_once <= MOST
    assert len({one.visit.source_id for one in saved}) == len(saved) == SOURCES


def test_only_the_loops_and_the_crawl_command_claim_sources_and_only_the_crawler_visits() -> None:  # B8
    package = Path(headwater.__file__).parent
    texts = {
        str(path.relative_to(package)): path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
        if "sim" not in path.parts
    }

    def users(*words: str) -> set[str]:
        found = {name for name, text in texts.items() if any(word in text for word in words)}
        return {name for name in found if not name.startswith("sim/")}  # simulations step the crawler by hand

    hands_out = {"work/crawl_loop.py", "work/cluster.py", "app/refresh.py"}  # in one process, on workers, by hand
    assert users("leases.claim_") == hands_out
    assert users("crawler.start(") == hands_out
    assert users("listing.visit(", "document.visit(") == {"crawl/crawler.py"}
