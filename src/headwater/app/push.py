"""Pushes: a hub confirms or denies a subscription (WebSub), and pushes what a feed has published."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from headwater import text
from headwater.crawl.record import receive
from headwater.errors import NotFound
from headwater.follow import push
from headwater.follow.push import PATH as PATH
from headwater.model import Response
from headwater.parse.pool import Parsers
from headwater.store.db import Database
from headwater.store.sources import hubs
from headwater.store.sources.hubs import HubSubscription

MOST_REASON = 300
_CALLBACK_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
_CHALLENGE = re.compile(r"[^\0\r\n]{1,4096}")
_DESCRIBING = ("content-type", "content-encoding")
_SECONDS = re.compile(r"[0-9]{1,9}")

log = structlog.get_logger(__name__)


def subscription(conn: Connection, callback_id: str) -> HubSubscription:
    """Returns the subscription that a hub was told this callback for."""
    found = hubs.find(conn, callback_id) if _CALLBACK_ID.fullmatch(callback_id) else None
    if found is None:
        raise NotFound
    return found


def answer_hub(conn: Connection, one: HubSubscription, asked: Mapping[str, str], now: datetime) -> str:
    """Verifies what a hub asks about a subscription. Returns the challenge to send back; empty after a denial.

    Only what we want is confirmed, and only for the topic that we named.
    """
    mode, challenge = asked.get("hub.mode"), asked.get("hub.challenge", "")
    if asked.get("hub.topic") != one.topic:
        raise NotFound
    if mode == "denied":
        reason = text.plain(asked.get("hub.reason", ""))[:MOST_REASON]
        hubs.deny(conn, one.callback_id, reason or "The hub denied it.", now)
        return ""
    if mode != one.mode or not _CHALLENGE.fullmatch(challenge):
        raise NotFound
    if mode == "subscribe":
        hubs.confirm(conn, one.callback_id, _lease(asked), now)
    else:
        hubs.drop(conn, one.callback_id)
    return challenge


def _is_signed(body: bytes, secrets: Sequence[str], headers: Mapping[str, str]) -> bool:
    return any(push.is_signed(body, secret, headers) for secret in secrets)


async def take(
    db: Database,
    parsers: Parsers | None,
    one: HubSubscription,
    body: bytes,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    now: Callable[[], datetime],
) -> bool:
    """Stores what a hub pushed, if its signature is right. Returns whether the source is to be visited instead.

    Nobody is told that a signature is wrong, as the Recommendation has it: whoever guesses learns nothing.
    """
    if not await asyncio.to_thread(_is_signed, body, secrets, headers):
        log.warning("push.ignored", source=one.source.address, reason="its signature is missing or wrong")
        return False
    described = {name: headers[name] for name in _DESCRIBING if name in headers}
    pushed = Response(one.source.address, 200, described, body, now())
    return await receive(db, parsers, one, pushed, now) is None


def _lease(asked: Mapping[str, str]) -> timedelta:
    seconds = asked.get("hub.lease_seconds", "")
    return timedelta(seconds=int(seconds)) if _SECONDS.fullmatch(seconds) else push.LEASE
