"""Backups that were cut off, changed or made to do harm are refused as a whole (H52), and kill -9 leaves no half."""

from __future__ import annotations

import json
import os
import random
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backup.conftest import Rewrite
from headwater import wire
from headwater.app import backup, instance
from headwater.errors import BadDocument, HeadwaterError, SchemaMismatch, StoreLost
from headwater.settings import load
from headwater.store.db import Database
from headwater.wire import Parts
from support import forked
from support.forked import Forked
from support.posts import NOON, a_post, a_source, visited
from support.processes import wait_until

POSTS = 3000
IMAGE = "images/ab/" + "c" * 62 + ".png"


@pytest.fixture
def file(sqlite_url: str, tmp_path: Path) -> Path:
    """A backup of a store with one source and three posts."""
    db = Database(sqlite_url)
    source = db.write_now(a_source, instance.owner(db))
    db.write_now(visited, source, [a_post(f"{number}") for number in range(3)])
    backup.write(db, tmp_path / "b.backup", images=tmp_path, key_id=None, now=NOON)
    db.close()
    return tmp_path / "b.backup"


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> Iterator[Parts]:
    yield from _empty(f"sqlite:///{tmp_path / 'empty' / 'headwater.db'}", tmp_path / "empty")


@pytest.fixture
def empty(empty_url: str, tmp_path: Path) -> Iterator[Parts]:
    """A place for a store, on each database in turn."""
    yield from _empty(empty_url.replace("headwater.db", "empty.db"), tmp_path / "empty")


def _empty(url: str, folder: Path) -> Iterator[Parts]:
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": url, "HEADWATER_DATA_DIR": str(folder)}))
    yield parts
    parts.close()


def restore(parts: Parts, file: Path) -> None:
    with backup.opened(file) as archive:
        backup.restore(parts.db, archive, images=wire.image_folder(parts.settings))


def refuses(parts: Parts, file: Path) -> str:
    """The backup is refused, and neither a store nor a file has come of it."""
    with pytest.raises(BadDocument) as refused:
        restore(parts, file)
    assert not instance.is_there(parts.db)
    assert [one for one in wire.image_folder(parts.settings).rglob("*") if one.is_file()] == []
    return str(refused.value.detail)


def test_a_backup_that_was_cut_off_anywhere_is_refused(file: Path, tmp_path: Path) -> None:  # H52
    whole, cut = file.read_bytes(), tmp_path / "cut.backup"
    for length in [0, 1, 63, 64, *random.Random(1).sample(range(len(whole)), 60), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(BadDocument), backup.opened(cut):
            pass


def test_a_backup_of_which_any_byte_was_changed_is_refused(file: Path, tmp_path: Path) -> None:  # H52
    whole, changed = file.read_bytes(), tmp_path / "changed.backup"
    for place in [*random.Random(2).sample(range(len(whole)), 200), len(whole) - 1]:
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        changed.write_bytes(content)
        with pytest.raises(BadDocument), backup.opened(changed):
            pass


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "images/../../evil", "images\\..\\evil", "tables/evil.jsonl", "images/evil.sh"]
)
def test_files_that_lead_elsewhere_are_refused(
    empty_sqlite: Parts, file: Path, rewrite: Rewrite, name: str
) -> None:  # H52
    refuses(empty_sqlite, rewrite(file, lambda members: members.update({name: b"evil"})))
    assert not list(file.parent.parent.rglob("evil*"))


def test_links_are_refused(empty_sqlite: Parts, file: Path, rewrite: Rewrite) -> None:  # H52
    link = zipfile.ZipInfo("images/ab/" + "c" * 62 + ".png")
    link.external_attr = 0o120777 << 16
    said = refuses(empty_sqlite, rewrite(file, lambda _: None, lambda out: out.writestr(link, "/etc/passwd")))
    assert "not a plain file" in said


