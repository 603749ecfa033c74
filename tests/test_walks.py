"""The walks of docs/architecture.md: what they number exists, once, and is counted as the heading says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "headwater"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^### (.+) \((\d+) files\)$", re.MULTILINE)
STEP = re.compile(r"^(\d+)\. `([^`]+)`: \S", re.MULTILINE)


def walks() -> dict[str, tuple[int, list[tuple[int, str]]]]:
    """The files that each walk numbers, and how many its heading promises."""
    found = {}
    for heading in HEADING.finditer(PAGE):
        body = re.split(r"^##", PAGE[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        steps = [(int(number), file) for number, file in STEP.findall(body)]
        found[heading[1]] = (int(heading[2]), steps)
    return found


def test_the_walks_of_a_post_are_written_down() -> None:
    assert {"An RSS post from due to outbox", "A Reddit post from due to outbox"} < walks().keys()
    assert "A forum thread from due to outbox" in walks()


def test_the_walks_of_an_event_are_written_down() -> None:
    assert {"An event into folding", "An event to a webhook"} < walks().keys()


def test_each_walk_numbers_every_file_once_and_as_many_as_it_says() -> None:
    for name, (promised, steps) in walks().items():
        assert [number for number, _ in steps] == list(range(1, promised + 1)), name
        files = [file for _, file in steps]
        assert len(set(files)) == promised, f"{name} names a file twice"
        for file in files:
            assert (PACKAGE / file).is_file(), f"{name} names {file}"


def test_every_file_that_the_page_names_exists() -> None:
    for name in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:pyx?|md))`", PAGE):
        assert (PACKAGE / name).is_file() or (ROOT / name).is_file(), f"docs/architecture.md names {name}"
