"""Webhooks and what was sent to them."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time


class WebhookJson(TypedDict):
    """Where events are sent to, and how that goes."""

    id: Annotated[int, Example(3)]
    address: Annotated[str, Example("https://example.org/hook")]
    kinds: Annotated[list[str], Example(["post.stored"], "the kinds it gets; empty: every kind")]
    status: Annotated[str, Example("ok", "new, ok, retrying, failing, paused or gone")]
    created_at: Annotated[Time, Example("2026-01-05T08:00:00Z")]
    waiting: Annotated[int, Example(0, "how many events wait to be sent")]
    next_try_at: Annotated[Time | None, Example(None)]
    failures: Annotated[int, Example(0, "failed attempts in a row")]
    failing_since: Annotated[Time | None, Example(None)]
    last_error: Annotated[str | None, Example(None)]
    last_delivered_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]


class CreatedWebhookJson(WebhookJson):
    """A new webhook with its secret, which is shown only here."""

    secret: Annotated[str, Example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "what messages are signed with; keep it")]


class WebhooksJson(TypedDict):
    """All your webhooks."""

    items: list[WebhookJson]


class DeliveryJson(TypedDict):
    """An event on its way to a webhook."""

    id: Annotated[int, Example(912)]
    webhook_id: Annotated[int, Example(3)]
    event_id: Annotated[
        str,
        Example("019b97a0-5d2c-7c1e-9f0a-3b8d1c2e4f60", "the `webhook-id` it is sent with, the same each time"),
    ]
    kind: Annotated[str, Example("post.stored")]
    state: Annotated[str, Example("delivered", "waiting, delivered or failed")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    attempts: Annotated[int, Example(1)]
    last_tried_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    seconds: Annotated[float | None, Example(0.08, "how long the last attempt took")]
    http_status: Annotated[int | None, Example(204)]
    error: Annotated[str | None, Example(None)]
    settled_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    next_try_at: Annotated[Time | None, Example(None, "of the first that waits; the others follow it in order")]
