"""The command line. Commands print JSON lines with `--json`. Exit codes: 0 ok, 1 failed, 2 bad usage."""

from __future__ import annotations

import gc
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from typing_extensions import Buffer


def main() -> None:
    os.umask(0o077)  # nobody else may read the store, its key and its images
    sys.stdout, sys.stderr = complete(sys.stdout), complete(sys.stderr)
    gc.disable()
    leave_out_unused()
    from headwater.cli.commands import program_for
    from headwater.cli.session import fail

    program = program_for(sys.argv[1:])
    # What is loaded stays until the end: the collector need not look at it, neither now nor when Python exits.
    gc.freeze()
    gc.enable()
    try:
        program()
    except HeadwaterError as error:
        sys.exit(fail(error))


class CompleteOutput(io.RawIOBase):
    """A file descriptor that loses no byte, however slowly somebody reads.

    One write(2) may take only a part of what it is given: when a signal interrupts it, when the io_uring of uvloop does
    (it has no signal, and may come after the loop was closed), or when another process that shares the pipe has made it
    non-blocking. With PYTHONUNBUFFERED, which containers set, Python drops the rest without an error.

    If the reader closes the pipe (`headwater stream | head`), the rest goes nowhere and the command ends as usual.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        left = memoryview(data).cast("B")
        length = len(left)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except BrokenPipeError:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._descriptor)
                os.close(nowhere)
        return length


def complete(stream: TextIO) -> TextIO:
    """Returns a stream to the same place that loses nothing. A terminal, and errors, get each line at once."""
    if stream is None:  # the process that started us closed it
        return stream
    at_once = stream.isatty() or stream is sys.stderr
    raw = io.BufferedWriter(CompleteOutput(stream.fileno()))
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, line_buffering=at_once)


def leave_out_unused() -> None:
    """Keeps libraries from loading what we never use. structlog would load rich and pygments, 6 MB, for tracebacks in
    colour; FastAPI would load pydantic 1, more than 1 MB, to ask whether any of our models is one of its."""
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]  # as an import that fails
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog.tracebacks

    assert structlog.tracebacks
    del sys.modules["rich"]  # tables and progress bars are drawn with it
