"""Who may import whom. The rule is the table below; docs/architecture.md explains it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "headwater"
WORDS = {"model", "errors", "urls", "text", "ids", "waiting"}
PATH = WORDS | {"sources", "fetch", "parse", "store", "events"}
CORE = PATH | {"access", "follow", "crawl", "dedup", "consumers", "accounts", "coordination", "fleet"}
MAY_IMPORT = {
    "errors": set(),
    "model": set(),
    "urls": {"errors"},
    "text": {"urls"},
    "ids": set(),
    "waiting": set(),
    "sources": WORDS,
    "fetch": WORDS,
    "store": WORDS,
    "dedup": WORDS,
    "fleet": WORDS,
    "coordination": WORDS,
    "parse": WORDS | {"sources", "fetch"},
    "events": WORDS | {"store"},
    "consumers": WORDS | {"store", "events", "dedup", "fleet"},
    "accounts": WORDS | {"store"},
    "access": PATH,
    "follow": PATH | {"access"},
    "crawl": PATH | {"access", "follow"},
    "app": CORE,
    "work": CORE | {"app"},
    "work.celery_app": CORE | {"app", "work", "wire", "settings"},
    "settings": {"errors"},
    "sim": set(),
    "sim.week": WORDS | {"sim", "wire", "settings", "store", "crawl", "access", "follow", "parse", "work"},
    "wire": CORE | {"settings", "app", "work"},
    "http": CORE | {"wire", "app"},
    "api": WORDS | {"wire", "app", "http"},
    "web": WORDS | {"wire", "app", "http"},
    "server": WORDS | {"wire", "app", "events", "http", "api", "web"},
    "cli": WORDS | {"wire", "settings", "app", "server", "sim"},
    "__main__": {"cli"},
    "__init__": set(),
}
# The ways in call use cases only. What these return are types of the packages behind them, which may be named.
WAYS_IN = {"api", "web", "cli"}


def part(path: Path) -> str:
    """The folder or file below the package. A simulated week is a way in, unlike the world it takes place in.

    So is Celery's application, unlike the rest of `work`.
    """
    parts = path.relative_to(PACKAGE).parts
    if parts == ("work", "celery_app.py"):
        return "work.celery_app"
    return "sim.week" if parts[:2] == ("sim", "week") else parts[0].removesuffix(".py")


class Import(NamedTuple):
    part: str
    name: str

    @property
    def is_type(self) -> bool:
        return self.name[:1].isupper() and not self.name.isupper()


def imports(path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "headwater":
            names = [(f"headwater.{alias.name}", "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            if module.startswith("headwater.") and "__version__" not in module:
                yield Import(module.split(".")[1], name)


def test_everybody_imports_only_whom_they_may() -> None:
    broken = [
        f"{path.relative_to(PACKAGE)} imports {one.name or 'all'} of {one.part}"
        for path in PACKAGE.rglob("*.py")
        for one in imports(path)
        if one.part != part(path) and one.part not in MAY_IMPORT[part(path)]
        if not (part(path) in WAYS_IN and one.part in CORE and one.is_type)
    ]
    assert broken == []


def test_only_the_composition_root_and_the_command_line_read_settings() -> None:
    readers = {part(path) for path in PACKAGE.rglob("*.py") if "settings" in {one.part for one in imports(path)}}
    assert readers - {"settings"} <= {"wire", "cli", "sim.week", "work.celery_app"}


def test_sql_is_only_in_the_store() -> None:
    drivers = ("import sqlite3", "import psycopg", "exec_driver_sql", ".execute(")
    for path in PACKAGE.rglob("*.py"):
        if part(path) != "store":
            text = path.read_text(encoding="utf-8")
            assert not any(word in text for word in drivers), (
                f"{path.relative_to(PACKAGE)} talks to the database itself"
            )


def test_no_file_and_no_function_outgrows_a_readers_patience() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "migrations" in path.parts:
            continue
        source = path.read_text(encoding="utf-8")
        assert source.count("\n") <= 500, f"{path} is too long"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 60, f"{path}:{node.lineno} {node.name} is too long"


def test_no_folder_holds_more_modules_than_one_can_look_through() -> None:
    for folder in {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE / "store" / "migrations" / "versions"}:
        modules = [*folder.glob("*.py"), *folder.glob("*.pyx")]
        assert len([path for path in modules if path.name != "__init__.py"]) <= 20, f"{folder} has too many modules"


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
