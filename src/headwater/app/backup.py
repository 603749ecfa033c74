"""Backups: the whole store in one file, and a store out of such a file. `headwater backup` and `headwater restore`.

The file is a zip archive: `manifest.json`, one file of JSON lines for each table, and the images. Its last 64 bytes are
the SHA-256 of everything before them (to zip, they are a comment), so that a change anywhere is found before anything
is restored. The key that encrypts passwords is not in it; the manifest says which key it was.
"""

from __future__ import annotations

import fcntl
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, BinaryIO

import msgspec
import orjson
from sqlalchemy import Connection

from headwater import __version__
from headwater.accounts.vault import key_id_of
from headwater.errors import AlreadyThere, BadDocument, BadInput, SchemaMismatch, StoreUnavailable
from headwater.store import backup, migrate
from headwater.store.backup import Columns, Reading, Row
from headwater.store.db import Database
from headwater.store.images import files

FORMAT = 1
MANIFEST = "manifest.json"
UNFINISHED = ".unfinished"
DIGEST = 64  # hexadecimal digits of a SHA-256
COMPRESSION = 3  # of 9: half the time of the usual 6 for a tenth more bytes
MOST_MANIFEST = 4 * 1024 * 1024
MOST_ROW = 256 * 1024 * 1024
MOST_IMAGE = 256 * 1024 * 1024
MOST_GROWTH = 250  # how many times larger its content may be; rows of a real store shrink to a fifth or a tenth
SMALL = 64 * 1024 * 1024  # as much may come of any file, however small
_PIECE = 1024 * 1024


