"""Live updates: one reader of the log for all listeners of this process, and who of them may see what.

The reader runs while somebody listens. It reads a batch, asks once who follows what, and gives each listener its part.
A listener that is too slow is disconnected, so that it never holds up the others. It comes back with its resume token.
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
from headwater.events.catalogue import FORECAST_REFRESHED, cloudevent
from headwater.model import Reader
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.sources import Followed
from headwater.waiting import POLL_SECONDS, SOON_SECONDS, WakeUpSignal, wait

BATCH = 500
MAX_WAITING_BYTES = 1024 * 1024
SAMPLES = 1000
SLACK = timedelta(hours=1)  # longer than any transaction that writes events stays open
_TOKEN = re.compile(r"([0-9a-f]{1,15})-([0-9a-f]{1,15})-([0-9a-f]{1,11})")
log = structlog.get_logger()


class ResumeToken(NamedTuple):
    """How far a client has seen the log, and when that was the newest position. Opaque text to clients."""

    position: LogPosition
    at: datetime

    def __str__(self) -> str:
        return f"{self.position.xid:x}-{self.position.id:x}-{int(self.at.timestamp() * 1000):x}"


def read_resume_token(text: str) -> ResumeToken:
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise BadCursor("Use the id of the last event that this server sent you, unchanged, or leave it out.")
    xid, id, milliseconds = (int(number, 16) for number in found.groups())
    try:
        return ResumeToken(LogPosition(xid, id), datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (OverflowError, ValueError, OSError) as error:
        raise BadCursor("The time in this id is out of range.") from error


def is_expired(token: ResumeToken, now: datetime, kept_for: timedelta) -> bool:
    """Whether events after this token may have been deleted from the log already."""
    return token.at < now - kept_for + SLACK


PUBLIC = frozenset({FORECAST_REFRESHED.name})  # what everybody may know


class EventFilter(NamedTuple):
    """Which events a listener gets: those that its reader may see, of these kinds (None: of all kinds)."""

    reader: Reader
    kinds: frozenset[str] | None = None

    def admits(self, event: LoggedEvent, followed: Set[Followed]) -> bool:
        """A reader's events are for that reader alone; those of a source are for everybody who follows it."""
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        reader = self.reader
        if event.user_id is not None or event.tenant_id is not None:
            return (event.tenant_id, event.user_id) == (reader.tenant_id, reader.user_id)
        if event.kind in PUBLIC:
            return True
        source_id = source_of(event)
        return source_id is not None and Followed(reader.tenant_id, reader.user_id, source_id) in followed


def source_of(event: LoggedEvent) -> int | None:
    what, _, id = event.key.partition(":")
    return int(id) if what == "source" and id.isdecimal() else None


class Listener:
    """The send buffer of one connection. It gets the events after the position `after`."""

    def __init__(self, filter: EventFilter, after: LogPosition = outbox.START) -> None:
        self.filter = filter
        self.after = after
        self.ended = False
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Event()

    @property
    def is_behind(self) -> bool:
        return bool(self._waiting)

    def offer(self, frames: bytes) -> None:
        """Buffers frames to send. One batch always fits; a listener that has no room for a second one is ended."""
        if self._waiting and self._size + len(frames) > MAX_WAITING_BYTES:
            log.info("live.too_slow", user=self.filter.reader.user_id)
            self._waiting.clear()
            self.ended = True
        else:
            self._waiting.append(frames)
            self._size += len(frames)
        self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    async def take(self, seconds: float) -> bytes | None:
        """Returns what has arrived; nothing after so many seconds without an event; None at the end."""
        if not self._waiting and not self.ended:
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except TimeoutError:
                return b""
        frames = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._changed.clear()
        return frames or (None if self.ended else b"")


