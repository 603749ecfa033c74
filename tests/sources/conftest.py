"""Feeds that nobody here wrote, for measuring how well ours reads them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest


def unpacked(archive: Path) -> dict[str, bytes]:
    """The files of an archive by their names, without its folder's."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as archived:
        for member in archived:
            file = archived.extractfile(member)
            if file:
                found[Path(member.name).name] = file.read()
    return found


@pytest.fixture(scope="session")
def real_feeds(measuring_data: Path) -> dict[str, bytes]:
    return unpacked(measuring_data / "feeds" / "real.tar.xz")


@pytest.fixture(scope="session")
def conformance_feeds(measuring_data: Path) -> dict[str, bytes]:
    return unpacked(measuring_data / "feeds" / "conformance.tar.xz")
