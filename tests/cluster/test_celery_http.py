"""Asking for visits over HTTP gives the same answers with Celery as without, and does not need the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.running import Client, Running, running
from headwater.follow.add import follow
from support.cluster import Cluster, OwnRedis
from support.posts import a_post
from support.processes import wait_until
from support.web import Answer, Web, rss


@pytest.fixture
def own_redis() -> Iterator[OwnRedis]:
    made = OwnRedis()
    yield made
    made.stop()


def finished(client: Client, task_id: str) -> Any:
    """Returns the task, once it is over."""
    found: dict[str, Any] = {}

    def is_over() -> bool:
        found.update(client.get(f"/api/queue/tasks/{task_id}").json())
        return found["status"] in ("SUCCESS", "FAILURE")

    wait_until(is_over)
    return found


def add(headwater: Running, address: str) -> int:
    parts = headwater.parts
    return parts.db.write_now(follow, headwater.owner, address, parts.now()).source_id


def test_a_refresh_over_http_is_carried_out_by_a_worker(environ: dict[str, str], world: Web, cluster: Cluster) -> None:
    # D3 D4 D12
    world.pages["/feed"] = Answer(rss("one", "two"))
    cluster.worker()
    cluster.beat()
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    with running(environ["HEADWATER_DATABASE_URL"], **settings) as headwater:
        client, feed_id = headwater.program(), add(headwater, world.url("/feed"))
        wait_until(lambda: client.get(f"/api/sources/{feed_id}").json()["last_crawled_at"])
        asked = client.post("/api/queue/schedule-feed", {"feed_id": feed_id, "force_immediate": True})
        assert (asked.status, asked.json()["status"], asked.json()["delay_seconds"]) == (202, "queued", 0)
        task = finished(client, asked.json()["task_id"])
        assert (task["status"], task["result"]["feed_id"], task["error"]) == ("SUCCESS", feed_id, None)
        assert cluster.result(asked.json()["task_id"])["feed_id"] == feed_id, "Celery's clients see it as well"
        later = client.post("/api/queue/schedule-feed", {"feed_id": feed_id}).json()
        assert later["status"] == "queued"
        assert 0 < later["delay_seconds"] < 3600, "what remains of the interval, with some chance"
        assert client.get(f"/api/queue/tasks/{later['task_id']}").json()["status"] == "PENDING"
        world.pages["/feed"] = Answer("gone", 404)
        failed = client.post("/api/queue/schedule-feed", {"feed_id": feed_id, "force_immediate": True}).json()
        assert failed["task_id"] == later["task_id"], "the task that waits for this visit"
        task = finished(client, failed["task_id"])
        assert (task["status"], task["result"]["success"]) == ("FAILURE", False)
        assert "404" in task["error"]


def test_requests_succeed_while_the_broker_is_down_and_are_served_when_it_is_back(
    environ: dict[str, str], world: Web, own_redis: OwnRedis, tmp_path: Path
) -> None:  # H89
    world.pages["/feed"] = Answer(rss("one"))
    environ["CELERY_BROKER_URL"] = own_redis.url
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    with Cluster(environ, tmp_path / "logs") as cluster:
        beat = cluster.beat()
        with running(environ["HEADWATER_DATABASE_URL"], **settings) as headwater:
            client, feed_id = headwater.program(), add(headwater, world.url("/feed"))
            asked = client.post("/api/queue/schedule-feed", {"feed_id": feed_id, "force_immediate": True})
            assert (asked.status, asked.json()["status"]) == (202, "queued")
            wait_until(lambda: beat.says("dispatch.waits"))
            figures = {one["name"]: one["value"] for one in client.get("/api/health").json()["figures"]}
            assert figures["sources_due"] == 1
            own_redis.start()
            cluster.worker()
            assert finished(client, asked.json()["task_id"])["status"] == "SUCCESS"
            own_redis.stop()
            again = client.post("/api/queue/schedule-feed", {"feed_id": feed_id, "force_immediate": True})
            own_redis.start()
            assert finished(client, again.json()["task_id"])["status"] == "SUCCESS"
            assert "dispatch.failed" not in beat.text(), "a broker that goes away is no bug"


def test_web_servers_share_everything_and_either_goes_on_alone(environ: dict[str, str]) -> None:  # E11
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    with running(environ["HEADWATER_DATABASE_URL"], **settings) as one:
        with running(environ["HEADWATER_DATABASE_URL"], **settings) as other:
            here = one.program()
            there = Client(other.port, here.headers)
            [post_id] = other.publish(other.source(), a_post("one"))
            assert [post["id"] for post in here.get("/api/posts").json()["items"]] == [post_id]
            assert here.patch(f"/api/posts/{post_id}", {"read": True}).status == 200
            assert there.get(f"/api/posts/{post_id}").json()["read"] is True, "at once, with a cache in between"
            session = one.session()
            assert other.browser(session).get("/").status == 200
        assert here.get(f"/api/posts/{post_id}").json()["read"] is True
