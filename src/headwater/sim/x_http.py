"""The simulated X's answers: from a request to a status, headers and a body, as the X API v2 writes them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from headwater.sim.reddit_world import Asked
from headwater.sim.serving import Ask, door
from headwater.sim.x_accounts import SimPost
from headwater.sim.x_json import answer_with, user_json
from headwater.sim.x_lists import BadPage, found_by, page_of, timeline_of
from headwater.sim.x_world import SimX

PROBLEMS = "https://api.x.com/2/problems"
_FIELDS = ("tweet.fields", "expansions", "user.fields", "media.fields", "place.fields", "poll.fields")
_LIST = ("max_results", "since_id", "until_id", "start_time", "end_time", "exclude", "pagination_token")
_SEARCH = ("query", "max_results", "since_id", "until_id", "start_time", "end_time", "next_token", "sort_order")


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    shows: tuple[SimPost, ...] = ()


class Refused(Exception):
    """X says no, as a problem document."""

    def __init__(self, status: int, title: str, detail: str, problem: str = "about:blank", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.document = {"title": title, "detail": detail, "type": problem, "status": status, **more}


def door_of(x: SimX) -> type[BaseHTTPRequestHandler]:
    """Where connections to this X arrive."""
    return door(partial(answer_with_faults, x))


def answer_with_faults(x: SimX, asked: Ask) -> Answer:
    if asked.path == "/sim/clock":
        return _clock(x, asked)
    now = x.clock.now()
    fault = x.fault()
    left, reset = x.count_request(_kind_of(asked.path))
    answer = _answer_or_fault(x, asked, now, fault, left)
    if x.limits.requests:
        counted = {
            "x-rate-limit-limit": str(x.limits.requests),
            "x-rate-limit-remaining": str(max(0, left)),
            "x-rate-limit-reset": str(int(reset.timestamp()) + 1),
        }
        answer = answer._replace(headers={**answer.headers, **counted})
    with x.lock:
        if fault != "cut":
            x.note_shown(list(answer.shows), now)
        x.asked.append(Asked(now, asked.path, answer.status))
    if fault == "slow":
        time.sleep(x.faults.slow_seconds)
    if fault == "cut":
        # What was promised does not all come: the connection ends first.
        length = {"Content-Length": str(len(answer.body) + 100)}
        return answer._replace(body=answer.body[: len(answer.body) // 2], headers={**answer.headers, **length})
    return answer


def _answer_or_fault(x: SimX, asked: Ask, now: datetime, fault: str | None, left: int) -> Answer:
    try:
        if fault == "busy" or (x.limits.requests and left < 0):
            raise Refused(429, "Too Many Requests", "Too Many Requests")
        if fault in ("broken", "unavailable"):
            status = 500 if fault == "broken" else 503
            raise Refused(status, "Service Unavailable", "Service Unavailable")
        if asked.authorization != f"Bearer {x.token}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        if x.limits.month and x.read >= x.limits.month:
            problem = f"{PROBLEMS}/usage-capped"
            raise Refused(429, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap", problem, period="Monthly")
        return _answer(x, asked, now)
    except Refused as refused:
        return _json(refused.document)._replace(status=refused.status)
    except BadPage as error:
        return _invalid(error.parameter, error.value, str(error))


def _answer(x: SimX, asked: Ask, now: datetime) -> Answer:
    match [step for step in asked.path.split("/") if step]:
        case ["2", "users", "by", "username", name]:
            _check_names(asked, ("user.fields", "expansions", "tweet.fields"))
            return _account(x, name, asked)
        case ["2", "users", user_id, "tweets"]:
            _check_names(asked, (*_LIST, *_FIELDS))
            return _timeline(x, user_id, asked, now)
        case ["2", "tweets", "search", "recent"]:
            _check_names(asked, (*_SEARCH, *_FIELDS))
            return _search(x, asked, now)
    raise Refused(404, "Not Found", "Not Found")


def _account(x: SimX, name: str, asked: Ask) -> Answer:
    account = x.accounts.get(name.lower())
    about = {"value": name, "resource_id": name, "parameter": "username", "resource_type": "user"}
    if account is None:
        detail = f"Could not find user with username: [{name}]."
        error = {**about, "title": "Not Found Error", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    if account.habits.suspended:
        detail = f"User has been suspended: [{name}]."
        error = {**about, "title": "Forbidden", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    return _json({"data": user_json(account, asked.query)})


def _timeline(x: SimX, user_id: str, asked: Ask, now: datetime) -> Answer:
    account = next((one for one in x.accounts.values() if str(one.id) == user_id), None)
    about = {"value": user_id, "resource_id": user_id, "parameter": "id", "resource_type": "user"}
    if account is None or account.habits.suspended:
        detail = f"Could not find user with id: [{user_id}]."
        if account:
            detail = f"User has been suspended: [{user_id}]."
        error = {**about, "title": "Not Found Error", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    if account.habits.protected:
        detail = f"Sorry, you are not authorized to see the user with id: [{user_id}]."
        problem = f"{PROBLEMS}/not-authorized-for-resource"
        return _json({"errors": [{**about, "title": "Authorization Error", "detail": detail, "type": problem}]})
    listed = timeline_of(x, account, asked.query.get("exclude", ""), now)
    return _listed(x, listed, asked, now, least=5, token="pagination_token")


def _search(x: SimX, asked: Ask, now: datetime) -> Answer:
    if not asked.query.get("query"):
        raise BadPage("query", "", "The `query` query parameter can not be empty")
    return _listed(x, found_by(x, asked.query, now), asked, now, least=10, token="next_token")


def _listed(x: SimX, listed: list[SimPost], asked: Ask, now: datetime, *, least: int, token: str) -> Answer:
    page = page_of(x, listed, asked.query, now, least=least, token=token)
    document = answer_with(x, page.posts, asked.query, now)
    meta: dict[str, Any] = {"result_count": len(page.posts)}
    if page.posts:
        numbers = [post.version_at(now).id for post in page.posts]
        meta |= {"newest_id": str(max(numbers)), "oldest_id": str(min(numbers))}
    if page.next:
        meta["next_token"] = page.next
    return _json({**document, "meta": meta})._replace(shows=tuple(page.posts))


def _check_names(asked: Ask, known: tuple[str, ...]) -> None:
    for name, value in asked.query.items():
        if name not in known:
            raise BadPage(name, value, f"The query parameter [{name}] is not one of [{','.join(known)}]")


def _kind_of(path: str) -> str:
    steps = path.split("/")
    return "search" if "search" in steps else "lookup" if "by" in steps else "timeline"


def _clock(x: SimX, asked: Ask) -> Answer:
    if asked.method == "POST":
        x.clock.advance(timedelta(seconds=float(asked.query.get("seconds", 0))))
    return _json({"now": x.clock.now().isoformat()})


def _invalid(parameter: str, value: str, message: str) -> Answer:
    document = {
        "errors": [{"parameters": {parameter: [value]}, "message": message}],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": f"{PROBLEMS}/invalid-request",
    }
    return _json(document)._replace(status=400)


def _json(document: Any) -> Answer:
    return Answer(200, json.dumps(document).encode(), {"Content-Type": "application/json; charset=utf-8"})
