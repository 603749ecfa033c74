"""Real forum pages, which are no part of the project: how much of what people found on them is found."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from statistics import mean

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from pages_forum import Measured, guesses, is_held_out, measured


@pytest.fixture(scope="module")
def folder(measuring_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = measuring_data / "pages" / "pages.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no pages to measure with: {archive} is not there")
    folder = tmp_path_factory.mktemp("pages")
    # One pass: unpacking takes longer than reading all the pages.
    with tarfile.open(archive, "r|xz") as packed:
        for member in packed:
            content = packed.extractfile(member) if "wcxb/forum/" in member.name else None
            if content:
                (folder / Path(member.name).name).write_bytes(content.read())
    return folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> list[Measured]:
    return list(measured(folder))


def test_most_of_what_stands_on_real_pages_is_found_and_little_is_added(pages: list[Measured]) -> None:
    assert mean(page.shares.found for page in pages) > 0.88
    assert mean(page.shares.added for page in pages) < 0.10


def test_pages_that_nobody_looked_at_are_read_as_well(pages: list[Measured]) -> None:
    held_out = [page for page in pages if is_held_out(page.name)]
    assert mean(page.shares.found for page in held_out) > 0.80


def test_posts_have_names_and_dates(pages: list[Measured]) -> None:
    assert sum(page.named for page in pages) > 0.9 * sum(page.posts for page in pages)
    assert sum(page.dated for page in pages) > 0.7 * sum(page.posts for page in pages)


def test_known_software_is_read_without_its_profile_almost_as_well(folder: Path) -> None:
    found = list(guesses(folder))
    assert mean(page.words for page in found) > 0.88
    assert mean(page.names for page in found) > 0.75
    assert mean(page.days for page in found) > 0.82
