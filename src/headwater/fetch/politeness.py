"""What an answer's headers say about when to come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=1)
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_MAX_AGE = re.compile(r"""(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,20})(?![0-9])""")
_NOT_TO_BE_KEPT = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:$|[,\s=])")


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
