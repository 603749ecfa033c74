"""Live updates: one tail of the log for everybody who listens in this process, and who of them may see what.

The tail runs while somebody listens. It reads a batch, asks once who follows what, and gives each listener its part.
Whoever takes too slowly is let go, and never holds the others: it comes back with the mark of what it has seen.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Set
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.errors import BadCursor, HeadwaterError, StoreUnavailable
from headwater.events.cloudevents import envelope
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.log import tail
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.log.tail import Followed
from headwater.waiting import WakeUpSignal

BATCH = 500
LOOK_SECONDS = 1.0
SOON_SECONDS = 0.005  # after a ring with nothing to be seen: an older transaction may hide it for a moment
MOST_WAITING_BYTES = 1024 * 1024
SAMPLES = 1000
SLACK = timedelta(hours=1)  # how long the transaction that wrote an event may have been open, with plenty to spare
_MARK = re.compile(r"([0-9a-f]{1,15})-([0-9a-f]{1,15})-([0-9a-f]{1,11})")
log = structlog.get_logger()


class Mark(NamedTuple):
    """How far somebody has seen the log, and when that was the newest there is. Opaque text to clients."""

    position: LogPosition
    at: datetime

    def __str__(self) -> str:
        return f"{self.position.xid:x}-{self.position.id:x}-{int(self.at.timestamp() * 1000):x}"


def read_mark(text: str) -> Mark:
    found = _MARK.fullmatch(text)
    if found is None:
        raise BadCursor("Use the id of the last event that this server sent you, unchanged, or leave it out.")
    xid, id, milliseconds = (int(number, 16) for number in found.groups())
    try:
        return Mark(LogPosition(xid, id), datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (OverflowError, ValueError, OSError) as error:
        raise BadCursor("The id's time is none that can be.") from error


def is_forgotten(mark: Mark, now: datetime, kept_for: timedelta) -> bool:
    """Whether what came after the mark may have been deleted from the log already."""
    return mark.at < now - kept_for + SLACK


class Audience(NamedTuple):
    """Somebody who listens, and to which kinds; None: to all."""

    reader: Reader
    kinds: frozenset[str] | None = None

    def may_see(self, event: LoggedEvent, followed: Set[Followed]) -> bool:
        """Events of a reader are that reader's alone; those of a source are for whoever follows it."""
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        reader = self.reader
        if event.user_id is not None or event.tenant_id is not None:
            return (event.tenant_id, event.user_id) == (reader.tenant_id, reader.user_id)
        source_id = source_of(event)
        return source_id is not None and Followed(reader.tenant_id, reader.user_id, source_id) in followed


def source_of(event: LoggedEvent) -> int | None:
    what, _, id = event.key.partition(":")
    return int(id) if what == "source" and id.isdecimal() else None


class Listener:
    """What waits to be sent to one connection. `after` is where its part of the log begins."""

    def __init__(self, audience: Audience, after: LogPosition = tail.START) -> None:
        self.audience = audience
        self.after = after
        self.ended = False
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Event()

    @property
    def is_behind(self) -> bool:
        return bool(self._waiting)

    def offer(self, words: bytes) -> None:
        """One batch always has room; more has to fit."""
        if self._waiting and self._size + len(words) > MOST_WAITING_BYTES:
            log.info("live.too_slow", user=self.audience.reader.user_id)
            self._waiting.clear()
            self.ended = True
        else:
            self._waiting.append(words)
            self._size += len(words)
        self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    async def take(self, seconds: float) -> bytes | None:
        """What has come; nothing after so many seconds of silence; None at the end."""
        if not self._waiting and not self.ended:
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except TimeoutError:
                return b""
        words = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._changed.clear()
        return words or (None if self.ended else b"")


