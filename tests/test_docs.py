"""Everything that is declared is documented, and the documents are what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def reference() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.documents())


@pytest.mark.parametrize("name", ["settings.md", "commands.md", "events.md", "errors.md", "schedule.md"])
def test_the_reference_says_what_the_code_declares(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert written == reference()[name], "run `.venv/bin/python scripts/reference.py`"


def test_the_architecture_page_names_only_files_that_exist_and_every_folder() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "headwater"
    named = [
        word.strip("`.,;:()") for word in page.split() if word.startswith("`") and word.strip("`.,;:()").endswith(".py")
    ]
    assert named
    for name in named:
        assert (package / name).is_file() or (ROOT / name).is_file(), f"docs/architecture.md names {name}"
    for folder in package.iterdir():
        if (folder / "__init__.py").is_file():
            assert f"`{folder.name}/" in page, f"docs/architecture.md does not speak of {folder.name}/"
