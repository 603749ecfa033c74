"""The pages about webhooks: where events are sent to, how that goes, adding, testing and sending again."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headwater.app import webhooks
from headwater.app.webhooks import Created
from headwater.errors import BadInput, NotPossibleNow
from headwater.http import routes
from headwater.http.auth import CurrentReader, needs
from headwater.http.routes import Checkbox, Id, Text, Texts
from headwater.http.state import WithParts
from headwater.model import Reader
from headwater.store.people.webhooks import ChangedWebhook, Delivery, Webhook
from headwater.web.formatting import StateLabel
from headwater.web.view import go, page_router, show

PAGE = 50

router = page_router()

_STATES = {
    "new": StateLabel("Nothing sent yet", "quiet", "circle"),
    "ok": StateLabel("Working", "good", "check"),
    "retrying": StateLabel("Trying again", "busy", "refresh"),
    "failing": StateLabel("Failing", "bad", "alert"),
    "paused": StateLabel("Paused", "quiet", "circle"),
    "gone": StateLabel("Gone for good", "bad", "archive"),
    "waiting": StateLabel("Waiting", "busy", "circle"),
    "delivered": StateLabel("Delivered", "good", "check"),
    "failed": StateLabel("Failed", "bad", "alert"),
}


def state_of(one: Webhook | Delivery) -> StateLabel:
    return _STATES[one.status if isinstance(one, Webhook) else one.state]


@router.get("/webhooks", dependencies=[needs("webhooks:read")])
async def webhooks_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    return await _webhooks_page(request, parts, reader)


async def _webhooks_page(
    request: Request,
    parts: WithParts,
    reader: Reader,
    *,
    made: Created | None = None,
    wrong: BadInput | NotPossibleNow | None = None,
    typed: str = "",
    chosen: list[str] | None = None,
) -> Response:
    found = await parts.db.read(webhooks.every, reader)
    return show(
        request,
        "webhooks.html",
        wrong.status if wrong else 200,
        webhooks=found,
        state_of=state_of,
        kinds=webhooks.KINDS,
        made=made,
        wrong=wrong,
        typed=typed,
        chosen=chosen or [],
        section="webhooks",
    )


@router.post("/webhooks", dependencies=[needs("webhooks:write")])
async def add(
    request: Request, parts: WithParts, reader: CurrentReader, address: Text = "", kinds: Texts = None
) -> Response:
    """Answers with the page itself instead of a redirect: the secret is shown here and never again."""
    try:
        made = await parts.db.write(webhooks.add, reader, address, kinds or [], parts.seal, parts.now())
    except (BadInput, NotPossibleNow) as error:
        return await _webhooks_page(request, parts, reader, wrong=error, typed=address, chosen=kinds)
    return await _webhooks_page(request, parts, reader, made=made)


@router.get("/webhooks/{webhook_id}", dependencies=[needs("webhooks:read")])
async def webhook_page(
    request: Request, parts: WithParts, reader: CurrentReader, webhook_id: Id, cursor: str | None = None
) -> Response:
    before = routes.id_in(cursor)
    webhook, found = await parts.db.read(webhooks.log_of, reader, webhook_id, before=before, limit=PAGE + 1)
    log, older = routes.cut_page(found, PAGE, routes.cursor_of_row)
    return show(
        request,
        "webhook.html",
        webhook=webhook,
        log=log,
        older=older and f"/webhooks/{webhook_id}?cursor={older}",
        state_of=state_of,
        section="webhooks",
    )


@router.post("/webhooks/{webhook_id}/test", dependencies=[needs("webhooks:write")])
async def send_ping(parts: WithParts, reader: CurrentReader, webhook_id: Id) -> Response:
    await parts.db.write(webhooks.ping, reader, webhook_id, parts.now())
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")


@router.post("/webhooks/{webhook_id}/active", dependencies=[needs("webhooks:write")])
async def pause_or_resume(parts: WithParts, reader: CurrentReader, webhook_id: Id, active: Checkbox) -> Response:
    await parts.db.write(webhooks.change, reader, webhook_id, parts.now(), ChangedWebhook(active=active))
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")


@router.post("/webhooks/{webhook_id}/remove", dependencies=[needs("webhooks:write")])
async def remove(parts: WithParts, reader: CurrentReader, webhook_id: Id) -> Response:
    await parts.db.write(webhooks.remove, reader, webhook_id)
    return go("/webhooks")


@router.post("/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", dependencies=[needs("webhooks:write")])
async def replay(parts: WithParts, reader: CurrentReader, webhook_id: Id, delivery_id: Id) -> Response:
    await parts.db.write(webhooks.replay, reader, webhook_id, delivery_id, parts.now())
    parts.new_events.send()
    return go(f"/webhooks/{webhook_id}")
