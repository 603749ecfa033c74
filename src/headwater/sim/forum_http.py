"""The simulated forum's answers: from a request to a status, headers and a body."""

from __future__ import annotations

import json
import re
import struct
import time
import zlib
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler
from typing import Any

from headwater.sim.forum_json import TALK_PAGE, topic, topic_list
from headwater.sim.forum_pages import board_page, index_page, thread_page
from headwater.sim.forum_world import SimForum
from headwater.sim.reddit_world import Asked
from headwater.sim.serving import Answer, Ask, door

_BOARD_PAGE = re.compile(r"/bbs/forum-(\d{1,9})-(\d{1,9})\.html")
_THREAD_PAGE = re.compile(r"/bbs/thread-(\d{1,9})-(\d{1,9})-\d{1,9}\.html")
_TOPICS = re.compile(r"/talk(?:/c/[^/]+/(\d{1,9})/l)?/latest\.json")
_TOPIC = re.compile(r"/talk/t/(?:[^/]+/)?(\d{1,9})\.json")
_TALK_PAGE = re.compile(r"/talk/(?:c/[^/]+/\d{1,9}/?)?")
_PICTURE = re.compile(r"/pictures/(\d{1,9})\.png")
_SIDE = 16  # pixels


def door_of(forum: SimForum) -> type[BaseHTTPRequestHandler]:
    """Where connections to this forum arrive."""
    return door(partial(answer_with_faults, forum))


def answer_with_faults(forum: SimForum, asked: Ask) -> Answer:
    if asked.path == "/sim/clock":
        if asked.method == "POST":
            forum.clock.advance(timedelta(seconds=float(asked.query.get("seconds", 0))))
        return _json({"now": forum.clock.now().isoformat()})
    now = forum.clock.now()
    fault = forum.fault()
    answer = _fault(fault) or _conditional(_answer(forum, asked, now), asked)
    with forum.lock:
        forum.asked.append(Asked(now, asked.path, answer.status))
    if fault == "slow":
        time.sleep(forum.faults.slow_seconds)
    if fault == "cut":
        # What was promised does not all come: the connection ends first.
        length = {"Content-Length": str(len(answer.body) + 100)}
        return answer._replace(body=answer.body[: len(answer.body) // 2], headers={**answer.headers, **length})
    return answer


def _fault(name: str | None) -> Answer | None:
    match name:
        case "busy":
            return Answer(429, b"Too many requests", {"Retry-After": "30"})
        case "broken":
            return Answer(500, b"<html><body>Database error</body></html>", {"Content-Type": "text/html"})
        case "unavailable":
            return Answer(503, b"<html><body>Closed for maintenance</body></html>", {"Content-Type": "text/html"})
    return None


def _conditional(answer: Answer, asked: Ask) -> Answer:
    if answer.status != 200:
        return answer
    tag = f'"{blake2b(answer.body, digest_size=8).hexdigest()}"'
    if tag == asked.known:
        return Answer(304, b"", {"ETag": tag})
    return answer._replace(headers={**answer.headers, "ETag": tag})


def _answer(forum: SimForum, asked: Ask, now: datetime) -> Answer:
    page = asked.query.get("page", "")
    wanted = int(page) if page.isdigit() and len(page) < 7 else None
    if asked.path == "/robots.txt":
        return Answer(200, b"User-agent: *\nDisallow: /admin/\n", {"Content-Type": "text/plain"})
    if asked.path in ("/bbs/", "/bbs/index.html"):
        return _html(index_page(forum))
    if found := _BOARD_PAGE.fullmatch(asked.path):
        return _html(board_page(forum, int(found[1]), max(1, int(found[2])), now))
    if found := _THREAD_PAGE.fullmatch(asked.path):
        return _html(thread_page(forum, int(found[1]), max(1, int(found[2])), now))
    if _TALK_PAGE.fullmatch(asked.path):
        return _html(TALK_PAGE)
    if found := _TOPICS.fullmatch(asked.path):
        return _json(topic_list(forum, int(found[1]) if found[1] else None, wanted or 0, now))
    if found := _TOPIC.fullmatch(asked.path):
        return _json(topic(forum, int(found[1]), wanted or 1, now))
    if found := _PICTURE.fullmatch(asked.path):
        return Answer(200, picture(int(found[1])), {"Content-Type": "image/png"})
    return Answer(404, b"There is nothing here.", {"Content-Type": "text/plain"})


def picture(number: int) -> bytes:
    """A small PNG of one colour, another for each number."""
    colour = blake2b(number.to_bytes(8, "big"), digest_size=3).digest()
    rows = (b"\0" + colour * _SIDE) * _SIDE
    size = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", size) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _html(page: str | None) -> Answer:
    if page is None:
        return Answer(404, b"<html><body>No such page</body></html>", {"Content-Type": "text/html"})
    return Answer(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def _json(document: Any) -> Answer:
    if document is None:
        return Answer(404, b'{"errors": ["not found"]}', {"Content-Type": "application/json"})
    return Answer(200, json.dumps(document, ensure_ascii=False).encode(), {"Content-Type": "application/json"})
