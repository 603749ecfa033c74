"""`/api/webhooks`: where events are sent to, what was sent, and sending it again."""

from __future__ import annotations

from fastapi import APIRouter

from headwater.app import webhooks as asked
from headwater.app.shapes import PageJson
from headwater.app.shapes.webhooks import (
    CreatedWebhookJson,
    DeliveryJson,
    NewWebhook,
    WebhookChange,
    WebhookJson,
    WebhooksJson,
    created_json,
    delivery_json,
    webhook_json,
)
from headwater.http.auth import Asking, WithParts
from headwater.http.cursors import id_in
from headwater.http.cursors import of_id as cursor_of
from headwater.http.inputs import Cursor, Id, Limit
from headwater.store.people import webhooks

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])


@router.get("", summary="List your webhooks")
async def list_webhooks(parts: WithParts, reader: Asking) -> WebhooksJson:
    return {"items": [webhook_json(webhook) for webhook in await parts.db.read(webhooks.of_reader, reader)]}


@router.post("", status_code=201, summary="Send events to an address")
async def add_webhook(parts: WithParts, reader: Asking, wanted: NewWebhook) -> CreatedWebhookJson:
    """It gets the events of the sources you follow, and your own, from now on. `secret` is shown only this once."""
    made = await parts.db.write(asked.add, reader, wanted.address, wanted.kinds, parts.seal, parts.now())
    return created_json(made)


@router.get("/{webhook_id}", summary="Show a webhook and how it is doing")
async def show_webhook(parts: WithParts, reader: Asking, webhook_id: Id) -> WebhookJson:
    return webhook_json(await parts.db.read(asked.find, reader, webhook_id))


@router.patch("/{webhook_id}", summary="Pause, resume or change a webhook")
async def change_webhook(parts: WithParts, reader: Asking, webhook_id: Id, wanted: WebhookChange) -> WebhookJson:
    """Only the fields that are given change. While it is paused, events gather; resumed, it gets them."""
    changed = await parts.db.write(asked.change, reader, webhook_id, parts.now(), **wanted.model_dump())
    parts.new_events.send()
    return webhook_json(changed)


@router.delete("/{webhook_id}", status_code=204, summary="Remove a webhook")
async def remove_webhook(parts: WithParts, reader: Asking, webhook_id: Id) -> None:
    """What waits for it, and the record of what was sent, go with it."""
    await parts.db.write(asked.remove, reader, webhook_id)


@router.get("/{webhook_id}/deliveries", summary="List what was sent and what waits")
async def list_deliveries(
    parts: WithParts, reader: Asking, webhook_id: Id, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[DeliveryJson]:
    """The newest first."""
    webhook = await parts.db.read(asked.find, reader, webhook_id)
    log = await parts.db.read(webhooks.log_of, webhook, before=id_in(cursor), limit=limit + 1)
    more = cursor_of(log[limit - 1].id) if len(log) > limit else None
    return {"items": [delivery_json(webhook, delivery) for delivery in log[:limit]], "next_cursor": more}


@router.post("/{webhook_id}/test", status_code=202, summary="Send a ping to a webhook")
async def test_webhook(parts: WithParts, reader: Asking, webhook_id: Id) -> DeliveryJson:
    """It is a delivery of kind `ping`, signed as all are. The queue is tried at once; the ping comes at its end."""
    queued = await parts.db.write(asked.ping, reader, webhook_id, parts.now())
    parts.new_events.send()
    return delivery_json(*queued)


@router.post("/{webhook_id}/deliveries/{delivery_id}/replay", status_code=202, summary="Send an event again")
async def replay_delivery(parts: WithParts, reader: Asking, webhook_id: Id, delivery_id: Id) -> DeliveryJson:
    """It is sent under the same `webhook-id`, before all that waits."""
    queued = await parts.db.write(asked.replay, reader, webhook_id, delivery_id, parts.now())
    parts.new_events.send()
    return delivery_json(*queued)
