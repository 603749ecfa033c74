"""WebSub, the subscriber's side: asks hubs to push, knows their signatures, and checks the signatures of pushes.

    1. a visit reads a feed that offers a hub          `record.heard_in`, `store.sources.hubs.learn`
    2. the hub is asked, now and before each lease ends  `ask_hubs`
    3. the hub makes sure that it was us               `api/websub.py`
    4. the hub pushes; the signature says it is the hub  `is_signed`
    5. what it pushed is read and stored as after a visit `crawl/push.py`

Polling goes on, only more rarely: what a push missed, or a crash lost, the next visit finds.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlencode

import structlog

from headwater.errors import BadInput, SourceFailure
from headwater.model import Request, Response
from headwater.store.db import Database
from headwater.store.sources import hubs
from headwater.store.sources.hubs import HubSubscription

PATH = "/websub/"
LEASE = timedelta(days=10)  # what is asked for; the hub decides
MOST_ASKED = 50  # at once
_FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
# From the strongest. Hubs that millions of feeds name sign with SHA-1 alone; as an HMAC it still holds.
_SIGNATURES = ("sha512", "sha384", "sha256", "sha1")
_HEADERS = ("x-hub-signature-256", "x-hub-signature")

log = structlog.get_logger(__name__)


async def ask_hubs(
    db: Database,
    fetch: Callable[[Request], Awaitable[Response]],
    public_url: str,
    secret_of: Callable[[str], str],
    now: Callable[[], datetime],
) -> int:
    """Ask every hub whose time has come, within one batch; returns how many.

    `secret_of` a callback's id is what its pushes are to be signed with.
    """
    due = await db.write(hubs.take_due, now(), MOST_ASKED)
    requests = [request_of(one, public_url, secret_of(one.callback_id)) for one in due]
    answers = await asyncio.gather(*(_ask(fetch, request) for request in requests))
    failures = [(one.callback_id, error) for one, error in zip(due, answers, strict=True) if error]
    if failures:
        await db.write(hubs.fail, failures)
    return len(due)


async def _ask(fetch: Callable[[Request], Awaitable[Response]], request: Request) -> str | None:
    """What went wrong, or None. That a hub accepts the request means nothing yet: it confirms at the callback."""
    try:
        answer = await fetch(request)
    except (SourceFailure, BadInput) as error:
        return error.detail
    return None if 200 <= answer.status < 300 else f"The hub refused. (HTTP {answer.status})"


def request_of(one: HubSubscription, public_url: str, secret: str) -> Request:
    """What is sent to the hub: to push this topic, or to push it no more. Pure."""
    form = {
        "hub.mode": one.mode,
        "hub.topic": one.topic,
        "hub.callback": public_url.rstrip("/") + PATH + one.callback_id,
    }
    if one.followed:
        form |= {"hub.secret": secret, "hub.lease_seconds": str(int(LEASE.total_seconds()))}
    return Request(one.hub, _FORM, "POST", urlencode(form).encode())


def is_signed(body: bytes, secret: str, headers: Mapping[str, str]) -> bool:
    """Whether the first signature that the push carries is the one its body has under our secret. Pure."""
    signature = next((headers[name] for name in _HEADERS if name in headers), "")
    method, _, given = signature.strip().partition("=")
    method = method.lower()
    if method not in _SIGNATURES or not given.isascii():
        return False
    return hmac.compare_digest(hmac.digest(secret.encode(), body, method).hex(), given.lower())
