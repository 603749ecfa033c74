"""That the benchmark of polling still runs, and that its copies of feeds are what they claim to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

from corpus import with_other_ids  # noqa: E402


def test_polling_is_measured_for_new_and_for_unchanged_feeds(tmp_path: Path) -> None:
    if not (shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        pytest.skip("no nginx (scripts/services install nginx)")
    nowhere = {"HEADWATER_TEST_DATA": str(tmp_path / "nothing"), "HEADWATER_BENCH_CACHE": str(tmp_path / "cache")}
    answer = subprocess.run(
        [
            sys.executable,
            ROOT / "bench" / "poll.py",
            "--feeds",
            "5",
            "--peers",
            "",
            "--ways",
            "plain",
            "--curve",
            "",
            "--stores",
            "",
        ],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert answer.returncode == 0, answer.stderr
    assert "5 feeds" in answer.stdout.splitlines()[0]
    assert "made-up feeds" in answer.stdout.splitlines()[0]
    (ours,) = [line for line in answer.stdout.splitlines() if line.startswith("headwater")]
    assert ours.split()[-2] == "5"


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        (
            b"<item><guid isPermaLink='false'>a</guid><link>http://a.example/1</link></item>",
            b"<item><guid isPermaLink='false'>a-copy7</guid><link>http://a.example/1-copy7</link></item>",
        ),
        (
            b"<entry><id><![CDATA[tag:a]]></id><link rel='self' href='http://a.example/'/></entry>",
            b"<entry><id><![CDATA[tag:a-copy7]]></id><link rel='self' href='http://a.example/-copy7'/></entry>",
        ),
        (
            b'<item rdf:about="http://a.example/1"><link>http://a.example/1</link></item>',
            b'<item rdf:about="http://a.example/1-copy7"><link>http://a.example/1-copy7</link></item>',
        ),
        (
            b'{"items": [{"id": "1", "url": "http://a.example/1", "title": "id"}]}',
            b'{"items": [{"id": "1-copy7", "url": "http://a.example/1-copy7", "title": "id"}]}',
        ),
    ],
)
def test_a_copy_of_a_feed_differs_in_ids_and_links_alone(feed: bytes, expected: bytes) -> None:
    assert with_other_ids(feed, 7) == expected