class Live:
    """The listeners of this process. `delays` are the latest times from write to visible, in seconds."""

    def __init__(self, db: Database, new_events: WakeUpSignal, now: Callable[[], datetime], instance: str) -> None:
        self._db, self._new_events, self._now, self._instance = db, new_events, now, instance
        self._listeners: set[Listener] = set()
        self._joining: dict[Listener, asyncio.Future[None]] = {}
        self._position = outbox.START
        self._woken: asyncio.Event | None = None
        self._closed = False
        self._reading: asyncio.Task[None] | None = None
        self.delays: deque[float] = deque(maxlen=SAMPLES)

    def count(self, reader: Reader | None = None) -> int:
        """Returns how many connections listen: all of them, or those of a reader."""
        everybody = [*self._listeners, *self._joining]
        return sum(1 for one in everybody if reader is None or one.filter.reader.user_id == reader.user_id)

    async def join(self, filter: EventFilter, token: ResumeToken | None = None) -> Listener:
        """Listens from now on, or from the token on. In the latter case `missed` returns what came in between."""
        listener = Listener(filter, token.position if token else outbox.START)
        self._joining[listener] = asyncio.get_running_loop().create_future()
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
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
        """Ends all listeners and admits no new ones. For the end of the process."""
        self._closed = True
        for listener in self._listeners:
            listener.end()
        self._wake()

    def resume_token(self, listener: Listener) -> ResumeToken | None:
        """Returns how far the listener has seen the log, or None while something waits to be sent to it."""
        return None if listener.is_behind else ResumeToken(max(self._position, listener.after), self._now())

    async def missed(self, listener: Listener, token: ResumeToken) -> AsyncIterator[bytes]:
        """Yields what the listener may see of the log between the token and where it began to listen."""
        position, users = token.position, [listener.filter.reader.user_id]
        while position < listener.after:
            events, followed = await self._db.read(_next, position, users)
            here = [event for event in events if event.position <= listener.after]
            frames = b"".join(self._frame(event) for event in here if listener.filter.admits(event, followed))
            if frames:
                yield frames
            if len(here) < BATCH:
                return
            position = here[-1].position

    async def end_of_log(self) -> LogPosition:
        return await self._db.read(outbox.end)

    async def _read(self) -> None:
        try:
            with self._new_events.listening() as self._woken:
                await self._send_while_somebody_listens(self._woken)
        finally:
            self._woken, self._reading = None, None
            for listener in self._listeners:
                listener.end()
            self._refuse("The live updates have ended.")

    async def _send_while_somebody_listens(self, woken: asyncio.Event) -> None:
        pause, started = POLL_SECONDS, False
        while True:
            moved = 0
            try:
                if not started:
                    self._position = await self._db.read(outbox.end)
                    started = True
                self._admit()
                if self._closed or not self._listeners:
                    return
                moved = await self._send_batch()
            except HeadwaterError as error:
                log.warning("live.waits", error=error.detail)
                self._refuse(error.detail)
                pause = POLL_SECONDS
            if moved:
                pause = POLL_SECONDS
            if moved < BATCH:
                # After a signal an older transaction may hide the new events for a moment.
                pause = SOON_SECONDS if await wait(pause, woken) else min(pause * 2, POLL_SECONDS)

    def _admit(self) -> None:
        """Admits new listeners between two batches, so that each gets whole batches from a known position on."""
        for listener, admitted in self._joining.items():
            if self._closed:
                listener.end()
            listener.after = max(listener.after, self._position)  # another process may have sent it more
            self._listeners.add(listener)
            if not admitted.done():
                admitted.set_result(None)
        self._joining.clear()

    def _refuse(self, why: str) -> None:
        for admitted in self._joining.values():
            if not admitted.done():
                admitted.set_exception(StoreUnavailable(why))
        self._joining.clear()

    async def _send_batch(self) -> int:
        """Gives each listener its part of the next batch. Returns the number of events read."""
        users = sorted({listener.filter.reader.user_id for listener in self._listeners})
        events, followed = await self._db.read(_next, self._position, users)
        if not events:
            return 0
        frames = [(event, self._frame(event)) for event in events]
        for listener in self._listeners:
            admits, after = listener.filter.admits, listener.after
            admitted = [frame for event, frame in frames if event.position > after and admits(event, followed)]
            if admitted and not listener.ended:
                listener.offer(b"".join(admitted))
        self._position = events[-1].position
        now = self._now()
        self.delays.extend((now - event.created_at).total_seconds() for event in events)
        return len(events)

    def _frame(self, event: LoggedEvent) -> bytes:
        token = ResumeToken(event.position, event.created_at)
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (
            str(token).encode(),
            event.kind.encode(),
            cloudevent(event, self._instance),
        )

    def _wake(self) -> None:
        if self._woken is not None:
            self._woken.set()


def _next(conn: Connection, position: LogPosition, users: list[int]) -> tuple[list[LoggedEvent], set[Followed]]:
    events = outbox.after_in_all(conn, position, BATCH)
    source_ids = sorted({source_id for event in events if (source_id := source_of(event)) is not None})
    return events, sources.followed_among(conn, source_ids, users)
