"""The pool of parser processes, as the rest of the program sees it: `await parsers.read(...)`.

A process that dies, hangs or exceeds its limits costs the one document it was parsing. The others go on. A process that
has had nothing to do for a minute ends, because it holds tens of megabytes. Starting another takes half a second.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from headwater import errors
from headwater.model import Becoming, Item, Page, Response, Source, SourceState
from headwater.parse.process import LENGTH_BYTES, Parsed, ParseTask, RobotsVerdict

MAX_ANSWER = 256 * 1024 * 1024
IDLE_SECONDS = 60.0
MOST_DOCUMENTS = 10_000  # per process: libxml2 keeps every element name it has ever seen
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")
_BY_CODE = {kind.code: kind for kind in errors.all_errors()}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Parsed).decode


class Parsers:
    """A number of parser processes. A document waits until one is free."""

    def __init__(self, processes: int, *, cpu_seconds: float, memory_mb: int, max_bytes: int) -> None:
        self._cpu_seconds = cpu_seconds
        self._memory_mb = memory_mb
        self._max_bytes = max_bytes
        self._idle: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        self._running: dict[Process, int] = {}  # how many documents each has parsed
        self._ends_at: dict[Process, asyncio.TimerHandle] = {}
        for _ in range(processes):
            self._idle.put_nowait(None)  # a process that is started when it is first needed

    async def read(self, source: Source, state: SourceState, response: Response) -> Page:
        """Returns what an answer says, as the source's kind reads it."""
        parsed = await self._perform(ParseTask("read", source, state, response, self._max_bytes))
        assert parsed.page is not None
        return parsed.page

    async def read_item(self, source: Source, item: Item, response: Response) -> Page:
        """Returns what the page of an item says."""
        task = ParseTask("item", source, SourceState(), response, self._max_bytes, item)
        parsed = await self._perform(task)
        assert parsed.page is not None
        return parsed.page

    async def recognise(self, source: Source, response: Response) -> Becoming | None:
        """Returns the kind that can read this page, with its settings; None if there is none."""
        return (await self._perform(ParseTask("recognise", source, SourceState(), response, self._max_bytes))).becomes

    async def verdict(self, rules: Response, url: str, agent: str) -> RobotsVerdict:
        """Returns what a robots.txt says to `agent` about an address."""
        task = ParseTask(
            "robots", Source(0, "", ""), SourceState(), rules._replace(url=url), self._max_bytes, agent=agent
        )
        parsed = await self._perform(task)
        assert parsed.verdict is not None
        return parsed.verdict

    async def links(self, source: Source, response: Response) -> list[str]:
        """Returns the addresses of feeds that a page links to, best first."""
        return (await self._perform(ParseTask("links", source, SourceState(), response, self._max_bytes))).links

    async def close(self) -> None:
        for ending in self._ends_at.values():
            ending.cancel()
        for process in list(self._running):
            await self._end(process)

    async def _perform(self, task: ParseTask) -> Parsed:
        process = await self._idle.get()
        stays = False
        try:
            if process in self._ends_at:
                self._ends_at.pop(process).cancel()
            if process not in self._running or process.returncode is not None:
                process = await self._start()
            async with asyncio.timeout(self._cpu_seconds * 3 + 5):
                parsed = await _exchange(process, task)
            self._running[process] += 1
            stays = self._running[process] < MOST_DOCUMENTS
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
            raise errors.ParserStopped(
                f"Parsing took more than {self._cpu_seconds:g} s of CPU time or {self._memory_mb} MB of memory."
            ) from error
        finally:
            if not stays and process is not None:
                await self._end(process)
            if stays and process is not None:
                loop = asyncio.get_running_loop()
                self._ends_at[process] = loop.call_later(IDLE_SECONDS, self._end_idle, process)
            self._idle.put_nowait(process if stays else None)
        if parsed.error_code:
            raise _BY_CODE.get(parsed.error_code, errors.ReadFailed)(parsed.error)
        return parsed

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headwater.parse.process",
            str(self._cpu_seconds),
            str(self._memory_mb),
            stdin=PIPE,
            stdout=PIPE,
            limit=1024 * 1024,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            start_new_session=True,  # Ctrl-C in the terminal is for the parent, which ends its parsers itself
        )
        self._running[process] = 0
        return process

    def _end_idle(self, process: Process) -> None:
        """Ends a process that waits for work. Its place stays, for one that is started when it is needed."""
        del self._ends_at[process], self._running[process]
        if process.returncode is None:
            process.kill()

    async def _end(self, process: Process) -> None:
        self._running.pop(process, None)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _exchange(process: Process, task: ParseTask) -> Parsed:
    assert process.stdin is not None
    assert process.stdout is not None
    message = _encode(task)
    process.stdin.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
    await process.stdin.drain()
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    if length > MAX_ANSWER:
        raise ConnectionError("a parser process sent an impossibly long answer")
    parsed: Parsed = _decode(await process.stdout.readexactly(length))
    return parsed
