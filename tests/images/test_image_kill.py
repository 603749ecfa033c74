"""Processes that are killed while they download: every image is saved in the end, once, and whole (B10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from images.painted import png
from images.saving import Saving
from support.processes import WITH_A_CLOCK_AHEAD, StartAhead, kill, starting, wait_until
from support.web import ALLOW_LOOPBACK, Answer, Web

# The clock of each new process is past the leases of those before it.
PAST_THE_LEASE = 310
SAVE_UNTIL_KILLED = f"""{WITH_A_CLOCK_AHEAD}
print("saving", flush=True)
asyncio.run(wire.save_images(parts, asyncio.Event()))
"""


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[StartAhead]:
    with starting({**ALLOW_LOOPBACK, **environ}, SAVE_UNTIL_KILLED, "saving") as start_one:
        yield start_one


def test_kills_while_downloading_lose_nothing_and_save_nothing_twice(
    saving: Saving, world: Web, start: StartAhead
) -> None:
    count, kills = 60, 2
    for number in range(count):
        world.pages[f"/{number}"] = Answer(png(4, 3, bytes([number, 1, 2])), delay=0.01)
    post_id = saving.publish("1", *(world.url(f"/{number}") for number in range(count)))
    for number in range(kills):
        process = start(number * PAST_THE_LEASE)
        enough = len(world.asked) + 15
        wait_until(lambda enough=enough: len(world.asked) >= enough)  # type: ignore[misc]
        kill(process)
    saved = {record.url for record in saving.records(post_id) if record.state == "saved"}
    asked_before = len(world.asked)
    start(kills * PAST_THE_LEASE)
    wait_until(lambda: saving.states() == {"saved": count})
    asked_again = {world.url(path) for path in world.paths()[asked_before:]}
    assert not asked_again & saved
    records = saving.records(post_id)
    assert len({record.content_hash for record in records}) == count
    for number, record in enumerate(records):
        assert (saving.folder / (record.path or "")).read_bytes() == png(4, 3, bytes([number, 1, 2]))


def test_two_processes_side_by_side_ask_for_each_picture_once(saving: Saving, world: Web, start: StartAhead) -> None:
    # H84
    for number in range(40):
        world.pages[f"/{number}"] = Answer(png(4, 3, bytes([number, 1, 2])), delay=0.005)
    start(0)
    start(0)
    saving.publish("1", *(world.url(f"/{number}") for number in range(40)))
    wait_until(lambda: saving.states() == {"saved": 40})
    assert sorted(world.paths()) == sorted(f"/{number}" for number in range(40))
    assert world.overlaps == []
