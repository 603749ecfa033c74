"""What each kind of source declares is consistent, and nobody outside `sources` goes by a kind's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.sources import DEFAULT, KINDS, Kind

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "headwater"
EVERY = [pytest.param(kind, id=kind.name) for kind in KINDS.values()]


@pytest.mark.parametrize("kind", EVERY)
def test_a_kind_is_listed_by_its_name_and_has_words_for_people(kind: Kind) -> None:
    assert KINDS[kind.name] is kind
    assert kind.label
    assert kind.plural not in ("", kind.label)


@pytest.mark.parametrize("kind", EVERY)
def test_items_belong_to_lists_and_have_a_name(kind: Kind) -> None:
    assert (kind.read_item is not None) == bool(kind.items)
    assert kind.is_list or kind.read_item is None


@pytest.mark.parametrize("kind", EVERY)
def test_a_kind_that_is_not_fetched_at_its_address_is_known_by_what_a_person_types(kind: Kind) -> None:
    assert kind.at_address == (kind.address_of is None)


def test_what_nobody_recognises_by_its_spelling_is_a_feed() -> None:
    assert DEFAULT.name == "rss"
    assert DEFAULT.address_of is None
    assert DEFAULT.at_address


def test_only_what_is_asked_through_an_api_of_its_own_says_so() -> None:
    assert {kind.name: kind.access for kind in KINDS.values() if kind.access} == {"reddit": "Reddit", "x": "X"}


def compared(path: Path) -> Iterator[int]:
    """The lines on which something is compared with the name of a kind."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            within = [inner for side in (node.left, *node.comparators) for inner in ast.walk(side)]
            if any(isinstance(one, ast.Constant) and one.value in KINDS for one in within):
                yield node.lineno


def test_no_other_package_compares_the_name_of_a_kind() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("sources", "sim")  # the simulated internet is made of them
        for line in compared(path)
    ]
    assert found == []
