"""What the status and the headers of an answer ask of us: refusals, pauses, and when to come back.

How a 429 is handled. `judge` raises StatusRefused with what Retry-After says. `failed` in `crawl/visit/steps.py` makes
it a visit that does not count against the source and is not repeated before that time. `pause_of` says for how long the
whole host is left alone: the visit carries it to the store, and no process claims a source of that host before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from headwater.errors import SourceFailure, StatusRefused
from headwater.model import Response

BUSY = (429, 503)
GONE = (404, 410)

LONGEST = timedelta(days=1)
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_MAX_AGE = re.compile(r"""(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,20})(?![0-9])""")
_NOT_CACHED = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:$|[,\s=])")


def judge(response: Response) -> None:
    """Raises StatusRefused if the status means that there is no usable answer."""
    status = response.status
    if status == 200 or status == 304:
        return
    advice = {
        401: "The server wants a user name and password for this address.",
        403: "The server does not let us in.",
        404: "There is nothing at this address.",
        410: "The server says that this source is gone for good. It is not visited any more.",
        429: "The server asks us to come less often.",
    }.get(status, "The server has a problem." if status >= 500 else "The server refused.")
    raise StatusRefused(f"{advice} (HTTP {status})", http_status=status, retry_after=retry_after(response))


def pause_of(error: SourceFailure) -> timedelta | None:
    """Returns how long the host wants no requests at all; None if it did not ask for a pause."""
    pause = error.facts.get("retry_after")
    return pause if error.facts.get("http_status") in BUSY and isinstance(pause, timedelta) else None


def retry_after(response: Response) -> timedelta | None:
    """Returns how long Retry-After asks us to stay away; None if it does not, or names a time in the past."""
    value = response.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return _clamped(float(value))
    moment = _moment(value)
    return _clamped((moment - response.received_at).total_seconds()) if moment else None


def cache_lifetime(response: Response) -> timedelta | None:
    """Returns how long the server says the answer stays fresh; None if it does not say, or forbids caching."""
    headers = response.headers
    control = headers.get("cache-control", "").lower()
    if _NOT_CACHED.search(control):
        return None
    age = _MAX_AGE.search(control)
    if age:
        return _clamped(int(age[1]) - _age(headers))
    expires = _moment(headers.get("expires", ""))
    if expires is None:
        return None
    # Both dates come from the server's clock, which may be off by hours. Their difference is not.
    return _clamped((expires - (_moment(headers.get("date", "")) or response.received_at)).total_seconds())


def _age(headers: Mapping[str, str]) -> float:
    """Returns the seconds that the answer has already spent in caches."""
    value = headers.get("age", "").strip()
    return float(value) if _SECONDS.fullmatch(value) else 0


def _clamped(seconds: float) -> timedelta | None:
    return timedelta(seconds=min(seconds, LONGEST.total_seconds())) if seconds > 0 else None


def _moment(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
