"""`/api/webhooks`: where events are sent to, what was sent, and sending it again."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from headwater.app import webhooks
from headwater.app.shapes import PageJson, shaped
from headwater.app.webhooks import CreatedWebhookJson, DeliveryJson, WebhookJson, WebhooksJson
from headwater.http.auth import CurrentReader
from headwater.http.routes import Flag, Id, WantedPage, api_router, one_of, route
from headwater.http.state import WithParts
from headwater.store.people.webhooks import ChangedWebhook

MAX_KINDS = 100

router = api_router("webhooks", prefix="/api/webhooks")


Kind = Annotated[str, one_of(*webhooks.BY_NAME)]


class NewWebhook(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"address": "https://example.org/hook", "kinds": ["post.stored"]}}
    )

    address: str = Field(description="where events are sent to")
    kinds: list[Kind] = Field(default=[], max_length=MAX_KINDS, description="the kinds it gets; empty: every kind")


class WebhookChange(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"active": False}})

    address: str | None = Field(default=None, description="where events are sent to from now on")
    kinds: list[Kind] | None = Field(
        default=None, max_length=MAX_KINDS, description="the kinds it gets from now on; empty: every kind"
    )
    active: Flag | None = Field(default=None, description="false: pause it; true: resume it, even if it was gone")


@router.get("", **route("List your webhooks", "webhooks:read"))
async def list_webhooks(parts: WithParts, reader: CurrentReader) -> WebhooksJson:
    """With the state of each: active, paused, or gone (the server answered 410)."""
    found = await parts.db.read(webhooks.every, reader)
    return {"items": [shaped(WebhookJson, webhook) for webhook in found]}


@router.post("", status_code=201, **route("Send events to an address", "webhooks:write", 409))
async def add_webhook(parts: WithParts, reader: CurrentReader, wanted: NewWebhook) -> CreatedWebhookJson:
    """From now on, it gets the events of the sources you follow, and your own. `secret` is shown only once."""
    made = await parts.db.write(webhooks.add, reader, wanted.address, wanted.kinds, parts.seal, parts.now())
    return shaped(CreatedWebhookJson, made.webhook, secret=made.secret)


@router.get("/{webhook_id}", **route("Show a webhook and how it is doing", "webhooks:read"))
async def show_webhook(parts: WithParts, reader: CurrentReader, webhook_id: Id) -> WebhookJson:
    """With its last error, and since when it has been failing."""
    return shaped(WebhookJson, await parts.db.read(webhooks.find, reader, webhook_id))


@router.patch("/{webhook_id}", **route("Pause, resume or change a webhook", "webhooks:write"))
async def change_webhook(parts: WithParts, reader: CurrentReader, webhook_id: Id, wanted: WebhookChange) -> WebhookJson:
    """Only the given fields change. While it is paused, events are kept. When it is resumed, it gets them."""
    change = ChangedWebhook(**wanted.model_dump())
    changed = await parts.db.write(webhooks.change, reader, webhook_id, parts.now(), change)
    parts.new_events.send()
    return shaped(WebhookJson, changed)


@router.delete("/{webhook_id}", status_code=204, **route("Remove a webhook", "webhooks:write"))
async def remove_webhook(parts: WithParts, reader: CurrentReader, webhook_id: Id) -> None:
    """Its queue and the record of its deliveries are removed too."""
    await parts.db.write(webhooks.remove, reader, webhook_id)


@router.get("/{webhook_id}/deliveries", **route("List what was sent and what waits", "webhooks:read"))
async def list_deliveries(
    parts: WithParts, reader: CurrentReader, webhook_id: Id, page: WantedPage
) -> PageJson[DeliveryJson]:
    """Newest first."""
    _, log = await parts.db.read(webhooks.log_of, reader, webhook_id, before=page.last_id, limit=page.limit)
    return page.of(DeliveryJson, log, webhook_id=webhook_id)


@router.post("/{webhook_id}/test", status_code=202, **route("Send a ping to a webhook", "webhooks:write", 409))
async def test_webhook(parts: WithParts, reader: CurrentReader, webhook_id: Id) -> DeliveryJson:
    """A delivery of kind `ping`, signed like all others. The queue is tried at once, and the ping is at its end."""
    queued = await parts.db.write(webhooks.ping, reader, webhook_id, parts.now())
    parts.new_events.send()
    return shaped(DeliveryJson, queued.delivery, webhook_id=webhook_id)


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/replay",
    status_code=202,
    **route("Send an event again", "webhooks:write", 409),
)
async def replay_delivery(parts: WithParts, reader: CurrentReader, webhook_id: Id, delivery_id: Id) -> DeliveryJson:
    """It has the same `webhook-id` and goes before everything that waits."""
    queued = await parts.db.write(webhooks.replay, reader, webhook_id, delivery_id, parts.now())
    parts.new_events.send()
    return shaped(DeliveryJson, queued.delivery, webhook_id=webhook_id)
