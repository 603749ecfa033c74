"""First pages come from the cache, and show every change at once, on both databases, in memory and in Redis (E7)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import text

from api.running import Running, running
from headwater.api.document import openapi
from headwater.app.shapes import shaped
from headwater.app.tellings import StoryJson
from headwater.store.posts import stream
from headwater.store.posts.stream import Filter
from support.cluster import OwnRedis
from support.posts import a_post


@pytest.fixture(params=["memory", "redis"])
def headwater(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> Iterator[Running]:
    environ = {}
    if request.param == "redis":
        environ = {
            "HEADWATER_REDIS_URL": request.getfixturevalue("redis_url"),
            "HEADWATER_DATA_DIR": str(tmp_path),
        }
    with running(store_url, **environ) as found:
        yield found


def truth(headwater: Running, **wanted: Any) -> Any:
    """The first page as the store has it."""
    page = headwater.parts.db.read_now(stream.page, headwater.owner, Filter(**wanted), limit=50)
    return [shaped(StoryJson, one) for one in page]


def shown(headwater: Running, **wanted: Any) -> Any:
    """The first page as the API answers it, asked for twice: once to have it cached."""
    program = headwater.program()
    query = "&".join(f"{name}={str(value).lower()}" for name, value in wanted.items())
    program.get(f"/api/stream?{query}")
    return program.get(f"/api/stream?{query}").json()["items"]


def lookups(headwater: Running, found: str) -> int:
    return sum(count for (_, what), count in headwater.parts.cache.lookups.items() if what == found)


def test_a_first_page_that_was_asked_for_comes_from_the_cache(headwater: Running) -> None:
    headwater.publish(headwater.source(), a_post("a"), a_post("b"))
    program = headwater.program()
    first = program.get("/api/stream").json()
    for _ in range(200):  # a busy machine may be too slow for the cache now and then
        assert program.get("/api/stream").json() == first
        if lookups(headwater, "fresh"):
            break
    assert lookups(headwater, "fresh")
    assert headwater.program().get("/api/health").json()["cache_hit_rate"] > 0
    assert 'headwater_cache_lookups_total{found="fresh",kind="stream"}' in program.get("/metrics").text


@pytest.mark.parametrize("path", ["/api/stream?limit=1", "/api/posts", "/api/stream?q=nothing"])
def test_a_client_that_has_a_page_is_told_that_nothing_has_changed(headwater: Running, path: str) -> None:
    source_id = headwater.source()
    [a] = headwater.publish(source_id, a_post("a", score=1))
    program = headwater.program()
    tag = program.get(path).headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        same = program.get(path, **{"If-None-Match": known})
        assert (same.status, same.text, same.headers["etag"]) == (304, "", tag)
    assert program.get(path, **{"If-None-Match": '"other"'}).status == 200
    declared = openapi()["paths"][path.partition("?")[0]]["get"]["responses"]
    assert "content" not in declared["304"], "it has no body"
    assert "ETag" in declared["200"]["headers"]
    assert "ETag" in declared["304"]["headers"]
    if "q=" in path:
        return
    program.patch(f"/api/posts/{a}", {"read": True})
    after = program.get(path, **{"If-None-Match": tag})
    assert (after.status, after.headers["etag"] == tag) == (200, False)
    assert after.json()["items"], "what changed is sent"


def test_every_change_shows_at_once_in_a_page_that_is_cached(headwater: Running) -> None:
    program = headwater.program()
    source = headwater.source()
    one, _two = headwater.publish(source, a_post("a"), a_post("b"))
    seen = [shown(headwater)]

    def changed(**wanted: Any) -> None:
        now = shown(headwater, **wanted)
        assert now == truth(headwater, **wanted)
        assert now != seen[-1]
        seen.append(now)

    assert seen == [truth(headwater)]
    headwater.publish(source, a_post("c"))
    changed()
    headwater.publish(source, a_post("a", title="Edited"))
    changed()
    program.patch(f"/api/posts/{one}", {"read": True})
    changed()
    program.patch(f"/api/posts/{one}", {"starred": True})
    changed(starred=True)
    program.patch(f"/api/posts/{one}", {"read": False})
    changed()
    program.patch(f"/api/sources/{source}", {"title": "Named by its reader"})
    changed()
    other = headwater.source("https://other.example/feed")
    headwater.publish(other, a_post("d"))
    changed()
    program("DELETE", f"/api/sources/{other}")
    changed()
    assert seen[-1] == seen[-3]
    program.patch(f"/api/posts/{one}", {"read": True})
    changed(unread=True)


def test_what_commits_late_shows_although_an_older_transaction_is_open(postgres_url: str) -> None:
    """Ids are given out before transactions commit, and an open one holds the horizon of the log back."""
    with running(postgres_url) as headwater:
        source = headwater.source()
        headwater.publish(source, a_post("a"))
        holding, done = threading.Event(), threading.Event()

        def hold(conn: Any) -> None:
            conn.execute(text("SELECT pg_current_xact_id()"))
            holding.set()
            done.wait(60)

        holder = threading.Thread(target=headwater.parts.db.write_now, args=(hold,))
        holder.start()
        holding.wait(60)
        assert len(shown(headwater)) == 1
        for number in range(2, 5):
            headwater.publish(source, a_post(str(number)))
            assert len(shown(headwater)) == number
        done.set()
        holder.join()
        assert shown(headwater) == truth(headwater)


def test_pages_are_right_while_redis_is_emptied_stopped_and_killed(
    store_url: str, own_redis: OwnRedis, tmp_path: Path
) -> None:
    with running(store_url, HEADWATER_REDIS_URL=own_redis.url, HEADWATER_DATA_DIR=str(tmp_path)) as headwater:
        source = headwater.source()
        program = headwater.program()
        for number, trouble in enumerate(("none", "flushall", "pause", "go_on", "stop", "start"), 1):
            if trouble == "flushall":
                with redis.Redis.from_url(own_redis.url) as server:
                    server.flushall()
            elif trouble != "none":
                getattr(own_redis, trouble)()
            [post] = headwater.publish(source, a_post(str(number)))
            assert shown(headwater) == truth(headwater)
            program.patch(f"/api/posts/{post}", {"read": True})
            assert shown(headwater) == truth(headwater)
            assert len(shown(headwater)) == number
