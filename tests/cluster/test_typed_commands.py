"""What a reader of the documents types into a shell, on a deployment of real processes, and what it shows."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import timedelta

import pytest

from headwater import wire
from headwater.follow.pool import Candidate, bring_in
from headwater.model import Reader
from headwater.settings import load
from headwater.sim.reddit import serving
from headwater.sim.reddit_world import CommunityHabits, simulated
from headwater.wire import Parts
from support.cluster import Cluster, OwnRedis, add_feeds, held_back
from support.processes import wait_until
from support.web import Web

METRICS = """SELECT successful_crawls, empty_crawls, failed_crawls, total_new_posts, total_communities
    FROM crawl_metrics ORDER BY metric_date DESC, metric_hour DESC LIMIT 10;"""
COMMUNITIES = """SELECT community_name, success_hit, empty_hit, failure_hit, last_crawled_at IS NOT NULL
    FROM community_cache ORDER BY avg_valid_posts DESC LIMIT 20;"""


def typed(*command: str) -> str:
    """Runs a command of the system; returns what it prints."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def sql(environ: dict[str, str], query: str) -> list[str]:
    return typed("psql", environ["HEADWATER_DATABASE_URL"], "-X", "-A", "-t", "-F", " ", "-c", query).splitlines()


def test_a_crawl_that_is_called_is_found_by_the_documents_sql(
    environ: dict[str, str], cluster: Cluster
) -> None:  # A13 A14
    with serving(simulated({"alpha": CommunityHabits()}, seed=3)) as reddit:
        reddit.clock.advance(timedelta(hours=12))
        environ |= {"HEADWATER_REDDIT_URL": reddit.url, "HEADWATER_REDDIT_API_URL": reddit.url}
        environ |= dict(zip(("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"), reddit.client, strict=True))
        parts = wire.open_parts(load(environ))
        wanted = [Candidate("https://www.reddit.com/r/alpha", "low", ("test",))]
        parts.db.write_now(bring_in, wire.prepare_store(parts), wanted, parts.now())
        parts.close()
        cluster.worker()
        called = cluster.command("call", "tasks.crawler.crawl_community", "--args", '["r/alpha"]').strip()
        report = cluster.result(called)
        assert (report["community"], report["watermark_updated"]) == ("r/alpha", True)
        assert report["new_posts"] > 0
        cluster.result(cluster.command("call", "tasks.metrics.count_visits").strip())
    assert sql(environ, METRICS)[0] == f"1 0 0 {report['new_posts']} 1"
    assert sql(environ, COMMUNITIES) == ["r/alpha 1 0 0 t"]


def test_redis_cli_shows_the_lock_of_a_feed_while_it_is_visited(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster, redis_url: str
) -> None:  # D5
    [feed_id] = add_feeds(parts, owner, world, 1)
    answers = held_back(world, "/0")

    def redis_cli(*command: str) -> str:
        return typed("redis-cli", "-u", redis_url.replace("//:", "//default:"), "--no-auth-warning", *command)

    cluster.worker()
    task_id = cluster.command("call", "tasks.feeds.refresh_feed", "--args", f"[{feed_id}]").strip()
    wait_until(lambda: redis_cli("GET", f"tasklock:feed:{feed_id}") == task_id)
    assert 100 < int(redis_cli("TTL", f"tasklock:feed:{feed_id}")) <= 180
    answers.set()
    assert cluster.result(task_id)["success"]
    wait_until(lambda: redis_cli("GET", f"tasklock:feed:{feed_id}") == "")
    assert 86_000 < int(redis_cli("TTL", f"celery-task-meta-{task_id}")) <= 86_400


def test_a_worker_is_what_celerys_variables_say(
    owner: Reader, environ: dict[str, str], cluster: Cluster, own_redis: OwnRedis
) -> None:  # A12
    environ["CELERY_WORKER_COUNT"] = "3"
    environ["CELERY_QUEUE_NAMES"] = "crawler_queue,maintenance_queue"
    environ["CELERY_RESULT_BACKEND"] = own_redis.url
    cluster.worker()
    [stats] = json.loads(cluster.command("inspect", "stats", "--json")).values()
    assert (stats["pool"]["max-concurrency"], stats["prefetch_count"]) == (3, 3)
    [queues] = json.loads(cluster.command("inspect", "active_queues", "--json")).values()
    assert [queue["name"] for queue in queues] == ["high", "default", "crawler_queue", "maintenance_queue"]
    called = cluster.command("call", "tasks.maintenance.heal_clock").strip()
    wait_until(lambda: typed("redis-cli", "-u", own_redis.url, "EXISTS", f"celery-task-meta-{called}") == "1")
    assert not cluster.redis.exists(f"celery-task-meta-{called}"), "results are not kept by the broker"
