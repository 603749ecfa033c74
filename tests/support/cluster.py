"""A Celery deployment on this machine: workers and beats that tests start, send tasks to, and end as they like."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import redis
from celery import Celery
from celery.result import AsyncResult
from sqlalchemy import func, select, update

from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store.tables import sources
from headwater.wire import Parts
from support.ports import free_port, wait_until_open
from support.processes import wait_until
from support.web import Answer, Asked, Web, rss

APP = "headwater.work.celery_app"
TESTS = str(Path(__file__).resolve().parents[1])


class Process:
    """A `celery` command in a session of its own, which ends with everything that it started."""

    def __init__(self, environ: dict[str, str], log: Path, *command: str) -> None:
        self.log = log
        paths = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
        with log.open("wb") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "celery", *command],
                env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", **environ},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def says(self, words: str) -> bool:
        assert self.popen.poll() is None or words in self.text(), self.text()
        return words in self.text()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """Signals the process and its children."""
        os.killpg(self.popen.pid, number)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.popen.wait()


class Cluster:
    def __init__(self, environ: dict[str, str], logs: Path) -> None:
        self.environ, self._logs = environ, logs
        self.processes: list[Process] = []
        logs.mkdir(parents=True, exist_ok=True)
        broker = environ["CELERY_BROKER_URL"]
        self.redis = redis.Redis.from_url(broker, decode_responses=True)
        self.app = Celery("tests", broker=broker, backend=broker)
        self.app.conf.broker_transport_options = {"global_keyprefix": "celery:"}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self.processes:
            process.kill()
        if error is not None:
            for process in self.processes:
                print(f"--- {process.log.name}\n{process.text()[-6000:]}")
        self.app.close()
        self.redis.close()

    def worker(self, *options: str, app: str = APP, wait: bool = True) -> Process:
        """Starts a worker; returns when it takes tasks."""
        name = f"worker{len(self.processes)}"
        worker = self._start(name, "-A", app, "worker", "--loglevel", "INFO", "-n", f"{name}@test", *options)
        if wait:
            wait_until(lambda: worker.says("ready."))
        return worker

    def beat(self, *options: str) -> Process:
        """Starts a beat with its dispatcher."""
        name = f"beat{len(self.processes)}"
        return self._start(name, "-A", APP, "beat", "--loglevel", "INFO", "--pidfile=", *options)

    def _start(self, name: str, *command: str) -> Process:
        self.processes.append(Process(self.environ, self._logs / f"{name}.log", *command))
        return self.processes[-1]

    def command(self, *given: str) -> str:
        """Runs `celery -A headwater.work.celery_app ...`; returns what it prints."""
        return self._run("-m", "celery", "-A", APP, *given)

    def python(self, program: str) -> str:
        """Runs a program; returns what it prints."""
        return self._run("-c", program)

    def _run(self, *given: str) -> str:
        done = subprocess.run(
            [sys.executable, *given], env={**os.environ, **self.environ}, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def send(self, task: str, *arguments: Any, queue: str = "default", **options: Any) -> AsyncResult:
        return self.app.send_task(task, arguments, queue=queue, **options)

    def result(self, task_id: str) -> Any:
        """Returns the result of a task, once there is one."""
        return self.app.AsyncResult(task_id).get(timeout=120)

    def waiting(self, queue: str) -> int:
        return int(self.redis.llen(f"celery:{queue}"))  # type: ignore[arg-type]

    def unacknowledged(self) -> int:
        return int(self.redis.hlen("celery:unacked"))  # type: ignore[arg-type]

    def wait_until_idle(self) -> None:
        wait_until(lambda: not any(self.waiting(queue) for queue in ("high", "default")) and not self.unacknowledged())


class OwnRedis:
    """A Redis that a test may stop and start. What is in it is lost each time."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server (scripts/services install redis)")
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self._server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        wait_until_open(self.port)

    def pause(self) -> None:
        """Keeps it from answering, as a machine that swaps does."""
        assert self._server
        self._server.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._server
        self._server.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._server:
            self._server.kill()
            self._server.wait()
        self._server = None


def add_feeds(parts: Parts, owner: Reader, world: Web, count: int, delay: float = 0.0) -> list[int]:
    ids = []
    for number in range(count):
        world.pages[f"/{number}"] = Answer(rss(f"{number}"), delay=delay)
        ids.append(parts.db.write_now(follow, owner, world.url(f"/{number}"), parts.now()).source_id)
    return ids


def held_back(world: Web, path: str, post: str = "0") -> threading.Event:
    """Serves a feed of one post that answers when the event is set, or after two minutes."""
    answers = threading.Event()

    def feed(_: Asked) -> Answer:
        answers.wait(120)
        return Answer(rss(post))

    world.pages[path] = feed
    return answers


def count_of(parts: Parts, table: object) -> int:
    return parts.db.read_now(lambda conn: conn.scalar(select(func.count()).select_from(table)) or 0)  # type: ignore[arg-type]


def make_due(parts: Parts) -> None:
    parts.db.write_now(lambda conn: conn.execute(update(sources).values(next_check_at=parts.now())))


def lease(parts: Parts, source_id: int) -> None:
    until = parts.now() + timedelta(minutes=3)
    held = update(sources).where(sources.c.id == source_id).values(lease_owner="somebody", lease_until=until)
    parts.db.write_now(lambda conn: conn.execute(held))
