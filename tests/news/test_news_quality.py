"""How well articles are found on real pages, with floors. Needs the measuring data."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from support.scripts import load_script

PAGES = 60  # of each set; all of them take a minute


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_script("bench/pages.py")


def test_the_measures_are_those_of_the_benchmarks(bench: ModuleType) -> None:
    truth = bench.Truth("a", "aeb", b"", "", "one two three four five")
    assert bench.quality([(truth, "one two three four five")], "aeb").f1 == 1.0
    half = bench.quality([(truth, "one two three four")], "aeb")
    assert (half.precision, half.recall) == (1.0, 0.5)
    words = bench.quality([(truth._replace(set="wcxb"), "Five, four and six")], "wcxb")
    assert (words.precision, words.recall) == (0.5, 0.4)


def test_articles_are_found_at_least_as_well_as_by_trafilatura_alone(measuring_data: Path, bench: ModuleType) -> None:
    held = [page for page in bench.truths(measuring_data / "pages" / "pages.tar.xz") if page.held_out]
    chosen = [page for name in ("aeb", "wcxb") for page in [one for one in held if one.set == name][:PAGES]]
    results = bench.measured(chosen, {"ours": bench.ours, "alone": bench.alone})
    for name, floor in (("aeb", 0.965), ("wcxb", 0.94)):
        ours, alone = (bench.quality(results[way][0], name).f1 for way in ("ours", "alone"))
        assert ours >= floor
        assert ours >= alone
