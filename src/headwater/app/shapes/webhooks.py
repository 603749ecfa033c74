"""How webhooks and deliveries look as JSON, and what clients send to make and change them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from headwater.app.shapes import Time, iso, iso_or_none
from headwater.app.webhooks import Created
from headwater.store.people.webhooks import Delivery, Webhook

MAX_KINDS = 100


class NewWebhook(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"address": "https://example.org/hook", "kinds": ["post.stored"]}}
    )

    address: str = Field(description="where events are sent to")
    kinds: list[str] = Field(default=[], max_length=MAX_KINDS, description="the kinds it gets; empty: every kind")


class WebhookChange(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"active": False}})

    address: str | None = Field(default=None, description="where events are sent to from now on")
    kinds: list[str] | None = Field(
        default=None, max_length=MAX_KINDS, description="the kinds it gets from now on; empty: every kind"
    )
    active: bool | None = Field(default=None, description="false: pause it; true: resume it, even if it was gone")


class WebhookJson(TypedDict):
    """Where events are sent to, and how that goes."""

    id: int
    address: str
    kinds: Annotated[list[str], Field(description="the kinds it gets; empty: every kind")]
    status: Annotated[str, Field(description="new, ok, retrying, failing, paused or gone")]
    created_at: Time
    waiting: Annotated[int, Field(description="how many events wait to be sent")]
    next_try_at: Time | None
    failures: Annotated[int, Field(description="failed attempts in a row")]
    failing_since: Time | None
    last_error: str | None
    last_delivered_at: Time | None


class CreatedWebhookJson(WebhookJson):
    """A new webhook with its secret, which is shown only here."""

    secret: Annotated[str, Field(description="what messages are signed with; keep it")]


class WebhooksJson(TypedDict):
    """All your webhooks."""

    items: list[WebhookJson]


class DeliveryJson(TypedDict):
    """An event on its way to a webhook."""

    id: int
    webhook_id: int
    event_id: Annotated[str, Field(description="the `webhook-id` it is sent with, the same each time")]
    kind: str
    state: Annotated[str, Field(description="waiting, delivered or failed")]
    created_at: Time
    attempts: int
    last_tried_at: Time | None
    seconds: Annotated[float | None, Field(description="how long the last attempt took")]
    http_status: int | None
    error: str | None
    settled_at: Time | None
    next_try_at: Annotated[Time | None, Field(description="of the first that waits; the others follow it in order")]


def webhook_json(webhook: Webhook) -> WebhookJson:
    return {
        "id": webhook.id,
        "address": webhook.address,
        "kinds": webhook.kinds,
        "status": webhook.status,
        "created_at": iso(webhook.created_at),
        "waiting": webhook.waiting,
        "next_try_at": iso_or_none(webhook.next_try_at),
        "failures": webhook.failures,
        "failing_since": iso_or_none(webhook.failing_since),
        "last_error": webhook.last_error,
        "last_delivered_at": iso_or_none(webhook.last_delivered_at),
    }


def created_json(made: Created) -> CreatedWebhookJson:
    return {**webhook_json(made.webhook), "secret": made.secret}


def delivery_json(webhook: Webhook, delivery: Delivery) -> DeliveryJson:
    return {
        "id": delivery.id,
        "webhook_id": webhook.id,
        "event_id": delivery.event_id,
        "kind": delivery.kind,
        "state": delivery.state,
        "created_at": iso(delivery.created_at),
        "attempts": delivery.attempts,
        "last_tried_at": iso_or_none(delivery.last_tried_at),
        "seconds": delivery.seconds,
        "http_status": delivery.http_status,
        "error": delivery.error,
        "settled_at": iso_or_none(delivery.settled_at),
        "next_try_at": iso_or_none(delivery.next_try_at),
    }


_WEBHOOK: dict[str, Any] = {
    "id": 3,
    "address": "https://example.org/hook",
    "kinds": ["post.stored"],
    "status": "ok",
    "created_at": "2026-01-05T08:00:00Z",
    "waiting": 0,
    "next_try_at": None,
    "failures": 0,
    "failing_since": None,
    "last_error": None,
    "last_delivered_at": "2026-01-07T09:30:02Z",
}
_DELIVERY: dict[str, Any] = {
    "id": 912,
    "webhook_id": 3,
    "event_id": "019b97a0-5d2c-7c1e-9f0a-3b8d1c2e4f60",
    "kind": "post.stored",
    "state": "delivered",
    "created_at": "2026-01-07T09:30:01Z",
    "attempts": 1,
    "last_tried_at": "2026-01-07T09:30:02Z",
    "seconds": 0.08,
    "http_status": 204,
    "error": None,
    "settled_at": "2026-01-07T09:30:02Z",
    "next_try_at": None,
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "WebhookJson": _WEBHOOK,
    "CreatedWebhookJson": {
        **_WEBHOOK,
        "status": "new",
        "last_delivered_at": None,
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    },
    "WebhooksJson": {"items": [_WEBHOOK]},
    "DeliveryJson": _DELIVERY,
}
