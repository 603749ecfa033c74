"""What Schemathesis sends for two tenants: every id is that of nobody first, and then that of the other tenant.

`OTHERS` in the environment has a token of each tenant and the ids that only the other one may see.
"""

from __future__ import annotations

import http.client
import json
import os
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import schemathesis
from requests import PreparedRequest
from schemathesis import Case, CheckContext, Response

from tenants.contract import Ids
from tenants.test_other_tenants_ids import PARAMETERS, UNKNOWN

_LISTS = {"ids": "post_id", "post_ids": "post_id", "tweet_ids": "post_id"}
_EACH_TIME = re.compile(r'"(instance|trace_id|request_id|task_id|id|event_id)":"[^"]*"')
_NOT_SENT_AGAIN = {"authorization", "content-length", "idempotency-key", "connection"}


class Asking(NamedTuple):
    """One tenant: its token, what only the other may see, and words that are only in that."""

    token: str
    others: Ids
    words: list[str]


class Sent(NamedTuple):
    status: int
    words: str

    def naming(self, ids: Ids) -> Sent:
        """The same answer to a request that had these ids instead of nobody's."""
        return Sent(self.status, with_ids(self.words, ids))


def with_ids(words: str, ids: Ids) -> str:
    for nobodys, value in zip(UNKNOWN, ids, strict=True):
        words = words.replace(str(nobodys), str(value))
    return words


def tenants() -> list[Asking]:
    return [Asking(one["token"], Ids(*one["others"]), one["words"]) for one in json.loads(os.environ["OTHERS"])]


@schemathesis.hook
def before_call(context: Any, case: Case[Any], **kwargs: Any) -> None:
    """Not one of the hooks that map what is generated: Schemathesis also sends ids that an earlier answer named."""
    case.path_parameters = _nobodys(case.path_parameters)
    case.query = _nobodys(case.query)
    case.body = _nobodys(case.body)


def _nobodys(value: Any) -> Any:
    """Replaces ids by those of nobody."""
    if isinstance(value, list):
        return [_nobodys(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {name: getattr(UNKNOWN, PARAMETERS[name]) for name in value if name in PARAMETERS}
    named |= {name: [getattr(UNKNOWN, _LISTS[name])] for name in value if name in _LISTS}
    return {name: named[name] if name in named else _nobodys(one) for name, one in value.items()}


@schemathesis.check
def another_tenants_ids_are_unknown(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    request, where = response.request, f"{case.method} {case.path}"
    has_ids = any(str(one) in f"{request.path_url} {request.body!r}" for one in UNKNOWN)
    if not has_ids and case.method.upper() != "GET":
        return
    for asking in tenants():
        theirs = _send(request, asking, asking.others)
        assert [word for word in asking.words if word in theirs.words] == [], where
        if has_ids:
            unknown = _send(request, asking, UNKNOWN).naming(asking.others)
            assert theirs == unknown, f"{where}: {theirs} and, for what nobody has, {unknown}"
        if set(re.findall(r"\{(\w+)", case.path)) & PARAMETERS.keys():
            assert not 200 <= theirs.status < 300, f"{where}: {theirs}"


def _send(request: PreparedRequest, asking: Asking, ids: Ids) -> Sent:
    """Sends a request again, for a tenant and with these ids."""
    address = urlsplit(request.url or "")
    headers = {name: str(value) for name, value in request.headers.items() if name.lower() not in _NOT_SENT_AGAIN}
    headers |= {"Authorization": f"Bearer {asking.token}", "Idempotency-Key": uuid4().hex}
    body = request.body.decode("latin-1") if isinstance(request.body, bytes) else request.body
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        sent = with_ids(body, ids).encode("latin-1") if body else None
        connection.request(request.method or "GET", with_ids(request.path_url, ids), sent, headers)
        answer = connection.getresponse()
        return Sent(answer.status, _EACH_TIME.sub("", answer.read().decode(errors="replace")))
    finally:
        connection.close()
