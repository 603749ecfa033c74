"""A separate PostgreSQL, so that its CPU can be counted with that of the program that uses it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

import corpus
from peers import CannotBeHad


class Database(NamedTuple):
    url: str
    server: int  # process id


@contextmanager
def fresh_database(folder: Path) -> Iterator[Database]:
    """Starts a server with its data in `folder`, yields an empty database, and stops the server."""
    # The script keeps one set of servers for each checkout; a copy of it elsewhere has its own.
    services = folder / "scripts" / "services"
    services.parent.mkdir()
    shutil.copy(corpus.ROOT / "scripts" / "services", services)
    try:
        started = subprocess.run([services, "up", "postgres"], capture_output=True, text=True)
        if started.returncode != 0:
            raise CannotBeHad(started.stderr.strip())
        url = re.findall(r"POSTGRES_URL=(\S+)/postgres", _answer(services, "env"))[0]
        process = int(re.findall(r"postgres: .* process (\d+)", _answer(services, "status"))[0])
        with psycopg.connect(f"{url}/postgres", autocommit=True) as server:
            server.execute("CREATE DATABASE bench")
        yield Database(f"{url}/bench", process)
    finally:
        subprocess.run([services, "clean"], stdout=subprocess.DEVNULL)


def _answer(services: Path, command: str) -> str:
    return subprocess.run([services, command], capture_output=True, text=True, check=True).stdout
