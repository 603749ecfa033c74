"""Headwater in its own process, started as a person starts it."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from support.ports import free_port, wait_until_open

READY = "Ctrl-C stops it."


@contextmanager
def headwater_process(
    command: str, *options: str, environ: Mapping[str, str] = {}, descriptors: tuple[int, int] | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Runs `headwater up`, or another command that serves pages, for the block; yields the process and its port.

    `descriptors` are its limits of open files, the soft one and the hard one.
    """
    with _started(command, *options, environ=environ, descriptors=descriptors) as (process, port, _):
        yield process, port


@contextmanager
def headwater_runs(command: str, *options: str, environ: Mapping[str, str] = {}) -> Iterator[str]:
    """The same; yields its login link."""
    with _started(command, *options, environ=environ) as (_, port, said):
        yield _link_in(said) if command == "demo" else login_link(environ, port)


def login_link(environ: Mapping[str, str], port: int) -> str:
    """Returns what `headwater login` prints."""
    made = subprocess.run(
        [sys.executable, "-m", "headwater", "login"],
        env={**_clean(), **environ, "HEADWATER_PORT": str(port)},
        check=True,
        capture_output=True,
        text=True,
    )
    return _link_in(made.stdout)


@contextmanager
def _started(
    command: str, *options: str, environ: Mapping[str, str] = {}, descriptors: tuple[int, int] | None = None
) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    port = free_port()

    def few_descriptors() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)

    line = [sys.executable, "-m", "headwater", command, "--port", str(port), *options]
    with subprocess.Popen(
        line,
        env={**_clean(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=few_descriptors,
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while READY not in said:
                line_said = process.stdout.readline()
                assert line_said, f"it did not start: {said}"
                said += line_said
            wait_until_open(port)
            yield process, port, said
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def _link_in(said: str) -> str:
    found = re.search(r"http://\S+/login\S+", said)
    assert found, said
    return found[0]


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
