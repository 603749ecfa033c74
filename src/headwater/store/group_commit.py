"""Group commit on SQLite: small writes that wait at the same time share one transaction, and so one wait for the disk.

Each write runs behind a savepoint. One that fails is rolled back to it, and the others go on. Nobody gets an answer
before the transaction is committed. If the transaction is lost, because the disk is full for example, each write is
done again in a transaction of its own, so one that cannot be written does not take the others with it.
Writes run in the order in which they came. A group is whatever waits when the writer's thread is free: nobody waits for
a group to grow, and those that are not grouped have their turn between two groups.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from headwater.store.sql import Prepared

T = TypeVar("T")

MOST_GROUPED = 64

# A name of its own: rolling back to it also ends savepoints that the write has left open.
_set_savepoint = Prepared(sqlite="SAVEPOINT grouped")
_release = Prepared(sqlite="RELEASE SAVEPOINT grouped")
_roll_back = Prepared(sqlite="ROLLBACK TO SAVEPOINT grouped")


class GroupedWrite(Generic[T]):
    """A write that waits for its turn, in the context of whoever asked for it."""

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.future: Future[T] = Future()
        self._context = contextvars.copy_context()  # with the trace
        self._result: T
        self._error: BaseException | None = None

    def write(self, conn: Connection) -> None:
        self._result = self._context.run(self.function, conn, *self.args, **self.kwargs)

    @contextmanager
    def attempted(self, conn: Connection) -> Iterator[None]:
        """Undoes what is written in the block if it fails, and remembers why. Fails if the transaction is lost."""
        _set_savepoint.once(conn)
        try:
            yield
            _release.once(conn)
        except BaseException as error:  # noqa: BLE001 - it is raised where the write was asked for
            _roll_back.once(conn)
            _release.once(conn)
            self._error = error

    def outcome(self) -> T:
        """Returns what the write returned, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def settle(self, work: Callable[[], T]) -> None:
        """Answers whoever asked for the write with what comes of this."""
        try:
            self.future.set_result(self._context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised where the write was asked for
            self.future.set_exception(error)


class WriteQueue:
    """Writes that wait. `submit` has something done in the writer's thread, and `write_group` writes and settles."""

    def __init__(
        self,
        submit: Callable[[Callable[[], None]], None],
        write_group: Callable[[Sequence[GroupedWrite[Any]]], None],
    ) -> None:
        self._submit, self._write_group = submit, write_group
        self._waiting: deque[GroupedWrite[Any]] = deque()

    async def run(self, one: GroupedWrite[T]) -> T:
        """Writes in the next group, and returns when that is committed. Whoever is cancelled before it begins writes
        nothing."""
        self._waiting.append(one)
        self._submit(self._work_off)  # once for each: those whose write was in an earlier group find nothing to do
        return await asyncio.wrap_future(one.future)

    def _work_off(self) -> None:
        group: list[GroupedWrite[Any]] = []
        while self._waiting and len(group) < MOST_GROUPED:
            one = self._waiting.popleft()
            if one.future.set_running_or_notify_cancel():
                group.append(one)
        try:
            self._write_group(group)
        except BaseException as error:
            for one in group:
                if not one.future.done():  # somebody waits for it
                    one.future.set_exception(error)
            raise
