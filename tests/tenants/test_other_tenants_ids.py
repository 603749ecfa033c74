"""Every route and verb, of API and pages, answers for another tenant's ids as for ids that do not exist (H68)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, select

from api.running import Client, Running, routes
from headwater.accounts import tokens
from headwater.api.document import openapi
from headwater.model import Reader
from headwater.store.tables import metadata
from support.people import browser_of, program_of
from tenants.contract import Ids
from tenants.two_tenants import fill

_NO_TASK = "01900000-0000-7000-8000-000000000000"
UNKNOWN = Ids(*range(999_001, 999_010), _NO_TASK, _NO_TASK, "f" * 64, "f" * 32, "unknown")
# Which of a tenant's ids stands for a parameter of a path.
OF_EVERYBODY = {"key"}  # of a provider that people sign in at
PARAMETERS = {
    "source_id": "source_id",
    "feed_id": "source_id",
    "post_id": "post_id",
    "group_id": "post_id",
    "story_id": "post_id",
    "tweet_id": "post_id",
    "webhook_id": "webhook_id",
    "delivery_id": "delivery_id",
    "task_id": "task_id",
    "trace": "task_id",  # a trace is nobody's; neither is known
    "letter_id": "delivery_id",
    "user_id": "user_id",
    "token_id": "token_id",
    "session_id": "token_id",
    "invitation_id": "invitation_id",
    "content_hash": "content_hash",
    "miner_id": "miner_id",
    "trade_id": "trade_id",
    "identity_id": "identity_id",
}
# What is sent, or else the body would be refused before the id is looked at.
BODIES = {
    ("patch", "/api/sources/{source_id}"): {"folder": "mine"},
    ("patch", "/api/posts/{post_id}"): {"read": True, "starred": True},
    ("put", "/api/folding/sources/{source_id}"): {"fold": False},
    ("patch", "/api/webhooks/{webhook_id}"): {"active": False},
    ("patch", "/api/people/{user_id}"): {"role": "viewer"},
    ("patch", "/api/miners/{miner_id}"): {"quantity": 2},
    ("post", "/api/treasury/trades/{trade_id}/correction"): {"reason": "mistyped"},
}
# What those who run the instance do with tenants, which are theirs to run.
OF_THE_INSTANCE = {("patch", "/api/tenants/{tenant_id}")}
_PARAMETER = re.compile(r"\{(\w+)[^}]*\}")


def test_another_tenants_ids_are_unknown_on_every_route_and_verb(on_both: Running) -> None:  # H68
    ours, _, _, other = on_both.parts.db.write_now(fill)
    token = on_both.parts.db.write_now(tokens.issue, ours, "api", "walk", on_both.parts.now())
    client = Client(on_both.port, {"Authorization": f"Bearer {token}"})
    document: dict[str, Any] = openapi()
    walked = 0
    for path, verbs in document["paths"].items():
        if not _PARAMETER.search(path):
            continue
        for verb in set(verbs) & {"get", "post", "put", "patch", "delete"}:
            if (verb, path) in OF_THE_INSTANCE:
                continue
            body = BODIES.get((verb, path))
            assert body or "requestBody" not in verbs[verb], f"BODIES has nothing to send to {verb} {path}"
            theirs, unknown = (_answer(client, verb, path, ids, body) for ids in (other, UNKNOWN))
            assert theirs == unknown, f"{verb} {path}"
            assert theirs[0] in (404, 405), f"{verb} {path}: {theirs}"
            walked += 1
    assert walked > 20


def _answer(client: Client, verb: str, path: str, ids: Ids, body: Any) -> tuple[int, str]:
    """The status, and the answer without the ids that were asked for."""
    named = {name: str(getattr(ids, PARAMETERS[name])) for name in _PARAMETER.findall(path)}
    concrete = _PARAMETER.sub(lambda found: named[found[1]], path)
    answer = client(verb.upper(), concrete, body, Idempotency_Key=uuid4().hex)
    words = answer.text
    for value in named.values():
        words = re.sub(rf"\b{value}\b", "*", words)
    return answer.status, re.sub(r'"(instance|trace_id|request_id)":"[^"]*"', "", words)


# Where a query or a body has an id: what is sent, made from the ids.
SENT: dict[tuple[str, str, str], Callable[[Ids], tuple[str, Any]]] = {
    ("post", "/api/queue/schedule-feed", "feed_id"): lambda ids: ("", {"feed_id": ids.source_id}),
    ("get", "/api/stream", "source_id"): lambda ids: (f"?source_id={ids.source_id}", None),
    ("get", "/api/posts", "source_id"): lambda ids: (f"?source_id={ids.source_id}", None),
    ("post", "/api/posts/mark", "ids"): lambda ids: ("", {"ids": [ids.post_id], "read": True, "starred": True}),
    ("post", "/api/deduplicate/batch", "tweet_ids"): lambda ids: ("", {"tweet_ids": [ids.post_id]}),
    ("post", "/api/telemetry", "miner_id"): lambda ids: (
        "",
        {"readings": [{"miner_id": ids.miner_id, "at": "2026-01-01T00:00:00Z", "hashrate_th": 1.0}]},
    ),
    ("get", "/api/telemetry", "miner_id"): lambda ids: (f"?miner_id={ids.miner_id}", None),
    ("get", "/api/audit", "user_id"): lambda ids: (f"?user_id={ids.user_id}", None),
}
# Ids of what belongs to no tenant: an event of the log, a program that signs in, the shared catalogue of machines.
NOBODYS = {"last_event_id", "event_id", "client_id", "miner_model_id"}


def sent_ids(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Every id in a query or a body of the API: verb, path and name."""

    def names(schema: dict[str, Any]) -> Iterator[str]:
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        for part in (*schema.get("anyOf", ()), *schema.get("allOf", ()), *filter(None, [schema.get("items")])):
            yield from names(part)
        for name, part in schema.get("properties", {}).items():
            yield name
            yield from names(part)

    for path, verbs in document["paths"].items():
        for verb in set(verbs) & {"get", "post", "put", "patch", "delete"}:
            found = [one["name"] for one in verbs[verb].get("parameters", []) if one["in"] == "query"]
            for content in verbs[verb].get("requestBody", {}).get("content", {}).values():
                found += names(content.get("schema", {}))
            yield from ((verb, path, name) for name in found if re.search(r"(^|_)ids?$", name) and name not in NOBODYS)


