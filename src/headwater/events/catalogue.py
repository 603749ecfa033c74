"""Every kind of event: one declaration each. `docs/reference/events.md` is generated from here.

To add a kind, declare it and call it where the change is made, inside the same transaction:

    outbox.append(conn, [SOURCE_ADDED(key=..., once=..., source_id=..., address=...)], now)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.model import Event, Reader


class Kind(NamedTuple):
    """A kind of event. `key` says what its order holds for; `payload` names its fields and what they mean."""

    name: str
    meaning: str
    key: str
    payload: dict[str, str]

    def __call__(self, *, key: object, once: str, reader: Reader | None = None, **payload: Any) -> Event:
        """The event; `once` tells this fact from every other of its kind, so that it is never published twice."""
        assert payload.keys() == self.payload.keys(), f"{self.name} has the fields {', '.join(self.payload)}"
        tenant_id, user_id = (reader.tenant_id, reader.user_id) if reader else (None, None)
        return Event(self.name, str(key), payload, f"{self.name}:{once}", tenant_id, user_id)


_SOURCE = {"source_id": "the source", "address": "its address"}
_POST = {
    "post_id": "the post",
    "source_id": "the source that published it",
    "source_post_id": "its identity within the source",
    "version": "1 for the first text, one more for each edit",
    "title": "its title",
    "url": "its address, or null",
    "created_at": "when it was published, ISO 8601",
}

POST_STORED = Kind("post.stored", "A post was seen for the first time and stored.", "source_id", _POST)
POST_CHANGED = Kind(
    "post.changed", "A stored post's text changed; the old one is kept as a version.", "source_id", _POST
)
SOURCE_ADDED = Kind("source.added", "A source is watched for the first time.", "source_id", _SOURCE)
SOURCE_FAILED = Kind(
    "source.failed",
    "A source that worked does not any more.",
    "source_id",
    {**_SOURCE, "status": "failing, blocked or empty", "error": "what happened, for people"},
)
SOURCE_RECOVERED = Kind("source.recovered", "A source that did not work works again.", "source_id", _SOURCE)
SOURCE_RETIRED = Kind(
    "source.retired", "A source is gone for good (410) and is no longer visited.", "source_id", _SOURCE
)
SUBSCRIBED = Kind("subscription.added", "A reader follows a source.", "user_id", _SOURCE)
UNSUBSCRIBED = Kind(
    "subscription.removed", "A reader no longer follows a source.", "user_id", {"source_id": "the source"}
)

KINDS: tuple[Kind, ...] = (
    POST_STORED,
    POST_CHANGED,
    SOURCE_ADDED,
    SOURCE_FAILED,
    SOURCE_RECOVERED,
    SOURCE_RETIRED,
    SUBSCRIBED,
    UNSUBSCRIBED,
)
