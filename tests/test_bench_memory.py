"""That the benchmark of memory still runs, and that folding decides about all posts of its feeds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

import memory  # noqa: E402


def test_memory_is_measured_with_nothing_followed_and_after_a_crawl() -> None:
    if not (shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        pytest.skip("no nginx (scripts/services install nginx)")
    few = ["--sources", "3", "--posts", "20", "--settle", "0"]
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / "memory.py", "--what", "idle,crawl", *few],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0].split() == ["MB", "goal"]
    assert any(line.startswith("nothing followed") for line in lines)
    assert any(line.startswith("3 sources, 20 posts in the window") for line in lines)
    assert any(line.split()[0] == "headwater.parse.process" for line in lines)


def test_the_feeds_have_as_many_posts_as_asked_for_and_all_are_recent(tmp_path: Path) -> None:
    now = datetime(2026, 1, 10, tzinfo=UTC)
    names = memory.write_feeds(tmp_path, sources=4, posts=10, now=now)
    items = [item for name in names for item in etree.parse(tmp_path / name).iter("item")]
    assert len(items) == 10
    assert len({item.findtext("guid") for item in items}) == 10
    for item in items:
        published = datetime.strptime(item.findtext("pubDate"), "%a, %d %b %Y %H:%M:%S %z")
        assert now - timedelta(hours=72) < published <= now


def test_an_environment_is_as_large_as_its_files_and_names_its_largest_packages(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name, size in (("small", 10_000), ("large", 2_000_000)):
        about = packages / f"{name}-1.dist-info"
        about.mkdir(parents=True)
        (packages / f"{name}.bin").write_bytes(b"x" * size)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (about / "RECORD").write_text(f"{name}.bin,,\n{name}-1.dist-info/METADATA,,\n{name}-1.dist-info/RECORD,,\n")
    assert [figure.what.strip() for figure in memory.largest(tmp_path)] == ["large", "small"]
    assert 1.9 < memory.size_mb(tmp_path) < 2.2
