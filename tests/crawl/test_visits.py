"""One visit through the whole path: a real server, real reading processes, a real store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headwater import wire
from headwater.cli.crawl import visit_now
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.settings import load
from headwater.store import sources
from headwater.store.posts import stream
from headwater.wire import Parts
from support.web import Answer, Asked, Web, rss


async def visit(parts: Parts, owner: Reader, *addresses: str) -> list[dict[str, Any]]:
    """Follow these and visit them once; the reports in the order of the addresses."""
    reports: dict[int, dict[str, Any]] = {}
    ids = []
    for address in addresses:
        ids.append((await parts.db.write(follow, owner, address, parts.now())).source_id)
    await visit_now(parts, ids, lambda report: reports.update({report["source_id"]: report}))
    return [reports[id] for id in ids]


async def titles(parts: Parts, owner: Reader) -> list[str]:
    return [story.members[0].title for story in await parts.db.read(stream.page, owner)]


async def test_a_feed_is_read_titled_and_its_posts_are_in_the_stream(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/feed"] = Answer(rss("first", "second"))  # D1
    [report] = await visit(parts, owner, world.url("/feed"))
    assert report["outcome"] == "ok"
    assert (report["new"], report["updated"], report["duplicates"], report["watermark_updated"]) == (2, 0, 0, True)
    names = ("community", "new_posts", "updated_posts", "duration_seconds")  # A14
    assert tuple(report[name] for name in names) == (report["source"], 2, 0, report["seconds"])
    assert await titles(parts, owner) == ["second", "first"]
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert (source.title, source.status, source.site_url) == ("The News", "ok", "https://news.example/")


async def test_a_site_leads_to_its_feed(parts: Parts, owner: Reader, world: Web) -> None:  # D1
    world.pages["/"] = Answer(
        '<html><head><link rel="alternate" type="application/rss+xml" href="/feed"></head><body>Hello</body></html>',
        headers={"Content-Type": "text/html"},
    )
    world.pages["/feed"] = Answer(rss("first"))
    [report] = await visit(parts, owner, world.url("/"))
    assert (report["outcome"], report["new"]) == ("ok", 1)
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert source.address == world.url("/feed")
    [again] = await visit(parts, owner, world.url("/feed"))
    assert again["outcome"] == "unchanged"


async def test_a_page_without_a_feed_is_a_failure_that_says_what_to_do(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/"] = Answer("<html><body>Hello</body></html>", headers={"Content-Type": "text/html"})
    [report] = await visit(parts, owner, world.url("/"))
    assert report["outcome"] == "failed"
    assert "not a feed" in report["error"]


async def test_an_unchanged_feed_is_asked_for_with_its_validators_and_not_read(
    parts: Parts, owner: Reader, world: Web
) -> None:
    def feed(asked: Asked) -> Answer:
        if asked.headers.get("if-none-match") == '"v1"':
            return Answer(status=304)
        return Answer(rss("first"), headers={"ETag": '"v1"', "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT"})

    world.pages["/feed"] = feed
    await visit(parts, owner, world.url("/feed"))
    [report] = await visit(parts, owner, world.url("/feed"))
    assert (report["outcome"], report["new"], report["duplicates"]) == ("unchanged", 0, 0)
    assert world.asked[1].headers["if-modified-since"] == "Mon, 02 Nov 2026 10:00:00 GMT"


async def test_the_same_bytes_without_validators_are_not_read_again(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/feed"] = Answer(rss("first"))
    await visit(parts, owner, world.url("/feed"))
    [report] = await visit(parts, owner, world.url("/feed"))
    assert report["outcome"] == "unchanged"


async def test_an_edited_entry_is_a_new_version_and_not_a_new_post(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/feed"] = Answer(rss("first"))
    await visit(parts, owner, world.url("/feed"))
    world.pages["/feed"] = Answer(rss("first").replace("Text of first", "Corrected text"))
    [report] = await visit(parts, owner, world.url("/feed"))
    assert (report["new"], report["updated"]) == (0, 1)
    [story] = await parts.db.read(stream.page, owner)
    assert story.post.version == 2


async def test_a_feed_without_entries_is_empty_and_not_a_failure(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/feed"] = Answer(rss())
    [report] = await visit(parts, owner, world.url("/feed"))
    assert (report["outcome"], report["error"]) == ("empty", None)


async def test_what_goes_wrong_with_one_source_is_said_and_the_others_go_on(
    parts: Parts, owner: Reader, world: Web
) -> None:
    world.pages["/good"] = Answer(rss("good"))
    world.pages["/empty"] = Answer("")
    world.pages["/broken"] = Answer(status=500)
    names = ("/good", "/empty", "/broken", "/missing")
    reports = await visit(parts, owner, *(world.url(name) for name in names))
    assert [report["outcome"] for report in reports] == ["ok", "failed", "failed", "failed"]
    assert "empty answer" in reports[1]["error"]  # H28
    assert "HTTP 500" in reports[2]["error"]
    assert "HTTP 404" in reports[3]["error"]


async def test_a_gone_feed_is_retired(parts: Parts, owner: Reader, world: Web) -> None:  # H32
    world.pages["/feed"] = Answer(rss("first"))
    await visit(parts, owner, world.url("/feed"))
    world.pages["/feed"] = Answer(status=410)
    await visit(parts, owner, world.url("/feed"))
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert (source.status, source.active) == ("retired", False)
    assert "gone for good" in (source.last_error or "")


async def test_a_busy_host_is_left_alone_as_long_as_it_asks(parts: Parts, owner: Reader, world: Web) -> None:  # H31
    world.pages["/feed"] = Answer(status=429, headers={"Retry-After": "3600"})
    await visit(parts, owner, world.url("/feed"))
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert source.next_check_at - parts.now() > timedelta(minutes=59)
    assert source.waits_for == "127.0.0.1 asked for a pause"
    assert source.consecutive_failures == 0


async def test_a_304_that_nobody_asked_for_is_asked_again_once(parts: Parts, owner: Reader, world: Web) -> None:  # H30
    answers = iter([Answer(status=304), Answer(rss("first"))])
    world.pages["/feed"] = lambda asked: next(answers)
    [report] = await visit(parts, owner, world.url("/feed"))
    assert (report["outcome"], report["new"]) == ("ok", 1)


async def test_a_server_that_only_ever_says_unchanged_is_a_failure(parts: Parts, owner: Reader, world: Web) -> None:
    world.pages["/feed"] = Answer(status=304)  # H30
    [report] = await visit(parts, owner, world.url("/feed"))
    assert report["outcome"] == "failed"
    assert "HTTP 304" in report["error"]
    assert world.paths() == ["/feed", "/feed"]


async def test_a_permanent_redirect_is_remembered_and_a_temporary_one_is_not(
    parts: Parts, owner: Reader, world: Web
) -> None:
    world.pages["/new"] = Answer(rss("first"))
    world.pages["/moved"] = Answer(status=301, headers={"Location": "/new"})
    world.pages["/other"] = Answer(rss("second", title="Other"))
    world.pages["/away"] = Answer(status=302, headers={"Location": "/other"})
    await visit(parts, owner, world.url("/moved"), world.url("/away"))
    addresses = {source.address for source in await parts.db.read(sources.watched, owner, parts.now())}
    assert addresses == {world.url("/new"), world.url("/away")}


async def test_a_private_address_is_refused_with_the_reason(environ: dict[str, str], world: Web) -> None:  # H1
    strict = wire.open_parts(load({**environ, "HEADWATER_ALLOW_PRIVATE_NETWORKS": "false"}))
    owner = wire.prepare_store(strict)
    world.pages["/feed"] = Answer(rss("first"))
    [report] = await visit(strict, owner, world.url("/feed"))
    assert report["outcome"] == "failed"
    assert "HEADWATER_ALLOW_PRIVATE_NETWORKS" in report["error"]
    assert world.asked == []
    strict.close()


async def test_a_document_that_kills_its_reader_costs_only_itself(environ: dict[str, str], world: Web) -> None:
    small = wire.open_parts(load({**environ, "HEADWATER_PARSER_SECONDS": "0.1", "HEADWATER_PARSER_PROCESSES": "1"}))
    owner = wire.prepare_store(small)
    heavy = "<item><title>x</title><description>" + "&lt;b&gt;&lt;i&gt;" * 40 + "</description></item>"
    world.pages["/heavy"] = Answer("<rss><channel><title>x</title>" + heavy * 12000 + "</channel></rss>")
    world.pages["/good"] = Answer(rss("good"))
    bad, good = await visit(small, owner, world.url("/heavy"), world.url("/good"))
    assert (bad["outcome"], good["outcome"]) == ("failed", "ok")
    assert "CPU time" in bad["error"]
    small.close()
