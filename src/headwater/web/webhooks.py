"""The pages about webhooks: where events are sent to, how that goes, adding, testing and sending again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from headwater.app import webhooks as asked
from headwater.consumers import webhooks as sendable
from headwater.errors import BadInput
from headwater.http.auth import Asking, WithParts
from headwater.http.cursors import id_in
from headwater.http.cursors import of_id as cursor_of
from headwater.http.inputs import Id
from headwater.model import Reader
from headwater.store.people import webhooks
from headwater.store.people.webhooks import Delivery, Webhook
from headwater.web.formatting import ShownState
from headwater.web.view import go, show

PAGE = 50

router = APIRouter()

_STATES = {
    "new": ShownState("Nothing sent yet", "quiet", "circle"),
    "ok": ShownState("Working", "good", "check"),
    "retrying": ShownState("Trying again", "busy", "refresh"),
    "failing": ShownState("Failing", "bad", "alert"),
    "paused": ShownState("Paused", "quiet", "circle"),
    "gone": ShownState("Gone for good", "bad", "archive"),
    "waiting": ShownState("Waiting", "busy", "circle"),
    "delivered": ShownState("Delivered", "good", "check"),
    "failed": ShownState("Failed", "bad", "alert"),
}


def state_of(one: Webhook | Delivery) -> ShownState:
    return _STATES[one.status if isinstance(one, Webhook) else one.state]


@router.get("/webhooks")
async def webhooks_page(request: Request, parts: WithParts, reader: Asking) -> Response:
    return await _webhooks_page(request, parts, reader)


async def _webhooks_page(
    request: Request,
    parts: WithParts,
    reader: Reader,
    *,
    made: asked.Created | None = None,
    wrong: BadInput | None = None,
    typed: str = "",
    chosen: list[str] | None = None,
) -> Response:
    found = await parts.db.read(webhooks.of_reader, reader)
    return show(
        request,
        "webhooks.html",
        wrong.status if wrong else 200,
        webhooks=found,
        state_of=state_of,
        kinds=sendable.KINDS,
        made=made,
        wrong=wrong,
        typed=typed,
        chosen=chosen or [],
        section="webhooks",
    )


@router.post("/webhooks")
async def add(
    request: Request,
    parts: WithParts,
    reader: Asking,
    address: Annotated[str, Form()] = "",
    kinds: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """The answer is the page itself and no redirect: the secret is shown here and never again."""
    try:
        made = await parts.db.write(asked.add, reader, address, kinds or [], parts.seal, parts.now())
    except BadInput as error:
        return await _webhooks_page(request, parts, reader, wrong=error, typed=address, chosen=kinds)
    return await _webhooks_page(request, parts, reader, made=made)


@router.get("/webhooks/{webhook_id}")
async def webhook_page(
    request: Request, parts: WithParts, reader: Asking, webhook_id: Id, cursor: str | None = None
) -> Response:
    webhook = await parts.db.read(asked.find, reader, webhook_id)
    log = await parts.db.read(webhooks.log_of, webhook, before=id_in(cursor), limit=PAGE + 1)
    older = cursor_of(log[PAGE - 1].id) if len(log) > PAGE else None
    return show(
        request,
        "webhook.html",
        webhook=webhook,
        log=log[:PAGE],
        older=older,
        state_of=state_of,
        section="webhooks",
    )


@router.post("/webhooks/{webhook_id}/test")
async def send_ping(parts: WithParts, reader: Asking, webhook_id: Id) -> Response:
    await parts.db.write(asked.ping, reader, webhook_id, parts.now())
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")


@router.post("/webhooks/{webhook_id}/active")
async def pause_or_resume(
    parts: WithParts, reader: Asking, webhook_id: Id, active: Annotated[bool, Form()]
) -> Response:
    await parts.db.write(asked.change, reader, webhook_id, parts.now(), active=active)
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")


@router.post("/webhooks/{webhook_id}/remove")
async def remove(parts: WithParts, reader: Asking, webhook_id: Id) -> Response:
    await parts.db.write(asked.remove, reader, webhook_id)
    return go("/webhooks")


@router.post("/webhooks/{webhook_id}/deliveries/{delivery_id}/replay")
async def replay(parts: WithParts, reader: Asking, webhook_id: Id, delivery_id: Id) -> Response:
    await parts.db.write(asked.replay, reader, webhook_id, delivery_id, parts.now())
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")
