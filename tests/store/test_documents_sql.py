"""SQL of the documents runs as they wrote it, on both databases (A14)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from api.running import Running
from headwater.store.sources import pool
from headwater.store.visits import metrics
from support.posts import a_post

COLUMNS = {
    "community_pool": "name tier categories quality_score is_active",
    "community_cache": "community_name last_crawled_at last_seen_post_id last_seen_created_at posts_cached"
    " avg_valid_posts quality_tier crawl_frequency_hours empty_hit success_hit failure_hit is_active",
    "posts_raw": "source source_post_id subreddit title content score num_comments created_at text_norm_hash version"
    " extra_data",
    "posts_hot": "source source_post_id subreddit title content score created_at expires_at extra_data",
    "crawl_metrics": "metric_date metric_hour cache_hit_rate valid_posts_24h total_communities successful_crawls"
    " empty_crawls failed_crawls avg_latency_seconds total_new_posts total_updated_posts total_duplicates"
    " tier_assignments",
    "deduplication_groups": "group_id representative_tweet_id deduplication_type similarity_score tweet_ids created_at",
    "tweets": "tweet_id text created_at referenced_tweet_id reference_type deduplication_group_id",
    "threads": "thread_id title url board created_at",
    "articles": "article_id url title site board metadata created_at",
    "feeds": "id url title refresh_interval last_fetched",
    "audit_logs": "user_id tenant_id operation resource_type resource_id ip_address user_agent created_at",
}
LATEST_METRICS = "SELECT * FROM crawl_metrics ORDER BY metric_date DESC, metric_hour DESC LIMIT 10;"
COMMUNITIES = """SELECT community_name, last_crawled_at, avg_valid_posts, quality_tier, crawl_frequency_hours,
    empty_hit, success_hit, failure_hit FROM community_cache ORDER BY avg_valid_posts DESC LIMIT 20;"""
WATERMARK = "SELECT last_seen_created_at FROM community_cache WHERE community_name = 'r/webdev'"
QUIET = """SELECT community_name FROM community_cache WHERE avg_valid_posts < 50 AND is_active
    ORDER BY last_crawled_at ASC LIMIT 50"""
OUTBOX = """SELECT kind, tenant_id, user_id, payload, idempotency_key, created_at FROM event_outbox
    WHERE kind = 'post.stored'"""
DEAD = "SELECT * FROM event_dlq WHERE resolved = false;"


def rows(headwater: Running, query: str) -> list[Any]:
    return headwater.parts.db.read_now(lambda conn: list(conn.execute(text(query)).mappings()))


def test_every_view_has_the_columns_of_its_document(on_both: Running) -> None:
    for view, columns in COLUMNS.items():
        assert rows(on_both, f"SELECT {', '.join(columns.split())} FROM {view}") == [], view
    assert rows(on_both, DEAD) == []


def test_the_queries_of_the_documents_find_what_was_crawled(on_both: Running) -> None:
    now = on_both.parts.now()
    source_id = on_both.source("r/webdev")
    post = a_post("t3_1", "Which bundler do you use?", created_at=now - timedelta(hours=1), score=41, num_comments=7)
    on_both.publish(source_id, post)
    edited = a_post("t3_1", "Which bundler do you use now?", created_at=now - timedelta(hours=1), score=45)
    on_both.publish(source_id, edited)
    on_both.parts.db.write_now(metrics.count_hours, now)

    [latest, *_] = rows(on_both, LATEST_METRICS)
    assert (latest["successful_crawls"], latest["empty_crawls"], latest["failed_crawls"]) == (2, 0, 0)
    assert (latest["total_new_posts"], latest["total_updated_posts"]) == (1, 1)
    assert str(latest["metric_date"]) == f"{now:%Y-%m-%d}"
    assert latest["metric_hour"] == now.hour
    assert (latest["cache_hit_rate"], latest["total_communities"]) == (0, 1)

    [community] = rows(on_both, COMMUNITIES)
    assert community["community_name"] == "r/webdev"
    assert (community["success_hit"], community["failure_hit"]) == (2, 0)
    assert str(community["last_crawled_at"]).startswith(f"{now:%Y-%m-%d %H:}")
    assert len(rows(on_both, WATERMARK)) == 1
    rows(on_both, QUIET)

    old, new = rows(on_both, "SELECT * FROM posts_raw WHERE source = 'reddit' ORDER BY version")
    assert (old["version"], new["version"]) == (1, 2)
    assert (old["subreddit"], old["source_post_id"]) == ("r/webdev", "t3_1")
    assert old["text_norm_hash"] != new["text_norm_hash"]
    assert (bool(old["is_current"]), bool(new["is_current"])) == (False, True)
    [hot] = rows(on_both, "SELECT title, score, subreddit, expires_at, created_at FROM posts_hot")
    assert (hot["title"], hot["score"], hot["subreddit"]) == ("Which bundler do you use now?", 45, "r/webdev")
    assert str(hot["expires_at"]) > str(hot["created_at"])


def test_an_event_is_in_the_outbox_beside_what_it_says(on_both: Running) -> None:  # E1
    on_both.publish(on_both.source("r/webdev"), a_post("t3_1", "Which bundler do you use?"))
    [event] = rows(on_both, OUTBOX)
    assert (event["kind"], bool(event["payload"]), bool(event["idempotency_key"])) == ("post.stored", True, True)
    assert event["tenant_id"] is None  # everybody who follows the source may know


def test_feeds_have_no_subreddit_and_are_no_community(on_both: Running) -> None:
    on_both.publish(on_both.source(), a_post("1", created_at=on_both.parts.now()))
    assert [row["subreddit"] for row in rows(on_both, "SELECT subreddit FROM posts_raw")] == [None]
    assert rows(on_both, "SELECT * FROM community_cache") == rows(on_both, "SELECT * FROM community_pool") == []


def test_the_pool_is_the_communities_that_were_put_into_it(on_both: Running) -> None:
    source_id = on_both.source("r/webdev")
    on_both.parts.db.write_now(
        lambda conn: conn.execute(text("UPDATE sources SET tier = 'high' WHERE id = :id"), {"id": source_id})
    )
    on_both.parts.db.write_now(pool.enter, source_id, ["web"], on_both.parts.now())
    [community] = rows(on_both, "SELECT name, tier, is_active FROM community_pool")
    assert (community["name"], community["tier"], bool(community["is_active"])) == ("r/webdev", "high", True)
    assert rows(on_both, "SELECT quality_tier FROM community_cache")[0]["quality_tier"] == "tier1"


GROUPS = """SELECT * FROM deduplication_groups WHERE deduplication_type = 'exact_duplicate' ORDER BY created_at DESC"""
FOLDED = """SELECT tweet_id, deduplication_group_id FROM tweets WHERE deduplication_group_id IS NOT NULL
    ORDER BY tweet_id"""


def test_groups_of_posts_are_found_by_the_columns_of_their_document(on_both: Running) -> None:  # C12
    ids = ["1876543210987654321", "1876543210987654999"]
    for number, tweet_id in enumerate(ids):
        at = on_both.parts.now() - timedelta(minutes=30 - number)
        post = a_post(tweet_id, "The dam above Millbrook broke at dawn, officials say", content="", created_at=at)
        on_both.publish(on_both.source(f"@account{number}"), post)
    on_both.program().post("/api/deduplicate/batch", {"tweet_ids": ids})

    [group] = rows(on_both, GROUPS)
    told = json.loads(group["tweet_ids"]) if isinstance(group["tweet_ids"], str) else group["tweet_ids"]
    [shown] = on_both.program().get("/api/deduplicate/groups").json()["items"]
    assert told == shown["tweet_ids"] == ids
    assert group["representative_tweet_id"] == shown["representative_tweet_id"] == ids[0]
    assert (group["group_id"], group["similarity_score"]) == (shown["group_id"], None)
    assert str(group["created_at"])[:16].replace(" ", "T") == shown["created_at"][:16]
    assert [tuple(row.values()) for row in rows(on_both, FOLDED)] == [(one, group["group_id"]) for one in ids]
    on_both.program()("DELETE", f"/api/deduplicate/groups/{group['group_id']}?everybody=true")
    assert rows(on_both, GROUPS) == rows(on_both, FOLDED) == []


def test_articles_and_feeds_have_their_documents_names(on_both: Running) -> None:  # D8
    source_id = on_both.source("https://news.example/feed")
    on_both.publish(source_id, a_post("one", "Something happened", url="https://news.example/one"))
    [feed] = rows(on_both, f"SELECT url, last_fetched FROM feeds WHERE id = {source_id}")
    assert (feed["url"], bool(feed["last_fetched"])) == ("https://news.example/feed", True)
    [article] = rows(on_both, "SELECT article_id, url, title, feed_id FROM articles")
    assert tuple(article.values()) == ("one", "https://news.example/one", "Something happened", source_id)


def test_the_audit_log_is_read_by_its_documents_name(on_both: Running) -> None:  # E10
    client = on_both.program()
    source = client.post("/api/sources", {"address": "https://news.example/feed"}, User_Agent="curl/8").json()
    client("DELETE", f"/api/sources/{source['id']}", User_Agent="curl/8")
    told = rows(on_both, "SELECT * FROM audit_logs WHERE resource_type = 'source' ORDER BY id")
    assert [row["operation"] for row in told] == ["CREATE", "DELETE"]
    assert {row["resource_id"] for row in told} == {str(source["id"])}
    assert all(row["user_id"] and row["tenant_id"] and row["ip_address"] for row in told)
    assert {row["user_agent"] for row in told} == {"curl/8"}
