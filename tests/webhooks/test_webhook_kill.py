"""Processes that are killed, stopped or run side by side while they send: nothing is lost, repeats can be told."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest

from support.forked import Forked
from support.processes import WITH_A_CLOCK_AHEAD, StartAhead, kill, starting, stop, wait_until
from support.web import ALLOW_LOOPBACK
from webhooks.receiver import Got, Receiver
from webhooks.sending import Sending

# The clock of each new process is past the leases of those before it.
PAST_THE_LEASE = 70
SEND_UNTIL_KILLED = f"""{WITH_A_CLOCK_AHEAD}

async def send():
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.follow_log(parts, asyncio.Event()))
        group.create_task(wire.deliver_webhooks(parts, asyncio.Event()))
        print("sending", flush=True)

asyncio.run(send())
"""


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[StartAhead]:
    with starting({**ALLOW_LOOPBACK, **environ}, SEND_UNTIL_KILLED, "sending") as start_one:
        yield start_one


def stop_between_writes(process: Forked, sending: Sending) -> None:
    """SQLite has one writer: while a process is stopped in the middle of a write, nobody can take its place."""
    stop(process)
    while sending.parts.db.is_sqlite and not _can_write(sending):
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        stop(process)


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
    sending: Sending, receiver: Receiver, start: StartAhead
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


def test_two_processes_side_by_side_send_everything_once(
    sending: Sending, receiver: Receiver, start: StartAhead
) -> None:
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
    sending: Sending, receiver: Receiver, start: StartAhead
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
