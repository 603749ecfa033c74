"""Processes that are killed, stopped or run side by side while they send: nothing is lost, repeats can be told."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from support.processes import kill, wait_until
from support.web import ALLOW_LOOPBACK
from webhooks.receiver import Got, Receiver
from webhooks.sending import Sending

# The clock of each new process is past the leases of those before it.
PAST_THE_LEASE = 70
SEND_UNTIL_KILLED = """
import asyncio, sys
from datetime import timedelta
from headwater import wire
from headwater.settings import load

parts = wire.open_parts(load())
ahead = timedelta(seconds=float(sys.argv[1]))
parts.now = lambda: wire.utc_now() + ahead

async def send():
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.follow_log(parts, asyncio.Event()))
        group.create_task(wire.deliver_webhooks(parts, asyncio.Event()))
        print("sending", flush=True)

asyncio.run(send())
"""
Start = Callable[[int], "subprocess.Popen[str]"]


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[Start]:
    """Starts a process that sends; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_one(ahead: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SEND_UNTIL_KILLED, str(ahead)]
        env = {**os.environ, **ALLOW_LOOPBACK, **environ}
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        out = started[-1].stdout
        assert out is not None
        assert out.readline() == "sending\n"
        return started[-1]

    yield start_one
    for process in started:
        if process.poll() is None:
            kill(process)


def stop_between_writes(process: subprocess.Popen[str], sending: Sending) -> None:
    """SQLite has one writer: while a process is stopped in the middle of a write, nobody can take its place."""
    process.send_signal(signal.SIGSTOP)
    while sending.parts.db.is_sqlite and not _can_write(sending):
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)


def _can_write(sending: Sending) -> bool:
    store = sqlite3.connect(sending.parts.db.engine.url.database or "", timeout=0.2, isolation_level=None)
    try:
        store.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    finally:
        store.close()
    return True


def test_a_kill_while_sending_loses_nothing_and_repeats_can_be_told(
    sending: Sending, receiver: Receiver, start: Start
) -> None:
    count, kills = 60, 2
    receiver.delays["/hook"] = 0.005
    made = sending.webhook(f"{receiver.url}/hook").webhook
    sending.publish(*range(count))
    for number in range(kills):
        process = start(number * PAST_THE_LEASE)
        enough = len(receiver.got) + 10
        wait_until(lambda enough=enough: len(receiver.got) >= enough)  # type: ignore[misc]
        kill(process)
    start(kills * PAST_THE_LEASE)
    wait_until(lambda: not sending.look(made).waiting and len(receiver.got) >= count)
    numbers = receiver.numbers()
    first_time = list(dict.fromkeys(numbers))
    assert first_time == list(range(count))
    assert len({one.id for one in receiver.got}) == count
    assert {one.state for one in sending.log(made)} == {"delivered"}


def test_two_processes_side_by_side_send_everything_once(sending: Sending, receiver: Receiver, start: Start) -> None:
    # H84
    paths = [f"/hook{number}" for number in range(6)]
    made = [sending.webhook(receiver.url + path).webhook for path in paths]
    for path in paths:
        receiver.delays[path] = 0.003
    start(0)
    start(0)
    for begin in range(0, 60, 10):
        sending.publish(*range(begin, begin + 10))
    wait_until(lambda: all(len(receiver.at(path)) >= 60 for path in paths))
    wait_until(lambda: not any(sending.look(webhook).waiting for webhook in made))
    assert receiver.overlaps == []
    for path in paths:
        assert receiver.numbers(path) == list(range(60))


def test_a_process_that_was_stopped_past_its_lease_is_fenced(
    sending: Sending, receiver: Receiver, start: Start
) -> None:
    # H85
    released = threading.Event()

    def hold_the_first(got: Got) -> int:
        if len(receiver.got) == 1:
            released.wait(60)
        return 200

    receiver.answers["/hook"] = hold_the_first
    made = sending.webhook(f"{receiver.url}/hook").webhook
    sending.publish(*range(10))
    stopped = start(0)
    wait_until(lambda: receiver.got)
    stop_between_writes(stopped, sending)
    # Its own clock is not past the lease, but past the second after which it looks whether it still has it.
    time.sleep(1.2)
    start(PAST_THE_LEASE)
    wait_until(lambda: len(receiver.got) >= 11 and not sending.look(made).waiting)
    released.set()
    stopped.send_signal(signal.SIGCONT)
    assert stopped.stdout is not None
    assert any("work.lease_lost" in line for line in stopped.stdout)
    kill(stopped)  # by the other's clock its next lease would be over too
    sending.publish(10)
    wait_until(lambda: len(receiver.got) >= 12)
    assert receiver.numbers() == [0, *range(11)]
    wait_until(lambda: {(one.state, one.attempts) for one in sending.log(made)} == {("delivered", 1)})
