"""Every route and verb of the API answers for another tenant's ids as for ids that do not exist (H68)."""

from __future__ import annotations

import re
from typing import Any

from api.running import Client, Running
from headwater.accounts import tokens
from headwater.api.document import openapi
from tenants.contract import Ids
from tenants.two_tenants import fill

_NO_TASK = "01900000-0000-7000-8000-000000000000"
UNKNOWN = Ids(*range(999_001, 999_009), _NO_TASK, _NO_TASK, "f" * 64, "f" * 32, "unknown")
# Which of a tenant's ids stands for a parameter of a path.
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
    answer = client(verb.upper(), concrete, body)
    words = answer.text
    for value in named.values():
        words = re.sub(rf"\b{value}\b", "*", words)
    return answer.status, re.sub(r'"(instance|trace_id|request_id)":"[^"]*"', "", words)
