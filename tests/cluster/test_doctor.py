"""`headwater doctor` sees which part of a cluster does not answer, and says what to do."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import redis
from sqlalchemy import text

from headwater import wire
from headwater.app import cluster as examining
from headwater.app.cluster import Finding
from headwater.model import Reader
from headwater.wire import Parts
from support.cluster import Cluster, OwnRedis
from support.posts import a_source
from support.processes import wait_until


def doctor(cluster: Cluster) -> dict[str, tuple[bool, str]]:
    """What the command says, by what it is about."""
    program = (
        "import asyncio, json; from headwater.cli.instance import examine;"
        "print(json.dumps([tuple(one) for one in asyncio.run(examine())]))"
    )
    import json

    return {what: (ok, detail) for what, ok, detail in json.loads(cluster.python(program).splitlines()[-1])}


def examined(parts: Parts, redis_url: str) -> dict[str, Finding]:
    async def ask() -> list[Finding]:
        return [one async for one in examining.examine(parts.db, parts.now, redis_url=redis_url)]

    return {one.what: one for one in asyncio.run(ask())}


def test_each_part_that_is_missing_is_named(
    environ: dict[str, str], own_redis: OwnRedis, owner: Reader, tmp_path: Path
) -> None:
    environ["CELERY_BROKER_URL"] = own_redis.url
    with Cluster(environ, tmp_path / "logs") as cluster:
        found = doctor(cluster)
        assert found["broker"][0]
        assert not found["workers"][0]
        assert "celery -A headwater.work.celery_app worker" in found["workers"][1]

        cluster.worker("-Q", "high,default")
        found = doctor(cluster)
        assert found["workers"] == (True, "1: worker0@test")
        assert found["queue default"] == (True, "0 messages, 1 workers")
        assert not found["queue crawler_queue"][0]
        assert "CELERY_QUEUE_NAMES" in found["queue crawler_queue"][1]
        assert all(found[f"clock of {whose}"][0] for whose in ("worker0@test", "Redis", "the database"))
        assert found["Redis"][0]
        assert found["replication slots"][0]
        assert found["schedule"][0]

        with redis.Redis.from_url(own_redis.url) as server:
            server.config_set("maxmemory-policy", "allkeys-lru")
        assert not doctor(cluster)["Redis"][0]
        assert "noeviction" in doctor(cluster)["Redis"][1]

        own_redis.stop()
        found = doctor(cluster)
        assert not found["broker"][0]
        assert not found["Redis"][0]
        assert "CELERY_BROKER_URL" in found["broker"][1]


def test_a_queue_in_which_too_much_waits_is_named(
    environ: dict[str, str], own_redis: OwnRedis, owner: Reader, tmp_path: Path
) -> None:
    environ["CELERY_BROKER_URL"] = own_redis.url
    with Cluster(environ, tmp_path / "logs") as cluster:
        worker = cluster.worker("-Q", "high,default")
        with redis.Redis.from_url(own_redis.url) as server:
            server.rpush("celery:maintenance_queue", *["waits"] * (examining.MOST_WAITING + 1))
        waiting = (
            "from headwater.work.celery_app import CeleryBroker; print(CeleryBroker().waiting('maintenance_queue'))"
        )
        assert cluster.python(waiting).strip() == "101", "the dispatcher stops sending when too many wait"
        found = doctor(cluster)
        assert not found["queue maintenance_queue"][0]
        assert found["queue maintenance_queue"][1].startswith("101 messages")
        worker.kill()
        wait_until(lambda: not doctor(cluster)["workers"][0])


def test_clocks_that_differ_are_named(parts: Parts, owner: Reader, redis_url: str) -> None:
    assert all(one.ok for one in examined(parts, redis_url).values())
    right = parts.now

    def wrong() -> datetime:
        return right() + timedelta(seconds=30)

    parts.now = wrong
    found = examined(parts, redis_url)
    for whose in ("Redis", "the database"):
        assert not found[f"clock of {whose}"].ok
        assert found[f"clock of {whose}"].detail.startswith(("-30.", "-29."))
        assert "NTP" in found[f"clock of {whose}"].detail


def test_sources_that_nobody_visits_are_named(environ: dict[str, str], parts: Parts, owner: Reader) -> None:
    parts.db.write_now(a_source, owner, "https://news.example/feed", parts.now())
    late = text("UPDATE sources SET next_check_at = :at")
    parts.db.write_now(lambda conn: conn.execute(late, {"at": parts.now() - timedelta(minutes=6)}))

    async def ask() -> list[Finding]:
        return [one async for one in wire.examine_cluster(parts)]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        found = {one.what: one for one in asyncio.run(ask())}
    assert not found["schedule"].ok
    assert "1 sources" in found["schedule"].detail
    assert "beat" in found["schedule"].detail


def test_a_slot_that_nobody_reads_is_seen(parts: Parts, owner: Reader, redis_url: str) -> None:
    make = text("SELECT pg_create_physical_replication_slot('forgotten_by_test', true)")
    drop = text("SELECT pg_drop_replication_slot('forgotten_by_test')")
    parts.db.write_now(lambda conn: conn.execute(make))
    try:
        assert "replication slots" in examined(parts, redis_url)
        slots = parts.db.read_now(examining.replication.keepers)
        [ours] = [slot for slot in slots if slot.name == "forgotten_by_test"]
        large = examining._slots([ours._replace(bytes=examining.MAX_SLOT_BYTES)])
        assert not large.ok
        assert "nobody reads it" in large.detail
        assert not examining._slots([ours._replace(status="lost")]).ok
    finally:
        parts.db.write_now(lambda conn: conn.execute(drop))
