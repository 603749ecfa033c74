"""Every promise is shown by a test, or the page says that it is not built yet."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from support.scripts import load_script

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = {"A": 15, "B": 10, "C": 14, "D": 12, "E": 13, "F": 12, "H": 98}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("scripts/promises.py")


@pytest.fixture(scope="module")
def named(script: ModuleType) -> set[str]:
    """The codes that tests name."""
    return {mark.code for mark in script.find_marks()}


def test_no_promise_is_left_out(script: ModuleType) -> None:
    wanted = [f"{letter}{number}" for letter, last in NUMBERS.items() for number in range(1, last + 1)]
    assert script.load().codes() == wanted


def test_every_promise_that_is_built_is_shown_by_a_test(script: ModuleType, named: set[str]) -> None:
    promises = script.load()
    assert [code for code in promises.codes() if code not in named | promises.not_built.keys()] == []


def test_every_bad_thing_has_a_test(script: ModuleType, named: set[str]) -> None:
    without = {code for code in script.load().codes() if code.startswith("H")} - named
    assert without == set()


def test_a_promise_that_a_test_shows_is_not_said_to_be_missing(script: ModuleType, named: set[str]) -> None:
    assert sorted(named & script.load().not_built.keys()) == []


def test_what_is_said_to_be_missing_are_promises(script: ModuleType) -> None:
    promises = script.load()
    assert sorted((promises.not_built | promises.partly).keys() - set(promises.codes())) == []
    assert sorted(promises.not_built.keys() & promises.partly.keys()) == []


def test_tests_name_no_promise_that_does_not_exist(script: ModuleType, named: set[str]) -> None:
    assert sorted(named - set(script.load().codes())) == []


def test_the_page_is_up_to_date(script: ModuleType) -> None:
    written = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    assert written == script.document(), "run `make docs`"


def test_a_mark_belongs_to_the_test_it_is_in_above_or_used_by(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "tests" / "test_marks.py"
    file.parent.mkdir()
    file.write_text(
        '"""A file about C1-C2."""\n'
        'LIES = ["x"]  # H1\n'
        "def lie(): return LIES\n"
        "# B1\n"
        "def test_above(): ...\n"
        "@parametrize(lie())\n"
        "def test_using(): ...\n"
        "def test_within():\n"
        "    # A1\n"
        '    return "B2"\n'
    )
    marks = {(mark.code, mark.test) for mark in script.find_marks(file.parent)}
    of_the_file = {("C1", script.WHOLE_FILE), ("C2", script.WHOLE_FILE)}
    assert marks == of_the_file | {("H1", "test_using"), ("B1", "test_above"), ("A1", "test_within")}
