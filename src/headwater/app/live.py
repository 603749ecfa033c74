"""Following what happens, as it happens: where a listener begins, and what it may hear."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.errors import BadInput
from headwater.events import catalogue
from headwater.events.live import EventFilter, Listener, Live, ResumeToken, is_expired, read_resume_token
from headwater.model import Reader


class Joined(NamedTuple):
    """A listener, and what it has seen before. `is_lost`: what came after that is not kept any more."""

    listener: Listener
    seen: ResumeToken | None
    is_lost: bool

    @property
    def start(self) -> ResumeToken | None:
        """Where it goes on; None: it begins with what happens now."""
        return None if self.is_lost else self.seen


def seen_until(text: str | None) -> ResumeToken | None:
    """Reads the id of the last event that somebody has seen."""
    return read_resume_token(text) if text else None


def audience(reader: Reader, kinds: str | None) -> EventFilter:
    """Returns who listens, and to which kinds. `kinds` are names with commas between them; None: all."""
    return EventFilter(reader, _known(kinds) if kinds else None)


async def join(live: Live, who: EventFilter, seen: ResumeToken | None, now: datetime, kept_for: timedelta) -> Joined:
    """Begins to listen, from the mark on if what came after it is still kept."""
    is_lost = seen is not None and (is_expired(seen, now, kept_for) or seen.position > await live.end_of_log())
    return Joined(await live.join(who, None if is_lost else seen), seen, is_lost)


def _known(given: str) -> frozenset[str]:
    wanted = frozenset(kind.strip() for kind in given.split(","))
    if unknown := wanted - set(catalogue.BY_NAME):
        known = ", ".join(catalogue.BY_NAME)
        raise BadInput(f"kinds: there is no {', '.join(sorted(unknown))[:200]}. There are: {known}.")
    return wanted
