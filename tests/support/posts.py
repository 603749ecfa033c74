"""Short ways to make posts, sources, leases and visits for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection

from headwater.crawl.record import record
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import DueSource, Facts, Post, Reader, SavedVisit, SourceState, Visit
from headwater.store.sources import leases
from headwater.wire import Parts

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
LEASE = timedelta(seconds=180)
NO_GAP = timedelta(0)


def a_post(id: str, title: str = "", **fields: Any) -> Post:
    title = title or f"Title of {id}"
    content = fields.pop("content", f"<p>Text of {title}</p>")
    text_hash = blake2b(f"{title}\0{content}".encode(), digest_size=16).digest()
    given = {"url": f"https://news.example/{id}", "author": None, "created_at": NOON, **fields}
    return Post(source_post_id=id, title=title, content=content, text_hash=text_hash, **given)


def a_source(conn: Connection, owner: Reader, address: str = "https://news.example/feed", now: datetime = NOON) -> int:
    return follow(conn, owner, address, now).source_id


def a_claim(conn: Connection, source_id: int, now: datetime = NOON) -> str:
    """Leases this source; returns the token."""
    lease = uuid7()
    granted = leases.claim_named(conn, [source_id], now=now, lease=lease, lease_for=LEASE, gap=NO_GAP)
    assert [due.source.id for due in granted] == [source_id]
    return lease


def a_visit(source_id: int, lease: str, posts: list[Post], now: datetime = NOON, **fields: Any) -> Visit:
    given = {
        "started_at": now,
        "seconds": 0.1,
        "outcome": "ok",
        "status": "ok",
        "next_check_at": now + timedelta(minutes=30),
        "state": SourceState(etag='"1"', body_hash=b"x", validated_at=now),
        "facts": Facts(title="The News"),
        **fields,
    }
    return Visit(source_id=source_id, lease=lease, posts=posts, **given)


def visited(conn: Connection, source_id: int, posts: list[Post], now: datetime = NOON, **fields: Any) -> SavedVisit:
    """Leases a source and records a visit with these posts."""
    lease = a_claim(conn, source_id, now)
    return record(conn, [a_visit(source_id, lease, posts, now, **fields)], now)[0]


async def claim(parts: Parts, source_id: int, gap: timedelta = timedelta(0)) -> list[DueSource]:
    """Leases a source, due or not."""
    lease_for = timedelta(seconds=parts.settings.lease_seconds)
    terms: dict[str, Any] = {"now": parts.now(), "lease": uuid7(), "lease_for": lease_for, "gap": gap}
    return await parts.db.write(leases.claim_named, [source_id], **terms)
