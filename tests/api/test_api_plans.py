"""No page and no answer makes the database read a whole table of posts, sources or visits."""

from __future__ import annotations

import pytest

from api.running import Running
from headwater.follow.add import follow
from support.posts import a_post
from support.statements import recorded

PATHS = [
    "/",
    "/?unread=1",
    "/?starred=1",
    "/?folder=Folder",
    "/?source_id=1",
    "/posts/1",
    "/sources",
    "/sources?attention=1",
    "/sources/1",
    "/sources/rows?id=1&id=2",
    "/crawling",
    "/api/posts/1/versions",
    "/api/crawl/metrics",
    "/api/stream",
    "/api/posts?source_id=1&unread=1",
    "/api/sources",
    "/api/sources/1",
    "/api/opml",
]


@pytest.mark.parametrize("path", PATHS)
def test_what_is_shown_is_found_by_an_index(headwater: Running, path: str) -> None:
    db, now = headwater.parts.db, headwater.parts.now()
    source_id = db.write_now(follow, headwater.owner, "https://news.example/", now, folder="Folder").source_id
    headwater.publish(source_id, *[a_post(str(number)) for number in range(20)])
    with recorded(db) as asked:
        assert headwater.program().get(path).status == 200
    queries = [statement for statement in asked if statement.startswith("SELECT")]
    assert len(queries) >= 2
    for statement in queries:
        plan = db.read_now(
            lambda conn, query=statement: [row.detail for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}")]
        )
        whole = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step]
        assert not [step for step in whole if step.split()[1] in ("posts", "sources", "crawls", "post_states")], plan
