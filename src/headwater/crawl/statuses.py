"""What an HTTP status means for a visit."""

from __future__ import annotations

from datetime import timedelta

from headwater.errors import StatusRefused
from headwater.fetch.politeness import retry_after
from headwater.model import Response

BUSY = (429, 503)
GONE = (404, 410)


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
