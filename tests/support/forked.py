"""Processes of Headwater that are forked from one that has loaded it: loading takes longer than most commands run.

Such a process has its own arguments, environment and output, and can be killed like any other. Only its start differs:
a test of what is loaded (`cli/test_start.py`) starts Python.

As a program, this is the process that is forked.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

TESTS = Path(__file__).resolve().parents[1]
# What most commands and loops load, soon or late.
LOADED = (
    "headwater.cli.commands",
    "headwater.dedup.engine",
    "headwater.fetch.curl",
    "headwater.server",
    "headwater.work.crawl_loop",
    "alembic.command",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "uvloop",
)


class Forked:
    """A process that was forked, with as much of `subprocess.Popen` as tests use."""

    def __init__(
        self,
        *words: str,
        env: Mapping[str, str],
        stdin: IO[Any] | int = subprocess.DEVNULL,
        stdout: IO[Any] | int = 1,
        stderr: IO[Any] | int = 2,
    ) -> None:
        """Starts `-m headwater …`, `-c program …` or `file.py …`. With `subprocess.PIPE`, `stdout` has its output."""
        self.args = words
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self._parent, other = socket.socketpair()
        socket.send_fds(_server(), [b"\n"], [other.fileno()])
        other.close()
        if stdout == subprocess.PIPE:
            read, stdout = os.pipe()
            self.stdout = os.fdopen(read, encoding="utf-8")
        with open(os.devnull, "rb") as nothing:
            given = [nothing if stdin == subprocess.DEVNULL else stdin, stdout, stderr]
            numbers = [file if isinstance(file, int) else file.fileno() for file in given]
            asked = json.dumps({"words": words, "env": dict(env), "cwd": str(Path.cwd())}).encode()
            socket.send_fds(self._parent, [len(asked).to_bytes(4)], numbers)
        if self.stdout is not None:
            os.close(numbers[1])
        self._parent.sendall(asked)
        self.pid = self._number()

    def _number(self) -> int:
        said = self._parent.recv(4, socket.MSG_WAITALL)
        assert len(said) == 4, "the process that is forked is gone"
        return int.from_bytes(said, signed=True)

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._parent.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._parent.close()
        return self.returncode

    def communicate(self) -> tuple[str, None]:
        """Reads what is left of the output, and waits for the end."""
        out = ""
        if self.stdout is not None:
            with self.stdout:
                out = self.stdout.read()
        self.wait()
        return out, None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def run(
    *words: str, env: Mapping[str, str], input: str = "", timeout: float = 200, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs `-m headwater …` or `-c program …` to its end; returns what it printed, as `subprocess.run` does."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input.encode())
        given.seek(0)
        process = Forked(*words, env=env, stdin=given, stdout=out, stderr=err)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        done = subprocess.CompletedProcess(words, code, _whole(out), _whole(err))
    if check:
        done.check_returncode()
    return done


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@functools.cache
def _server() -> socket.socket:
    """Starts the process that is forked, once for this test process; it ends when this socket is closed."""
    ours, its = socket.socketpair(type=socket.SOCK_SEQPACKET)
    env = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen([sys.executable, "-m", "support.forked"], env={**env, "PYTHONPATH": paths}, stdin=its)
    its.close()

    @atexit.register
    def end() -> None:
        ours.close()
        server.wait()

    return ours


def serve() -> None:
    """Forks a process for each socket that arrives. That one is the parent of the process that is asked for."""
    from headwater.cli import leave_out_unused

    leave_out_unused()
    for name in LOADED:
        importlib.import_module(name)
    sys.modules["headwater.cli.commands"].program()
    gc.collect()
    gc.freeze()
    asking = socket.socket(fileno=0)
    while descriptors := socket.recv_fds(asking, 1, 1)[1]:
        if os.fork() == 0:
            be_parent(socket.socket(fileno=descriptors[0]))
        os.close(descriptors[0])
        with contextlib.suppress(ChildProcessError):
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
                pass


def be_parent(asking: socket.socket) -> None:
    """Forks the process that is asked for; tells its id, and its exit code in the end."""
    length, descriptors, _, _ = socket.recv_fds(asking, 4, 3)
    asked = asking.recv(int.from_bytes(length), socket.MSG_WAITALL)
    pid = os.fork()
    if pid == 0:
        asking.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        become(**json.loads(asked))
    for descriptor in (0, *descriptors):
        os.close(descriptor)
    asking.sendall(pid.to_bytes(4, signed=True))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # nobody waits
        asking.sendall(code.to_bytes(4, signed=True))
    os._exit(0)


def become(words: list[str], env: dict[str, str], cwd: str) -> None:
    """Runs the program and exits, as Python does when it was started with these arguments."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    serve()
