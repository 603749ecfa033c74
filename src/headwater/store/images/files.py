"""Files of images, named after their content: `ab/cdef….png` below one folder. A file is complete or does not exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from headwater.errors import StoreUnavailable

_UNFINISHED = ".new-"
_NAME = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})\.[a-z]{3,4}")


class FoundFile(NamedTuple):
    """A file below the folder. `content_hash` is None if it was never finished."""

    path: str
    content_hash: str | None
    changed_at: float


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def path_of(content_hash: str, extension: str) -> str:
    return f"{content_hash[:2]}/{content_hash[2:]}.{extension}"


def hash_in(path: str) -> str | None:
    """Returns the hash of the content that a file of this name has. None: no image has such a name."""
    name = _NAME.fullmatch(path)
    return name[1] + name[2] if name else None


def save(folder: Path, path: str, data: bytes) -> None:
    """Writes the content, unless it is there. Raises StoreUnavailable if it cannot be written."""
    file = folder / path
    with _usable(folder):
        if file.is_file() and file.stat().st_size == len(data):
            os.utime(file)  # so that it is not deleted as unused before its record is written
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(folder / f"{_UNFINISHED}{uuid4().hex}", file, data)


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"Images cannot be saved in {folder}: {error.strerror}. Free some space or check the folder's owner; "
            "crawling goes on, and images are tried again."
        ) from error


def _write(unfinished: Path, file: Path, data: bytes) -> None:
    try:
        with unfinished.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Writes a folder to the disk. Only then does a renamed file survive a power cut."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def load(folder: Path, path: str) -> bytes | None:
    with _usable(folder), suppress(FileNotFoundError):
        return (folder / path).read_bytes()
    return None


def size_of(folder: Path, path: str) -> int | None:
    with _usable(folder), suppress(FileNotFoundError):
        return (folder / path).stat().st_size
    return None


def delete(folder: Path, path: str) -> None:
    with _usable(folder):
        (folder / path).unlink(missing_ok=True)


def all_files(folder: Path) -> list[FoundFile]:
    """Returns every file of ours below the folder, finished or not."""
    files = []
    with _usable(folder):
        for file in [*folder.glob(f"{_UNFINISHED}*"), *folder.glob("??/*")]:
            path = file.relative_to(folder).as_posix()
            content_hash = hash_in(path)
            if content_hash is None and not file.name.startswith(_UNFINISHED):
                continue
            with suppress(FileNotFoundError):
                files.append(FoundFile(path, content_hash, file.stat().st_mtime))
    return files