def test_another_tenants_ids_in_a_query_or_a_body_are_unknown(on_both: Running) -> None:  # H68
    ours, theirs, _, other = on_both.parts.db.write_now(fill)
    client = program_of(on_both, ours)
    assert set(sent_ids(openapi())) == SENT.keys(), "say in SENT what is sent"
    before = on_both.parts.db.read_now(of_tenant, theirs)
    for (verb, path, name), sends in SENT.items():
        answers = []
        for ids in (other, UNKNOWN):
            query, body = sends(ids)
            answer = client(verb.upper(), path + query, body)
            words = answer.text
            for value in ids:
                words = re.sub(rf"\b{re.escape(str(value))}\b", "*", words)
            answers.append((answer.status, re.sub(r'"(instance|trace_id|request_id|task_id)":"[^"]*"', "", words)))
        assert answers[0] == answers[1], f"{verb} {path} {name}"
        assert "theirs" not in answers[0][1], f"{verb} {path} {name}"
    assert on_both.parts.db.read_now(of_tenant, theirs) == before


def of_tenant(conn: Connection, reader: Reader) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a tenant."""
    found = {}
    for table in metadata.sorted_tables:
        if "tenant_id" in table.c:
            rows = conn.execute(select(table).where(table.c.tenant_id == reader.tenant_id))
            found[table.name] = sorted((tuple(row) for row in rows), key=repr)
    return found


FORMS = {"/people/{user_id}/role": b"role=viewer", "/sources/{source_id}/interval": b"minutes=60",
         "/fleet/trades/{trade_id}/correction": b"action=cancel&side=buy&btc=1&usd=1&idempotency_key=walk",
         "/webhooks/{webhook_id}/active": b"active=false", "/posts/{post_id}/mark": b"read=true"}  # fmt: skip


def test_another_tenants_ids_are_unknown_on_every_page(on_both: Running) -> None:  # H68
    ours, theirs, _, other = on_both.parts.db.write_now(fill)
    browser = browser_of(on_both, ours)
    before = on_both.parts.db.read_now(of_tenant, theirs)
    found = {}
    for method, path in routes(on_both):
        if path.startswith("/api/") or not set(_PARAMETER.findall(path)) - OF_EVERYBODY:
            continue
        body = None if method in ("GET", "HEAD") else FORMS.get(path, b"next=")
        answers = [_page(browser, method, path, ids, body) for ids in (other, UNKNOWN)]
        assert answers[0] == answers[1], f"{method} {path}"
        found[method, path] = answers[0][0]
    assert len(found) > 20
    # A form that marks goes back to the page, whatever has become of the post meanwhile.
    assert {key: status for key, status in found.items() if status != 404} == {("POST", "/posts/{post_id}/mark"): 303}
    assert on_both.parts.db.read_now(of_tenant, theirs) == before


def _page(browser: Client, method: str, path: str, ids: Ids, body: bytes | None) -> tuple[int, str]:
    named = {name: str(getattr(ids, PARAMETERS[name])) for name in _PARAMETER.findall(path)}
    concrete = _PARAMETER.sub(lambda found: named[found[1]], path)
    given = {"Content_Type": "application/x-www-form-urlencoded"} if body is not None else {}
    answer = browser(method, concrete, body, **given)
    words = answer.text
    for value in named.values():
        words = re.sub(rf"\b{re.escape(value)}\b", "*", words)
    return answer.status, words
