"""The condition of the store: what failed and has not worked since, whether the SQLite file is still the one that was
opened, and how much space is left for it.

A process that has a file open goes on reading and writing it after somebody deleted it. All of that is lost when the
process ends, so the file's inode is compared before each write and each new connection.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from headwater.errors import StoreDamaged, StoreLost, StoreUnavailable

RECENT_SECONDS = 30.0
LEAST_FREE_BYTES = 8 * 1024 * 1024
FULL_DISK = "the disk is full"  # concerns all writes, whichever of them met it
MARKER = ".marker"
UNFINISHED_RESTORE = ".restoring"
_MARKED = """Headwater stored data in {name}, beside this file. If that file is missing, Headwater does not begin with
an empty one. To begin with an empty store on purpose, delete this file as well.
"""


class Failure(NamedTuple):
    at: float
    error: StoreUnavailable


class Condition:
    """`file` is None if the store is not a SQLite file. All threads of the process share this."""

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, Failure] = {}
        self._damage: StoreDamaged | None = None
        self._inode: tuple[int, int] | None = None
        self._is_restoring = False

    def note_failure(self, what: str, error: StoreUnavailable) -> None:
        with self._lock:
            if isinstance(error, StoreDamaged):
                self._damage = error
            self._failures[what] = Failure(self._clock(), error)

    def note_success(self, what: str) -> None:
        if what in self._failures:  # nearly always not, and then no lock is needed
            with self._lock:
                self._failures.pop(what, None)

    def problems(self) -> list[StoreUnavailable]:
        """Returns why the store cannot be relied on at the moment, the worst first."""
        found: list[StoreUnavailable] = []
        try:
            self.check_file()
        except StoreLost as error:
            found.append(error)
        since = self._clock() - RECENT_SECONDS
        with self._lock:
            recent = [failure.error for failure in self._failures.values() if failure.at >= since]
            found += [self._damage] if self._damage else []
        found += [error for error in recent if error.detail not in {one.detail for one in found}]
        if not found and self.free_bytes() < LEAST_FREE_BYTES:
            found.append(StoreUnavailable(f"The disk of {self.file} is full. Free some space; nothing is lost yet."))
        return found

    def free_bytes(self) -> float:
        """Returns how much may still be written, as far as that is known."""
        try:
            return shutil.disk_usage(self.file.parent).free if self.file else float("inf")
        except OSError:
            return 0

    def check_file(self) -> None:
        """Raises StoreLost if the file is not the one that this process opened."""
        if self.file is None or self._inode is None:
            return
        try:
            found = os.stat(self.file)
        except OSError:
            raise StoreLost(
                f"The database {self.file} was deleted or moved while Headwater was running. Nothing is written any"
                " more. Put the file back, or a backup of it, and start Headwater again."
            ) from None
        if (found.st_dev, found.st_ino) != self._inode:
            raise StoreLost(
                f"The database {self.file} was replaced while Headwater was running. Nothing is written any more."
                " Start Headwater again to use the new file."
            )

    def exposure(self) -> str | None:
        """Returns what to do if other users of this machine can read the file, or None if they cannot."""
        if self.file is None or not self.file.exists() or not self.file.stat().st_mode & 0o044:
            return None
        folders = self.file.absolute().parents
        if not all(folder.stat().st_mode & 0o011 for folder in folders):
            return None
        return f"others on this machine can read it: chmod 700 {folders[0]}"

    def before_connecting(self, *_: Any) -> None:
        """Raises StoreLost where a store was and is no more: SQLite would make an empty one. Listens to the engine."""
        self.check_is_not_lost()
        if self.file and not self.file.exists():
            self.file.touch(mode=0o600)

    def check_is_not_lost(self) -> None:
        """Raises StoreLost if the file is gone, or empty, and Headwater has stored data in it before."""
        file = self.file
        if file is None:
            return
        self.check_file()
        marker = marker_of(file)
        if self._is_restoring:
            return
        if marker.exists() and (not file.exists() or file.stat().st_size == 0):
            raise StoreLost(
                f"The database {file} is gone, and Headwater has stored data in it before. Put the file back, or a"
                f" backup of it. To begin with an empty store, delete {marker}."
            )

    def after_connecting(self, *_: Any) -> None:
        if self.file and self._inode is None:
            found = os.stat(self.file)
            self._inode = found.st_dev, found.st_ino

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Lets this process fill a store that is gone or not there yet. A file beside it says so: if the process is
        killed, nobody begins with an empty store where one was to be restored."""
        self._is_restoring = True
        unfinished = self._unfinished_restore()
        try:
            if unfinished and self.file:
                self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                unfinished.touch()
            yield
        finally:
            if unfinished:
                unfinished.unlink(missing_ok=True)

    def check_is_restored(self) -> None:
        """Raises StoreLost if a restore was killed, so that there is nothing here but a promise."""
        unfinished = self._unfinished_restore()
        if unfinished and unfinished.exists() and not self._is_restoring:
            raise StoreLost(
                f"A restore into {self.file} did not finish. Run `headwater restore` again. To begin with an empty"
                f" store instead, delete {unfinished}."
            )

    def _unfinished_restore(self) -> Path | None:
        return self.file.with_name(self.file.name + UNFINISHED_RESTORE) if self.file else None

    def leave_marker(self) -> None:
        """Remembers beside the file that there is a store, so that nobody starts with an empty one by mistake."""
        if self.file is None or (marker := marker_of(self.file)).exists():
            return
        try:
            marker.write_text(_MARKED.format(name=self.file.name), encoding="utf-8")
        except OSError as error:
            raise StoreUnavailable(f"{marker} cannot be written: {error.strerror}.") from error


def marker_of(file: Path) -> Path:
    return file.with_name(file.name + MARKER)


def is_full_disk(error: BaseException) -> bool:
    """Whether SQLite had no space to write. PostgreSQL's disk is another machine's: its space is not known here."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that what is in the file is not what it wrote. All text that was written is UTF-8."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_unreadable = code == sqlite3.SQLITE_CORRUPT or "Could not decode to UTF-8" in str(error)
    return isinstance(error, sqlite3.DatabaseError) and is_unreadable
