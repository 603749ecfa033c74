"""WebSub, the subscriber's side: asks hubs to push, and checks the signatures of pushes.

    1. a visit finds a feed that offers a hub                    `heard_in` in `crawl/record.py`
    2. the hub is asked to push, and again before a lease ends   `ask_hubs`
    3. the hub verifies that it was us                           `api/websub.py`
    4. the hub pushes, and its signature is checked              `is_signed`
    5. what it pushed is parsed and stored as after a visit      `receive` in `crawl/record.py`

Polling goes on, only less often. The next visit finds what a push missed or a crash lost.
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
LEASE = timedelta(days=10)  # what we ask for; the hub decides
MOST_ASKED = 50  # at once
_FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
# Strongest first. Hubs that millions of feeds name only sign with SHA-1, which is still safe in an HMAC.
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
    """Asks one batch of the hubs that are due. Returns how many.

    `secret_of` returns the secret with which a hub signs its pushes to a callback.
    """
    due = await db.write(hubs.take_due, now(), MOST_ASKED)
    requests = [request_of(one, public_url, secret_of(one.callback_id)) for one in due]
    answers = await asyncio.gather(*(_ask(fetch, request) for request in requests))
    failures = [(one.callback_id, error) for one, error in zip(due, answers, strict=True) if error]
    if failures:
        await db.write(hubs.fail, failures)
    return len(due)


async def _ask(fetch: Callable[[Request], Awaitable[Response]], request: Request) -> str | None:
    """Returns what went wrong, or None. A hub that accepts the request still has to confirm it at the callback."""
    try:
        answer = await fetch(request)
    except (SourceFailure, BadInput) as error:
        return error.detail
    return None if 200 <= answer.status < 300 else f"The hub refused. (HTTP {answer.status})"


def request_of(one: HubSubscription, public_url: str, secret: str) -> Request:
    """Returns the request that asks a hub to push a topic, or to stop pushing it. Pure."""
    form = {
        "hub.mode": one.mode,
        "hub.topic": one.topic,
        "hub.callback": public_url.rstrip("/") + PATH + one.callback_id,
    }
    if one.followed:
        form |= {"hub.secret": secret, "hub.lease_seconds": str(int(LEASE.total_seconds()))}
    return Request(one.hub, _FORM, "POST", urlencode(form).encode())


def is_signed(body: bytes, secret: str, headers: Mapping[str, str]) -> bool:
    """Whether the first signature of a push is the one that our secret gives for its body. Pure."""
    signature = next((headers[name] for name in _HEADERS if name in headers), "")
    method, _, given = signature.strip().partition("=")
    method = method.lower()
    if method not in _SIGNATURES or not given.isascii():
        return False
    return hmac.compare_digest(hmac.digest(secret.encode(), body, method).hex(), given.lower())
