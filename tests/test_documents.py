"""The table of contracts: every row names a file and a test, both exist, and the test shows the row's names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "documents.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## What is kept")[2].partition("## What differs")[0]
# Names of fields, variables, tasks, topics and keys; what a key names in brackets is left out.
WORD = re.compile(r"`([A-Za-z][A-Za-z_0-9.:-]+?)(?:\{[a-z_]+\})?`")


METHODS = {"POST", "PATCH", "GET"}


class Contract(NamedTuple):
    document: str
    words: str
    place: str
    test: str


def contracts() -> list[Contract]:
    rows = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]
    return [Contract(*(cell.strip() for cell in row.strip("|").split("|"))) for row in rows]


def test_every_document_has_contracts() -> None:  # A14, C12, C13, E13
    assert {one.document for one in contracts()} == {"crawler", "boards", "folding", "feeds", "events"}
    assert len(contracts()) >= 45


@pytest.mark.parametrize("contract", contracts(), ids=lambda one: one.words[:60])
def test_each_contract_is_kept_where_the_table_says_and_tested(contract: Contract) -> None:
    place = ROOT / "src" / "headwater" / contract.place.strip("`")
    assert place.is_file(), place
    test = ROOT / contract.test.strip("`")
    assert test.is_file(), test
    shown = test.read_text(encoding="utf-8")
    for name in set(WORD.findall(contract.words)) - METHODS:
        assert name in shown, f"{test.name} says nothing of {name}"
