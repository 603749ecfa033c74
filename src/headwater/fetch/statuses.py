"""What the status and the headers of an answer ask of us: refusals, pauses, and when to come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from headwater.errors import StatusRefused
from headwater.model import Response

BUSY = (429, 503)
GONE = (404, 410)

LONGEST = timedelta(days=1)
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_MAX_AGE = re.compile(r"""(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,20})(?![0-9])""")
_NOT_TO_BE_KEPT = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:$|[,\s=])")


def judge(response: Response) -> None:
    """Raise StatusRefused where the status is not an answer we can use."""
    status = response.status
    if status == 200 or status == 304:
        return
    wait = wanted_pause(response)
    advice = {
        401: "The server wants a name and password for this address.",
        403: "The server does not let us in.",
        404: "There is nothing at this address.",
        410: "The server says that this source is gone for good. It is not visited any more.",
        429: "The server asks us to come less often.",
    }.get(status, "The server has a problem." if status >= 500 else "The server refused.")
    raise StatusRefused(f"{advice} (HTTP {status})", http_status=status, retry_after=wait)


def wanted_pause(response: Response) -> timedelta | None:
    """How long the server asks to be left alone, if it does."""
    return retry_after(response.headers, response.received_at)


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long the server asks us to stay away; None if it does not, or names a time that has passed."""
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return _clamped(float(value))
    moment = _moment(value)
    return _clamped((moment - now).total_seconds()) if moment else None


def cache_lifetime(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long the server says this answer stays good; None if it does not say, or says it must not be kept."""
    control = headers.get("cache-control", "").lower()
    if _NOT_TO_BE_KEPT.search(control):
        return None
    age = _MAX_AGE.search(control)
    if age:
        return _clamped(int(age[1]) - _age(headers))
    expires = _moment(headers.get("expires", ""))
    if expires is None:
        return None
    # Both dates are of the server's clock, which may be off by hours; their difference is not.
    return _clamped((expires - (_moment(headers.get("date", "")) or now)).total_seconds())


def _age(headers: Mapping[str, str]) -> float:
    """Seconds that the answer has already spent in a cache on the way."""
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
