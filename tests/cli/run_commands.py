"""Runs commands for `test_output.py`: each line of standard input is one, and each answer says what its reader got.

The program is imported once and forked for each command, because importing it takes longer than most commands run.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from headwater.cli import main
from headwater.cli.commands import program

STORE = Path(os.environ["HEADWATER_DATA_DIR"])
UNTIL_READ = 0.5  # seconds
LONGEST = 120


def fill(write: int) -> None:
    """Makes a pipe non-blocking and full, with empty lines."""
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write, False)
    try:
        while os.write(write, b"\n"):
            pass
    except BlockingIOError:
        pass


def drained(read: int) -> str:
    got = b""
    while piece := os.read(read, 65_536):
        got += piece
    return got.decode()


def start(words: list[str], output: int, errors: int) -> int | None:
    """Forks. Returns None in the new process, whose output goes to these, and the id of it in this one."""
    pid = os.fork()
    if pid:
        return pid
    shutil.rmtree(STORE.with_name("copy"), ignore_errors=True)
    shutil.copytree(STORE, STORE.with_name("copy"))
    os.environ["HEADWATER_DATA_DIR"] = str(STORE.with_name("copy"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    sys.argv = ["headwater", *words]
    return None


def answered(words: list[str], reader: str) -> dict[str, Any] | None:
    """Runs a command and reads its output as such a reader would. Returns None in the process of the command."""
    read, write = os.pipe()
    trouble = os.memfd_create("trouble")
    if reader == "slow":
        fill(write)
    pid = start(words, write, write if reader != "leaves" or "--json" not in words else trouble)
    if pid is None:
        os.close(read)
        os.close(write)
        return None
    os.close(write)
    if reader == "leaves":
        os.close(read)
        out = ""
    else:
        time.sleep(UNTIL_READ if reader == "slow" else 0)
        out = drained(read)
        os.close(read)
    _, status = os.waitpid(pid, 0)
    said = os.pread(trouble, 65_536, 0).decode()
    os.close(trouble)
    # An error in JSON is an answer, not trouble.
    said = "".join(line for line in said.splitlines() if not line.startswith('{"error"'))
    return {"code": os.waitstatus_to_exitcode(status), "out": out} | ({"trouble": said} if reader == "leaves" else {})


program()  # imports all commands
while line := sys.stdin.readline():
    answer = answered(**json.loads(line))
    if answer is None:
        main()
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
