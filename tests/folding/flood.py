"""A story told by several papers, in our own words, and others that only sound like it."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from api.running import Running
from headwater.consumers.fold import write_decisions
from headwater.model import Decision
from headwater.store import stories
from support.posts import a_post

FLOOD = "River floods the copper mine at Halvorsen and stops production for weeks"
FLOOD_AGAIN = f"BREAKING: {FLOOD}"
FLOOD_TOLD = "Copper mine at Halvorsen flooded as river bursts banks, production stopped for weeks"
ELECTION = "Parliament of Norland elects its first woman as speaker after long debate"


def publish(headwater: Running, *titles: str) -> list[int]:
    """One post in each of as many papers, the first one earliest; returns their ids."""
    now = headwater.parts.now() - timedelta(hours=1)
    ids = []
    for minute, title in enumerate(titles):
        source_id = headwater.source(f"https://paper{minute}.example/feed")
        post = a_post(f"{minute} {title}", title, content="", created_at=now + timedelta(minutes=minute))
        ids += headwater.publish(source_id, post)
    return ids


def fold(headwater: Running, ids: list[int]) -> None:
    headwater.parts.db.write_now(headwater.parts.folding.fold, ids, headwater.parts.now())


def decide(headwater: Running, *decisions: Decision) -> None:
    """Has posts join stories as told, whatever the index would decide about them."""

    def write(conn: Connection) -> None:
        posts = stories.texts(conn, [one.post_id for one in decisions])
        write_decisions(conn, decisions, posts, headwater.parts.now())

    headwater.parts.db.write_now(write)


def begins(post_id: int) -> Decision:
    return Decision(post_id, post_id, post_id, "first", 1.0, "")


def joins(post_id: int, story_id: int, rule: str = "story") -> Decision:
    repeat_id = post_id if rule == "story" else story_id
    return Decision(post_id, story_id, repeat_id, rule, 0.9, "shares: paper, mill")
