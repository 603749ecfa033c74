"""Images are downloaded once, kept under the name of their content, and what goes wrong is said (B7)."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pytest
import structlog

from headwater import wire
from headwater.store.images import files
from headwater.work import images
from images.painted import HTML, SVG, jpeg, png
from images.saving import Saving, opened
from support.web import Answer, Asked, Web


async def test_a_picture_is_saved_with_its_kind_and_size(saving: Saving, world: Web) -> None:
    # B7
    data = png(40, 30)
    world.pages["/spring"] = Answer(data, headers={"Content-Type": "text/html"})
    post_id = saving.publish("1", world.url("/spring"))
    async with saving.running():
        await saving.until(lambda: saving.states() == {"saved": 1})
    [record] = saving.records(post_id)
    assert (record.type, record.size, record.width, record.height) == ("image/png", len(data), 40, 30)
    assert record.metadata == {"declared_type": "text/html"}
    assert record.path is not None
    assert record.content_hash == files.hash_of(data)
    assert saving.files() == [saving.folder / record.path]
    assert (saving.folder / record.path).read_bytes() == data
    assert record.path == f"{record.content_hash[:2]}/{record.content_hash[2:]}.png"


async def test_one_address_is_asked_once_and_one_content_is_kept_once(saving: Saving, world: Web) -> None:
    # B7
    for path in ("/a", "/b", "/c"):
        world.pages[path] = Answer(png())
    saving.publish("1", world.url("/a"), world.url("/b"))
    async with saving.running():
        await saving.until(lambda: saving.states() == {"saved": 2})
        saving.publish("2", world.url("/a"), world.url("/c"))
        await saving.until(lambda: saving.states() == {"saved": 3})
    assert sorted(world.paths()) == ["/a", "/b", "/c"]
    assert len(saving.files()) == 1


async def test_each_failure_says_why_and_whether_it_is_for_good(saving: Saving, world: Web) -> None:
    # H34, H63
    world.pages |= {
        "/svg": Answer(SVG, headers={"Content-Type": "image/png"}),
        "/page": Answer(HTML, headers={"Content-Type": "image/png"}),
        "/gone": Answer("", 404),
        "/broken": Answer("", 500),
        "/large": Answer(png() + b"\0" * 6_000_000),
        "/bomb": Answer(gzip.compress(png() + b"\0" * 50_000_000), headers={"Content-Encoding": "gzip"}),
        "/inside": Answer("", 302, {"Location": "http://169.254.169.254/latest"}),
    }
    names = ("svg", "page", "gone", "broken", "large", "bomb", "inside")
    post_id = saving.publish("1", *(world.url(f"/{name}") for name in names))
    async with saving.running():
        await saving.until(lambda: all(record.tried_at for record in saving.records(post_id)))
    found = {record.url.rpartition("/")[2]: record for record in saving.records(post_id)}
    assert {name: (record.state, record.error_code) for name, record in found.items()} == {
        "svg": ("skipped", "not_an_image"),
        "page": ("waiting", "not_an_image"),
        "gone": ("failed", "status_refused"),
        "broken": ("waiting", "status_refused"),
        "large": ("skipped", "answer_too_large"),
        "bomb": ("skipped", "answer_too_large"),
        "inside": ("skipped", "address_refused"),
    }
    assert all(record.error for record in found.values())
    assert saving.files() == []


async def test_a_picture_that_failed_is_saved_when_its_server_is_well_again(saving: Saving, world: Web) -> None:
    answers = [Answer("", 500), Answer(HTML), Answer(jpeg(4, 3))]
    world.pages["/late"] = lambda asked: answers.pop(0)
    saving.publish("1", world.url("/late"))
    async with saving.running():
        for count in (1, 2, 3):
            await saving.until(lambda count=count: len(world.asked) == count)  # type: ignore[misc]
            await saving.until(lambda: saving.records(1)[0].attempts == len(world.asked))
            saving.turn_clock(hours=2)
    assert saving.states() == {"saved": 1}
    assert saving.records(1)[0].error is None


async def test_a_host_that_asks_for_quiet_gets_it(saving: Saving, world: Web) -> None:
    busy = world.url("").replace("127.0.0.1", "localhost")
    for path in ("/a", "/b"):
        world.pages[path] = Answer("", 429, {"Retry-After": "3600"})
    world.pages["/elsewhere"] = Answer(png())
    saving.publish("1", f"{busy}/a", f"{busy}/b")
    async with saving.running():
        await saving.until(lambda: any(record.tried_at for record in saving.records(1)))
        saving.turn_clock(minutes=30)
        asked = len(world.asked)
        saving.publish("2", world.url("/elsewhere"))
        await saving.until(lambda: saving.states() == {"saved": 1, "waiting": 2})
    assert world.paths()[asked:] in (["/elsewhere"], ["/b", "/elsewhere"])  # the other one may have been under way


async def test_nothing_is_downloaded_where_it_is_off(environ: dict[str, str], world: Web) -> None:
    world.pages["/a"] = Answer(png())
    with opened({**environ, "HEADWATER_IMAGES": "off"}) as saving:
        saving.publish("1", world.url("/a"))
        async with saving.running():
            pass
        assert await wire.heal_images(saving.parts) == 0
        assert saving.states() == {"waiting": 1}
    assert world.asked == []


async def test_files_take_no_more_than_they_may(environ: dict[str, str], world: Web) -> None:
    environ["HEADWATER_IMAGES_TOTAL_MB"] = "1"
    for number in range(3):
        world.pages[f"/{number}"] = Answer(png(colour=bytes([number] * 3)) + b"\0" * 1_048_576)
    with opened(environ) as saving, structlog.testing.capture_logs() as log:
        saving.publish("1", world.url("/0"))
        async with saving.running():
            await saving.until(lambda: saving.states() == {"saved": 1})
            saving.turn_clock(minutes=2)
            saving.publish("2", world.url("/1"), world.url("/2"))
            await saving.until(lambda: any(line["event"] == "images.full" for line in log))
        assert saving.states() == {"saved": 1, "waiting": 2}
    assert world.paths() == ["/0"]


async def test_a_disk_that_takes_nothing_is_said_and_stops_nothing_else(saving: Saving, world: Web) -> None:
    # H91: a folder that cannot be made stands for a full disk; both are an OSError of the first write
    world.pages["/a"] = Answer(png())
    saving.folder.parent.mkdir(parents=True, exist_ok=True)
    saving.folder.write_text("a file where the folder should be")
    post_id = saving.publish("1", world.url("/a"))
    async with saving.running():
        await saving.until(lambda: saving.records(post_id)[0].error)
        [record] = saving.records(post_id)
        assert (record.state, record.attempts, record.error_code) == ("waiting", 0, "store_unavailable")
        assert "crawling goes on" in (record.error or "")
        saving.publish("2")
        saving.folder.unlink()
        saving.turn_clock(minutes=6)
        await saving.until(lambda: saving.states() == {"saved": 1})


async def test_a_full_disk_leaves_no_half_file(saving: Saving, world: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    # H91: no disk of a test can be filled, so the operating system's call fails as it would
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    world.pages["/a"] = Answer(png())
    post_id = saving.publish("1", world.url("/a"))
    monkeypatch.setattr(os, "fsync", full)
    async with saving.running():
        await saving.until(lambda: saving.records(post_id)[0].error)
    assert "No space left on device" in (saving.records(post_id)[0].error or "")
    assert saving.files() == []


async def test_files_without_a_record_go_and_records_without_a_file_are_filled_again(
    saving: Saving, world: Web
) -> None:
    for number in range(3):
        world.pages[f"/{number}"] = Answer(png(colour=bytes([number] * 3)))
    post_id = saving.publish("1", *(world.url(f"/{number}") for number in range(3)))
    async with saving.running():
        await saving.until(lambda: saving.states() == {"saved": 3})
        kept, gone, cut = (saving.folder / (record.path or "") for record in saving.records(post_id))
        gone.unlink()
        cut.write_bytes(b"half")
        old, fresh, unfinished = (
            Path(saving.folder / name) for name in (f"cd/{'e' * 62}.png", f"ff/{'f' * 62}.png", ".new-1")
        )
        for file in (old, fresh, unfinished):
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(png())
        for file in (old, unfinished, kept):
            os.utime(file, (time.time() - 7200,) * 2)
        mine = saving.folder / "cd" / "notes.txt"
        mine.write_text("a person's")
        os.utime(mine, (time.time() - 7200,) * 2)
        assert await wire.heal_images(saving.parts) == 4
        await saving.until(lambda: saving.states() == {"saved": 3})
    assert set(saving.files()) == {kept, gone, cut, fresh, mine}
    assert cut.read_bytes() == world.pages["/2"].body  # type: ignore[union-attr]
    assert sorted(world.paths()) == ["/0", "/1", "/1", "/2", "/2"]


async def test_stopping_leaves_what_is_under_way_to_its_lease(environ: dict[str, str], world: Web) -> None:
    environ["HEADWATER_SHUTDOWN_SECONDS"] = "0"
    world.pages["/slow"] = Answer(png(), delay=3)
    with opened(environ) as saving:
        saving.publish("1", world.url("/slow"))
        async with saving.running():
            await saving.until(lambda: world.asked)
        assert saving.states() == {"waiting": 1}
        world.pages["/slow"] = Answer(png())
        saving.turn_clock(seconds=images.LEASE.total_seconds() + 1)
        async with saving.running():
            await saving.until(lambda: saving.states() == {"saved": 1})


async def test_it_says_which_kinds_are_wanted(saving: Saving, world: Web) -> None:
    got: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        got.append(asked)
        return Answer(png())

    world.pages["/a"] = answer
    saving.publish("1", world.url("/a"))
    async with saving.running():
        await saving.until(lambda: saving.states() == {"saved": 1})
    assert "svg" not in got[0].headers["accept"]
    assert "referer" not in got[0].headers
