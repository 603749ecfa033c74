"""Folding under kill -9, and by two processes at once: no post in two stories, no decision lost (H79, H84)."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Connection, func, select

from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.tables import event_outbox, posts, story_decisions, story_members
from support.forked import Forked
from support.posts import NOON, a_post, a_source, visited
from support.processes import wait_until

POSTS = 600
KILLS = 4
FOLD_UNTIL_KILLED = """
import asyncio
from headwater import wire
from headwater.settings import load
from headwater.work import consumers

async def fold(parts):
    consumer = parts.folding.consumer()._replace(batch=7)
    print("folding", flush=True)
    await consumers.consume(parts.db, [consumer], parts.new_events, parts.now, asyncio.Event())

asyncio.run(fold(wire.open_parts(load())))
"""
PLACES = ("Halvorsen", "Brekke", "Lindal", "Osterby", "Tamsund", "Virrat", "Kolstad", "Mirador", "Sundvik", "Arvika")
THINGS = ("copper mine", "grain harbour", "steel works", "paper mill", "power station", "salt quarry")


def headline(number: int) -> str:
    """Sixty different events, each told ten times over in three ways."""
    event = number % 60
    place, thing = PLACES[event % 10], THINGS[event // 10]
    ways = (
        f"Fire at the {thing} of {place} stops all work until further notice",
        f"BREAKING: Fire at the {thing} of {place} stops all work until further notice",
        f"{place}: {thing} on fire, all work stopped until further notice",
    )
    return ways[number // 60 % 3]


def publish(conn: Connection, owner: Reader) -> None:
    for paper in range(10):
        source_id = a_source(conn, owner, f"https://paper{paper}.example/feed")
        mine = range(paper * POSTS // 10, (paper + 1) * POSTS // 10)
        visited(
            conn,
            source_id,
            [a_post(str(n), headline(n), content="", created_at=NOON + timedelta(seconds=n)) for n in mine],
        )


@pytest.fixture
def folders(store_url: str) -> Iterator[list[Forked]]:
    running: list[Forked] = []
    yield running
    for process in running:
        if process.poll() is None:
            process.kill()
            process.communicate()


def start(folders: list[Forked], store_url: str) -> Forked:
    environ = {**os.environ, "HEADWATER_DATABASE_URL": store_url}
    process = Forked("-c", FOLD_UNTIL_KILLED, env=environ, stdout=subprocess.PIPE)
    folders.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "folding\n"
    return process


def decided(db: Database) -> int:
    return db.read_now(lambda conn: conn.execute(select(func.count()).select_from(story_members)).scalar_one())


def assert_every_decision_is_there_once(db: Database) -> None:
    def look(conn: Connection) -> None:
        members = conn.execute(select(story_members)).all()
        assert len(members) == len({row.post_id for row in members}) == POSTS
        founders = {row.post_id for row in members if row.rule == "first"}
        joined = {row.post_id: row.story_id for row in members if row.rule != "first"}
        assert set(joined.values()) <= founders, "a post is in a story that nobody began"
        assert {row.repeat_id for row in members} <= {row.post_id for row in members if row.repeat_id == row.post_id}
        record = conn.execute(select(story_decisions).order_by(story_decisions.c.id)).all()
        places: dict[int, int] = {}
        for row in record:  # two stories may have become one
            moved = [one["post_id"] for one in row.members] if row.action == "met" else [row.post_id]
            places |= dict.fromkeys(moved, row.story_id)
        assert places == joined, "the record differs from the stories"
        told = conn.execute(select(func.count()).where(event_outbox.c.kind == "story.joined")).scalar_one()
        assert told == sum(len(row.members) if row.action == "met" else 1 for row in record)
        titles = {row.id: row.title for row in conn.execute(select(posts.c.id, posts.c.title))}
        assert all(_event_of(titles[row.post_id]) == _event_of(titles[row.repeat_id]) for row in members)

    db.read_now(look)


def _event_of(title: str) -> tuple[str, ...]:
    return tuple(word for word in (*PLACES, *THINGS) if word in title)


def test_folding_killed_at_random_moments_decides_about_every_post_once(
    db: Database, owner: Reader, store_url: str, folders: list[Forked]
) -> None:
    db.write_now(publish, owner)
    chance = random.Random(5)
    for _ in range(KILLS):
        before = decided(db)
        process = start(folders, store_url)
        wait_until(lambda before=before: decided(db) > min(before, POSTS - 1))  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.communicate()
    start(folders, store_url)
    wait_until(lambda: decided(db) == POSTS)
    assert_every_decision_is_there_once(db)


def test_two_folders_at_once_decide_about_every_post_once(
    db: Database, owner: Reader, store_url: str, folders: list[Forked]
) -> None:
    start(folders, store_url)
    start(folders, store_url)
    db.write_now(publish, owner)
    wait_until(lambda: decided(db) == POSTS)
    assert_every_decision_is_there_once(db)