def test_what_would_grow_beyond_reason_is_refused(empty_sqlite: Parts, file: Path, rewrite: Rewrite) -> None:  # H52
    bomb = b"[" + b" " * (200 * 1024 * 1024)
    assert "grow beyond reason" in refuses(
        empty_sqlite, rewrite(file, lambda members: members.update({"tables/hosts.jsonl": bomb}))
    )


def test_files_that_overlap_are_refused(file: Path, rewrite: Rewrite) -> None:  # H52
    def overlap(out: zipfile.ZipFile) -> None:
        first, second = out.filelist[:2]
        second.header_offset = first.header_offset

    with pytest.raises(BadDocument), backup.opened(rewrite(file, lambda _: None, overlap)):
        pass


Change = Callable[[dict[str, bytes]], None]


def with_manifest(change: Callable[[dict[str, Any]], Any]) -> Change:
    def changed(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return changed


def table(manifest: dict[str, Any], name: str) -> Any:
    return next(one for one in manifest["tables"] if one["name"] == name)


def first_column(manifest: dict[str, Any]) -> Any:
    return table(manifest, "posts")["columns"][0]


def with_row(name: str, *row: Any) -> Change:
    def changed(members: dict[str, bytes]) -> None:
        members[f"tables/{name}.jsonl"] += json.dumps(row).encode() + b"\n"
        with_manifest(lambda manifest: table(manifest, name).update(rows=table(manifest, name)["rows"] + 1))(members)

    return changed


CONTRADICTIONS: dict[str, Change] = {
    "empty manifest": lambda members: members.update({"manifest.json": b"{}"}),
    "no manifest": lambda members: members.pop("manifest.json") and None,
    "no file": lambda members: members.pop("tables/posts.jsonl") and None,
    "no JSON": lambda members: members.update({"tables/posts.jsonl": b"not json\n"}),
    "no rows": lambda members: members.update({"tables/posts.jsonl": b""}),
    "unlisted image": lambda members: members.update({IMAGE: b"picture"}),
    "other image": lambda members: (
        members.update({IMAGE: b"not what its name says"}),
        with_manifest(lambda manifest: manifest.update(images=1))(members),
    )[1],
    "unknown field": with_manifest(lambda manifest: manifest.update(more=1)),
    "other count": with_manifest(lambda manifest: table(manifest, "posts").update(rows=4)),
    "SQL as a column": with_manifest(lambda manifest: first_column(manifest).__setitem__(0, 'id" --')),
    "SQL as a kind": with_manifest(lambda manifest: first_column(manifest).__setitem__(1, "text); --")),
    "another kind": with_manifest(lambda manifest: first_column(manifest).__setitem__(1, "text")),
    "no moment": with_row("hosts", "a", "not a moment", None, None, None),
    "too few values": with_row("hosts", "a"),
    "missing value": with_row("hosts", None, None, None, None, None),
    "too large": with_row("hosts", "a", 10**40, None, None, None),
    "refers to nothing": with_row("source_aliases", "https://a.example/", "", 999),
}
REFUSED_BY_THE_DATABASE = ("another kind", "no moment", "missing value", "too large", "refers to nothing")


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_backup_that_contradicts_itself_is_refused(
    empty_sqlite: Parts, file: Path, rewrite: Rewrite, what: str
) -> None:  # H52
    assert "backup" in refuses(empty_sqlite, rewrite(file, CONTRADICTIONS[what]))


def test_postgresql_refuses_rows_that_contradict_the_schema_as_sqlite_does(
    postgres_url: str, file: Path, tmp_path: Path, rewrite: Rewrite
) -> None:  # H52
    for parts in _empty(postgres_url, tmp_path / "empty"):
        for what in REFUSED_BY_THE_DATABASE:
            assert "backup" in refuses(parts, rewrite(file, CONTRADICTIONS[what]))
        restore(parts, file)


def test_a_backup_of_a_newer_schema_is_refused(empty_sqlite: Parts, file: Path, rewrite: Rewrite) -> None:
    for newer in ({"schema": "9999"}, {"format": 2, "unknown": True}):
        with pytest.raises(SchemaMismatch, match="Update this program"):
            restore(empty_sqlite, rewrite(file, with_manifest(lambda manifest, newer=newer: manifest.update(newer))))  # type: ignore[misc]


def test_what_is_not_a_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 and so on")
    for path in (tmp_path / "no.zip", tmp_path / "missing", tmp_path):
        with pytest.raises(HeadwaterError), backup.opened(path):
            pass


def command(environ: dict[str, str], *words: str) -> Forked:
    return Forked("-m", "headwater", *words, env={**os.environ, **environ})


def test_killing_a_backup_leaves_the_former_file_or_a_whole_one(
    parts: Parts, environ: dict[str, str], tmp_path: Path
) -> None:
    """kill -9 when a first part, most, or nearly all of it is written."""
    many(parts)
    file, beside = tmp_path / "b.backup", tmp_path / ".b.backup.unfinished"
    back_up = ("backup", str(file), "--replace")
    assert command(environ, *back_up).wait() == 0
    whole, former = file.stat().st_size, file.read_bytes()
    for size in (1, whole // 3, whole - 20_000):
        process = command(environ, *back_up)
        wait_until(lambda size=size, process=process: process.poll() is not None or _size(beside) >= size)  # type: ignore[misc]
        process.kill()
        process.wait()
        with backup.opened(file) as archive:
            assert archive.manifest.count("posts") == POSTS
    assert (file.read_bytes() == former) or not beside.exists()
    assert command(environ, *back_up).wait() == 0
    assert not beside.exists()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


KILLED_WHILE_RESTORING = """
import os, signal, sys
from pathlib import Path
from headwater import wire
from headwater.app import backup
from headwater.settings import load
from headwater.store.db import Database
from headwater.store import backup as rows

parts, after = wire.open_parts(load()), int(sys.argv[2])
with backup.opened(Path(sys.argv[1])) as archive:
    given = archive.rows
    def until_killed(columns):
        global after
        for row in given(columns):
            after -= 1
            if after == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield row
    archive.rows = until_killed
    backup.restore(parts.db, archive, images=parts.settings.data_dir / "images")
"""


def test_a_killed_restore_leaves_no_store_and_can_be_run_again(
    parts: Parts, empty: Parts, environ: dict[str, str], tmp_path: Path
) -> None:
    many(parts)
    made = backup.write(parts.db, tmp_path / "b.backup", images=tmp_path, key_id=None, now=NOON)
    url = empty.db.engine.url.render_as_string(hide_password=False)
    there = {**environ, "HEADWATER_DATABASE_URL": url, "HEADWATER_DATA_DIR": str(empty.settings.data_dir)}
    for row in (1, made.rows // 2, made.rows):
        words = (KILLED_WHILE_RESTORING, str(tmp_path / "b.backup"), str(row))
        killed = forked.run("-c", *words, env={**os.environ, **there})
        assert killed.returncode == -signal.SIGKILL
        assert not instance.is_there(empty.db)
        if empty.db.is_sqlite:
            with pytest.raises(StoreLost, match="Run `headwater restore` again"):  # nobody begins with an empty one
                wire.prepare_store(empty)
    restore(empty, tmp_path / "b.backup")
    wire.prepare_store(empty)
    backup.write(empty.db, tmp_path / "again.backup", images=tmp_path, key_id=None, now=NOON)
    with backup.opened(tmp_path / "again.backup") as archive:
        assert archive.manifest.rows == made.rows


def many(parts: Parts) -> None:
    source = parts.db.write_now(a_source, instance.owner(parts.db))
    noise = random.Random(3)
    texts = [noise.randbytes(300).hex() for _ in range(POSTS)]  # which no compression makes small
    parts.db.write_now(visited, source, [a_post(f"{n}", content=f"<p>{words}</p>") for n, words in enumerate(texts)])
