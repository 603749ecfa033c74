"""A story told by several papers, in our own words, and others that only sound like it."""

from __future__ import annotations

from datetime import timedelta

from api.running import Running
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
