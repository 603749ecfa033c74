"""The page that says how to add a kind of source is followed to the letter."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import headwater.sources
from headwater.sources import KINDS, Kind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "source-kind.md"
CODE = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


def run(name: str, names: dict[str, Any]) -> dict[str, Any]:
    exec(compile(CODE[name], f"{PAGE.name}: {name}", "exec"), names)
    return names


def test_the_page_makes_a_kind_that_passes_its_own_test(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(CODE) == ["sources/status.py", "sources/__init__.py", "tests/sources/test_status.py"]
    status = ModuleType("headwater.sources.status")
    run("sources/status.py", vars(status))
    monkeypatch.setitem(sys.modules, status.__name__, status)
    monkeypatch.setattr(headwater.sources, "status", status, raising=False)
    kinds = run("sources/__init__.py", {**vars(headwater.sources)})["KINDS"]
    assert list(kinds) == [*KINDS, "status"], "the page lists the kinds that there are"
    monkeypatch.setattr(headwater.sources, "KINDS", kinds)
    tests = run("tests/sources/test_status.py", {})
    tests["test_incidents_become_posts"]()


def test_the_page_names_every_field_that_a_kind_can_declare() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## What a kind can declare")[2]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "| `" in line[:3])))
    assert named == set(Kind._fields)