class TableFile(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    columns: list[tuple[str, str]]
    rows: int


class KeyNeeded(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Which key reads the encrypted secrets, and how many there are."""

    id: str | None
    secrets: int
    others: list[str] = []  # further keys, while one takes the place of another


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    program: str
    schema: str
    made_at: datetime
    database: str
    key: KeyNeeded
    tables: list[TableFile]
    sequences: dict[str, int]
    images: int | None  # None: they were left out
    images_missing: int = 0  # their files were gone when they were to be written

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    def count(self, name: str) -> int:
        return sum(table.rows for table in self.tables if table.name == name)


def write(
    db: Database, file: Path, *, images: Path | None, key_id: str | None, now: datetime, replace: bool = False
) -> Manifest:
    """Writes the store, as it is now, into a file. Headwater may run meanwhile. The file is complete or not there."""
    migrate.check(db)
    if file.exists() and not replace:
        raise AlreadyThere(f"{file} is there already. Choose another name, or add --replace.")
    with _unfinished(file) as out:
        archive = _HashedFile(out)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as made:  # type: ignore[call-overload]
            made.comment = b"0" * DIGEST
            found = db.snapshot_now(_write_all, made, images, key_id, now)
            made.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(found)))
        archive.seal()
    return found


def _write_all(
    conn: Connection, archive: zipfile.ZipFile, images: Path | None, key_id: str | None, now: datetime
) -> Manifest:
    reading = Reading(conn)
    tables = [_write_table(archive, columns, reading.rows(columns)) for columns in backup.kept_tables()]
    saved, missing = _write_images(archive, reading.image_paths(), images) if images else (None, 0)
    return Manifest(
        format=FORMAT,
        program=__version__,
        schema=migrate.head(),
        made_at=now,
        database=conn.dialect.name,
        key=_key_needed(key_id, reading.encrypted()),
        tables=tables,
        sequences=reading.sequences(),
        images=saved,
        images_missing=missing,
    )


def _key_needed(key_id: str | None, encrypted: Sequence[bytes]) -> KeyNeeded:
    """Returns the present key, and those that other secrets are encrypted with. Some secrets do not say."""
    others = {named for one in encrypted if (named := key_id_of(one)) not in (None, key_id)}
    return KeyNeeded(key_id, len(encrypted), sorted(filter(None, others)))


def _write_table(archive: zipfile.ZipFile, columns: Columns, rows: Iterator[Row]) -> TableFile:
    count = 0
    with archive.open(_table_file(columns.table), "w", force_zip64=True) as out:
        for row in rows:
            out.write(orjson.dumps(row) + b"\n")
            count += 1
    return TableFile(columns.table, list(columns.columns), count)


def _write_images(archive: zipfile.ZipFile, paths: Iterator[str], folder: Path) -> tuple[int, int]:
    """Writes the files of images. One that was deleted meanwhile is left out, and downloaded again after a restore."""
    saved = missing = 0
    for path in paths:
        content = files.load(folder, path)
        if content is None:
            missing += 1
            continue
        archive.writestr(f"images/{path}", content, zipfile.ZIP_STORED)
        saved += 1
    return saved, missing


def _table_file(name: str) -> str:
    return f"tables/{name}.jsonl"


class _HashedFile:
    """A file that is only appended to, and that knows the hash of all but its last bytes."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._hash = sha256()
        self._last = b""

    def write(self, data: Any) -> int:
        self._out.write(data)
        joined = self._last + bytes(data)
        self._hash.update(joined[:-DIGEST])
        self._last = joined[-DIGEST:]
        return len(data)

    def flush(self) -> None:
        self._out.flush()

    def seal(self) -> None:
        """Puts the hash in the place of the last bytes."""
        self._out.seek(-DIGEST, os.SEEK_END)
        self._out.write(self._hash.hexdigest().encode())


@contextmanager
def _unfinished(file: Path) -> Iterator[BinaryIO]:
    """Opens a file next to the one to be written. It replaces that one when it is complete and on the disk.

    The next backup overwrites what a killed one has left.
    """
    unfinished = file.with_name(f".{file.name}{UNFINISHED}")
    try:
        number = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with open(number, "r+b") as out:
            try:
                fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyThere(f"Another backup is writing {file} right now.") from None
            out.truncate()
            try:
                yield out
            except BaseException:
                unfinished.unlink()
                raise
            out.flush()
            os.fsync(out.fileno())
            unfinished.replace(file)
            files.sync_folder(file.absolute().parent)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be written: {error.strerror or error}.") from error


class Archive:
    """A backup that is whole and has nothing in it but what a backup has. Use `opened`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.manifest = self._manifest()
        self.images = [name.removeprefix("images/") for name in archive.namelist() if name.startswith("images/")]
        wanted = {MANIFEST, *(_table_file(table.name) for table in self.manifest.tables)}
        wanted.update(f"images/{path}" for path in self.images)
        if set(archive.namelist()) != wanted or len(archive.namelist()) != len(wanted):
            raise BadDocument("This is not a backup of Headwater: its files do not match its manifest.")
        if not all(files.hash_in(path) for path in self.images) or len(self.images) != (self.manifest.images or 0):
            raise BadDocument("This is not a backup of Headwater: its images do not match its manifest.")

    def rows(self, columns: Columns) -> Iterator[Row]:
        expected = next(table.rows for table in self.manifest.tables if table.name == columns.table)
        count = 0
        with self._archive.open(_table_file(columns.table)) as lines:
            while line := lines.readline(MOST_ROW):
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise BadDocument(
                        f"This backup cannot be restored: {columns.table} has an unreadable row."
                    ) from error
                count += 1
        if count != expected:
            raise BadDocument(
                f"This backup cannot be restored: {columns.table} has {count} rows instead of {expected}."
            )

    def image(self, path: str) -> bytes:
        info = self._archive.getinfo(f"images/{path}")
        content = self._archive.read(info) if info.file_size <= MOST_IMAGE else b""
        if files.hash_of(content) != files.hash_in(path):
            raise BadDocument(f"This backup cannot be restored: the image {path} is not what its name says.")
        return content

    def _manifest(self) -> Manifest:
        try:
            info = self._archive.getinfo(MANIFEST)
            text = self._archive.read(info) if info.file_size <= MOST_MANIFEST else b""
            stated = msgspec.json.decode(text)
            if isinstance(stated, dict) and isinstance(stated.get("format"), int) and stated["format"] > FORMAT:
                raise SchemaMismatch("This backup was made by a newer Headwater. Update this program.")
            return msgspec.json.decode(text, type=Manifest)
        except (KeyError, msgspec.MsgspecError) as error:
            raise BadDocument(f"This is not a backup of Headwater: its manifest cannot be read ({error}).") from error


@contextmanager
def opened(file: Path) -> Iterator[Archive]:
    """Opens a backup. Raises BadDocument unless it is whole and unchanged, and holds no traps."""
    try:
        with file.open("rb") as content:
            _check_digest(content)
            with zipfile.ZipFile(content) as archive:
                _check_members(archive, os.fstat(content.fileno()).st_size)
                yield Archive(archive)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise BadDocument(f"This backup cannot be restored: {error}.") from error


def _check_digest(content: IO[bytes]) -> None:
    size = content.seek(0, os.SEEK_END)
    if not zipfile.is_zipfile(content):
        raise BadDocument("This is not a backup of Headwater, or its end is missing.")
    content.seek(0)
    found, left = sha256(), size - DIGEST
    while left > 0 and (piece := content.read(min(left, _PIECE))):
        found.update(piece)
        left -= len(piece)
    if content.read(DIGEST) != found.hexdigest().encode():
        raise BadDocument("This backup was changed or cut off after it was made. Nothing was restored.")
    content.seek(0)


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuses links, names that lead elsewhere, files that overlap, and what would grow beyond reason."""
    end = 0
    for member in sorted(archive.infolist(), key=lambda one: one.header_offset):
        parts = Path(member.filename).parts
        is_file = (member.external_attr >> 16) & 0o170000 in (0, 0o100000) and not member.is_dir()
        if not is_file or ".." in parts or member.filename.startswith("/") or "\\" in member.filename:
            raise BadDocument(
                f"This is not a backup of Headwater: {member.filename[:100]!r} is not a plain file in it."
            )
        if member.header_offset < end or member.flag_bits & 1:
            raise BadDocument("This is not a backup of Headwater: its files overlap or are encrypted.")
        end = member.header_offset + member.compress_size
    if sum(member.file_size for member in archive.infolist()) > SMALL + MOST_GROWTH * size:
        raise BadDocument("This is not a backup of Headwater: it would grow beyond reason when unpacked.")


def restore(
    db: Database,
    archive: Archive,
    *,
    images: Path,
    key_ids: Sequence[str] = (),
    any_key: bool = False,
    app_role: str | None = None,
) -> Manifest:
    """Fills an empty store. It has everything or, if this fails or is killed, nothing, and can be run again.

    `db` is opened by the owner of the tables, and `app_role` is the role of the application, if it has another one.
    """
    found = archive.manifest
    if not migrate.is_known(found.schema):
        raise SchemaMismatch(f"This backup was made by a newer Headwater (schema {found.schema}). Update this program.")
    missing = [one for one in (found.key.id, *found.key.others) if one not in key_ids]
    if found.key.secrets and missing and not any_key:
        raise BadInput(_other_key(found.key.secrets, missing, key_ids))
    with db.condition.restoring():
        _fill(db, archive, images, app_role)
    return found


def _fill(db: Database, archive: Archive, images: Path, app_role: str | None) -> None:
    if not db.read_now(backup.is_empty):
        raise AlreadyThere(
            "The store is not empty, and a backup replaces everything. Restore into another one, or delete "
            "what is there with `headwater db downgrade base`."
        )
    for path in archive.images:
        files.save(images, path, archive.image(path))
    found = archive.manifest
    tables = [Columns(table.name, tuple(table.columns)) for table in found.tables]
    db.alter_now(backup.fill, found.schema, tables, archive.rows, found.sequences, app_role)


def _other_key(secrets: int, missing: Sequence[str | None], present: Sequence[str]) -> str:
    there = f"the present key is {present[0]}" if present else "there is no key here"
    return (
        f"{secrets} secrets in this backup are encrypted with the key {missing[0]}, and {there}. Put the file "
        "secret.key of the old data folder into the new one, or set HEADWATER_SECRET_KEY. With --any-key everything "
        "else is restored, and passwords and tokens have to be given again."
    )