class Live:
    """The listeners of this process. `delays` are the last times from write to visible, in seconds."""

    def __init__(self, db: Database, bell: WakeUpSignal, now: Callable[[], datetime], instance: str) -> None:
        self._db, self._bell, self._now, self._instance = db, bell, now, instance
        self._listeners: set[Listener] = set()
        self._joining: dict[Listener, asyncio.Future[None]] = {}
        self._position = tail.START
        self._woken: asyncio.Event | None = None
        self._closed = False
        self._tailing: asyncio.Task[None] | None = None
        self.delays: deque[float] = deque(maxlen=SAMPLES)

    def count(self, reader: Reader | None = None) -> int:
        """How many listen; or how many of this reader's."""
        everybody = [*self._listeners, *self._joining]
        return sum(1 for one in everybody if reader is None or one.audience.reader.user_id == reader.user_id)

    async def join(self, audience: Audience, mark: Mark | None = None) -> Listener:
        """Listen from now on, or from the mark on: then `missed` has what came since."""
        listener = Listener(audience, mark.position if mark else tail.START)
        self._joining[listener] = asyncio.get_running_loop().create_future()
        if self._tailing is None:
            self._tailing = asyncio.create_task(self._tail())
        self._wake()
        try:
            await self._joining[listener]
        except BaseException:
            self.leave(listener)
            raise
        return listener

    def leave(self, listener: Listener) -> None:
        self._joining.pop(listener, None)
        self._listeners.discard(listener)
        self._wake()

    def close(self) -> None:
        """Let everybody go; nobody joins any more. For the end of the process."""
        self._closed = True
        for listener in self._listeners:
            listener.end()
        self._wake()

    def mark_of(self, listener: Listener) -> Mark | None:
        """How far the listener has come; None while something waits to be sent to it."""
        return None if listener.is_behind else Mark(max(self._position, listener.after), self._now())

    async def missed(self, listener: Listener, mark: Mark) -> AsyncIterator[bytes]:
        """What the listener may see of the log between the mark and where it began to listen."""
        position, users = mark.position, [listener.audience.reader.user_id]
        while position < listener.after:
            events, followed = await self._db.read(_next, position, users)
            here = [event for event in events if event.position <= listener.after]
            words = b"".join(self._frame(event) for event in here if listener.audience.may_see(event, followed))
            if words:
                yield words
            if len(here) < BATCH:
                return
            position = here[-1].position

    async def end_of_log(self) -> LogPosition:
        return await self._db.read(tail.end)

    async def _tail(self) -> None:
        try:
            with self._bell.listening() as self._woken:
                await self._hand_out_until_nobody_listens(self._woken)
        finally:
            self._woken, self._tailing = None, None
            for listener in self._listeners:
                listener.end()
            self._refuse("The live updates have ended.")

    async def _hand_out_until_nobody_listens(self, woken: asyncio.Event) -> None:
        pause, begun = LOOK_SECONDS, False
        while True:
            moved = 0
            try:
                if not begun:
                    self._position = await self._db.read(tail.end)
                    begun = True
                self._admit()
                if self._closed or not self._listeners:
                    return
                moved = await self._hand_out()
            except HeadwaterError as error:
                log.warning("live.waits", error=error.detail)
                self._refuse(error.detail)
                pause = LOOK_SECONDS
            if moved:
                pause = LOOK_SECONDS
            if moved < BATCH:
                pause = SOON_SECONDS if await _rung(woken, pause) else min(pause * 2, LOOK_SECONDS)

    def _admit(self) -> None:
        """Only between two batches: so everybody gets whole batches, from a known place on."""
        for listener, admitted in self._joining.items():
            if self._closed:
                listener.end()
            listener.after = max(listener.after, self._position)  # another process may have told it more already
            self._listeners.add(listener)
            if not admitted.done():
                admitted.set_result(None)
        self._joining.clear()

    def _refuse(self, why: str) -> None:
        for admitted in self._joining.values():
            if not admitted.done():
                admitted.set_exception(StoreUnavailable(why))
        self._joining.clear()

    async def _hand_out(self) -> int:
        users = sorted({listener.audience.reader.user_id for listener in self._listeners})
        events, followed = await self._db.read(_next, self._position, users)
        if not events:
            return 0
        frames = [(event, self._frame(event)) for event in events]
        for listener in self._listeners:
            may_see, after = listener.audience.may_see, listener.after
            words = [frame for event, frame in frames if event.position > after and may_see(event, followed)]
            if words and not listener.ended:
                listener.offer(b"".join(words))
        self._position = events[-1].position
        now = self._now()
        self.delays.extend((now - event.created_at).total_seconds() for event in events)
        return len(events)

    def _frame(self, event: LoggedEvent) -> bytes:
        mark = Mark(event.position, event.created_at)
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (
            str(mark).encode(),
            event.kind.encode(),
            envelope(event, self._instance),
        )

    def _wake(self) -> None:
        if self._woken is not None:
            self._woken.set()


def _next(conn: Connection, position: LogPosition, users: list[int]) -> tuple[list[LoggedEvent], set[Followed]]:
    events = tail.after(conn, position, BATCH)
    sources = sorted({source_id for event in events if (source_id := source_of(event)) is not None})
    return events, tail.followed(conn, sources, users)


async def _rung(signal: asyncio.Event, seconds: float) -> bool:
    """Whether it was set within so many seconds; it is taken back."""
    try:
        await asyncio.wait_for(signal.wait(), seconds)
    except TimeoutError:
        return False
    signal.clear()
    return True
