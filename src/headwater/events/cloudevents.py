"""Events as CloudEvents 1.0 for the outside world: as one JSON document, or as headers beside the data."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from headwater.store.log.outbox import LoggedEvent

MEDIA_TYPE = "application/cloudevents+json"
_URI_SAFE = ":/?#[]@!$&'()*+,;=%~"


def envelope(event: LoggedEvent, source: str) -> bytes:
    """Returns the event as one JSON document. `source` names this instance: its public address or another name."""
    data = {"datacontenttype": "application/json", "data": msgspec.Raw(event.data.encode())}
    return msgspec.json.encode(_attributes(event, source) | data)


def attributes(event: LoggedEvent, source: str, prefix: str) -> dict[str, str]:
    """Returns the headers. They start with `ce-` in HTTP and with `ce_` in Kafka. All values are ASCII."""
    return {prefix + name: value for name, value in _attributes(event, source).items()}


def _attributes(event: LoggedEvent, source: str) -> dict[str, str]:
    found = {
        "specversion": "1.0",
        "id": event.event_id,
        "source": quote(source, safe=_URI_SAFE),
        "type": event.kind,
        "time": event.created_at.isoformat().replace("+00:00", "Z"),
        "partitionkey": event.key,
        # The specification asks for a sequence that sorts as text.
        "sequence": f"{event.position.xid:016x}{event.position.id:016x}",
        "dataversion": str(event.version),
    }
    return found | {"traceparent": event.traceparent} if event.traceparent else found
