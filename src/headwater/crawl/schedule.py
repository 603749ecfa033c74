"""When to come again. Pure: takes the time and a number for the jitter, gives a time."""

from __future__ import annotations

from datetime import datetime, timedelta

LONGEST_WISH = timedelta(days=1)  # a feed's own ttl or cache lifetime is believed up to here
LONGEST_BACK_OFF = timedelta(days=1)
JITTER = 0.1


def next_check(
    now: datetime,
    interval: timedelta,
    *,
    chance: float,
    wishes: tuple[timedelta | None, ...] = (),
    retry_after: timedelta | None = None,
    failures: int = 0,
) -> datetime:
    """The latest of our interval, what the source wishes, and the back-off after failures; then up to 10 % jitter.

    `chance` is a random number in [0, 1). Back-off doubles with each failure, is capped, and never stops for good.
    """
    wait = interval
    for wish in wishes:
        if wish is not None:
            wait = max(wait, min(wish, LONGEST_WISH))
    if failures:
        wait = max(wait, min(interval * 2 ** min(failures - 1, 10), LONGEST_BACK_OFF))
    if retry_after is not None:
        wait = max(wait, retry_after)
    return now + wait * (1 + JITTER * chance)


def remaining(now: datetime, last_crawled_at: datetime | None, interval: timedelta) -> timedelta:
    """What is left of the interval since the last visit (D4)."""
    if last_crawled_at is None:
        return timedelta(0)
    return max(timedelta(0), last_crawled_at + interval - now)
