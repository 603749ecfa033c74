"""Every kind of attack that the product can meet is shown by a test, which names its number."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"#[^\n]*?\bH\d+[^\n]*")
NUMBER = re.compile(r"\bH(\d+)\b")

# What is fetched and shown has the numbers up to 63. These need a feature that does not exist:
NOT_YET = {
    52: "there is no backup to restore",
    61: "nothing is exported as CSV",
}


def test_every_number_that_applies_is_named_by_a_test() -> None:
    comments = [comment for file in TESTS.rglob("test_*.py") for comment in NAMED.findall(file.read_text("utf-8"))]
    named = {int(number) for comment in comments for number in NUMBER.findall(comment)}
    assert sorted(set(range(1, 64)) - named - NOT_YET.keys()) == []
