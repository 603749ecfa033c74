"""The parser process: untrusted bytes in, our model out. Run as `python -m headwater.parse.process`.

It knows no settings, no database and no network. The kernel enforces a CPU limit for each document and a memory limit
for the process. A process that exceeds a limit is killed, and `parse/pool.py` starts another. Messages are msgpack with
a length in front, decoded into known types on both sides: a parser that a hostile document took over can send only
data.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import BinaryIO, NamedTuple

import msgspec
from protego import Protego

from headwater import errors
from headwater.fetch.body import unpacked
from headwater.model import Becoming, Item, Page, Response, Source, SourceState
from headwater.sources import KINDS, Kind, discovery

LENGTH_BYTES = 4
LARGEST_ROBOTS = 512_000  # bytes; the standard asks for 500 KiB, and the rest is ignored


class ParseTask(NamedTuple):
    """What to do with an answer.

    `what` is `read` (as the source's kind reads it), `item` (the page of an item), `links` (the feeds a page links to),
    `recognise` (which kind can read the page) or `robots` (what the rules let `agent` read).
    """

    what: str
    source: Source
    state: SourceState
    response: Response
    max_bytes: int
    item: Item | None = None
    agent: str = ""


class RobotsVerdict(NamedTuple):
    """What a robots.txt says (RFC 9309): whether a page may be read, and the seconds it wants between requests."""

    allowed: bool = True
    delay: float | None = None


class Parsed(NamedTuple):
    """The result of a task, or the code and message of the error."""

    page: Page | None = None
    links: list[str] = []
    becomes: Becoming | None = None
    verdict: RobotsVerdict | None = None
    error_code: str | None = None
    error: str = ""


def perform(task: ParseTask, kinds: Mapping[str, Kind] = KINDS) -> Parsed:
    try:
        response = task.response._replace(body=unpacked(task.response, task.max_bytes))
        return _performed(task, response, kinds)
    except errors.SourceFailure as error:
        return Parsed(error_code=error.code, error=error.detail)
    except MemoryError:
        return Parsed(error_code=errors.ParserStopped.code, error="The document needs more memory than is allowed.")
    except Exception as error:  # noqa: BLE001 - the last resort: a bug of ours costs one document, not the process
        message = f"Headwater failed to parse this document ({type(error).__name__}). This is a bug in Headwater."
        return Parsed(error_code=errors.ReadFailed.code, error=message)


def _performed(task: ParseTask, response: Response, kinds: Mapping[str, Kind]) -> Parsed:
    if task.what == "links":
        found = discovery.links_in_page(response.body, response.url)
        return Parsed(links=[candidate.url for candidate in found])
    if task.what == "recognise":
        return Parsed(becomes=_recognised(task.source, response, kinds))
    if task.what == "robots":
        rules = response.body[:LARGEST_ROBOTS].decode("utf-8", "replace")
        return Parsed(verdict=verdict(rules, response.url, task.agent))
    kind = kinds[task.source.kind]
    if task.what == "item":
        assert kind.read_item is not None
        assert task.item is not None
        return Parsed(page=kind.read_item(task.source, task.item, response))
    page = kind.read(task.source, task.state, response)
    # A hub that nobody will be asked about is not worth remembering.
    return Parsed(page=page if kind.can_be_pushed else page._replace(facts=page.facts._replace(hub=None)))


def _recognised(source: Source, response: Response, kinds: Mapping[str, Kind]) -> Becoming | None:
    for kind in kinds.values():
        settings = kind.recognise(source, response) if kind.recognise else None
        if settings is not None:
            return Becoming(kind.name, settings)
    return None


def verdict(rules: str, url: str, agent: str) -> RobotsVerdict:
    """Returns what a robots.txt says about the page at `url` to the program named `agent`."""
    parsed = _parsed(rules)
    return RobotsVerdict(parsed.can_fetch(url, agent), parsed.crawl_delay(agent))


@lru_cache(maxsize=16)
def _parsed(rules: str) -> Protego:
    return Protego.parse(rules)


def serve(requests: BinaryIO, answers: BinaryIO, cpu_seconds: float, memory_mb: int) -> None:
    decode = msgspec.msgpack.Decoder(ParseTask).decode
    encode = msgspec.msgpack.Encoder().encode
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 1024 * 1024,) * 2)
    while head := requests.read(LENGTH_BYTES):
        task = decode(requests.read(int.from_bytes(head, "big")))
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # nobody handles SIGPROF: the kernel kills the process
        answer = encode(perform(task))
        answers.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
        answers.flush()


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]), int(sys.argv[2]))
    except BrokenPipeError:
        os._exit(0)  # the parent is gone
