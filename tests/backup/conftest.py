from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import inspect

from headwater.store import migrate
from headwater.store.backup import MADE_WITH_THE_SCHEMA
from headwater.store.db import Database

Rewrite = Callable[..., Path]
EARLIER = "0016"


@pytest.fixture
def rewrite() -> Rewrite:
    """Write a backup again with other content, and a right hash at its end: what an attacker can do."""

    def write(
        file: Path, change: Callable[[dict[str, bytes]], None], more: Callable[[zipfile.ZipFile], None] = lambda _: None
    ) -> Path:
        with zipfile.ZipFile(file) as found:
            members = {name: found.read(name) for name in found.namelist()}
        change(members)
        made = file.with_name("changed.backup")
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
            out.comment = b"0" * 64
            for name, content in members.items():
                out.writestr(name, content)
            more(out)
        content = made.read_bytes()[:-64]
        made.write_bytes(content + sha256(content).hexdigest().encode())
        return made

    return write


@pytest.fixture
def older(rewrite: Rewrite, tmp_path: Path) -> Callable[[Path], Path]:
    """Make a backup into one that an earlier schema would have written."""
    db = Database(f"sqlite:///{tmp_path / 'older.db'}")
    migrate.upgrade(db, EARLIER)
    there = inspect(db.engine)
    known = {table: {column["name"] for column in there.get_columns(table)} for table in there.get_table_names()}
    db.close()

    def take_back(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["schema"] = EARLIER
        for table in list(manifest["tables"]):
            file = f"tables/{table['name']}.jsonl"
            if table["name"] not in known:
                # Nothing that anybody wrote is left out: the upgrade makes the rest again.
                assert table["rows"] == 0 or table["name"] in MADE_WITH_THE_SCHEMA
                manifest["tables"].remove(table)
                del members[file]
                continue
            kept = [place for place, (name, _) in enumerate(table["columns"]) if name in known[table["name"]]]
            table["columns"] = [table["columns"][place] for place in kept]
            rows = [json.loads(line) for line in members[file].splitlines()]
            members[file] = b"".join(json.dumps([row[place] for place in kept]).encode() + b"\n" for row in rows)
        members["manifest.json"] = json.dumps(manifest).encode()

    return lambda file: rewrite(file, take_back)
