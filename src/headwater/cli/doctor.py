"""Checks what Headwater needs on this machine, one finding each, with what to do where something is missing."""

from __future__ import annotations

import platform
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from headwater import wire
from headwater.app import instance, sources
from headwater.cli.session import place_of
from headwater.cli.up import listen
from headwater.errors import HeadwaterError
from headwater.model import Response, Source, SourceState
from headwater.settings import load
from headwater.wire import Parts

PROBE_BYTES = 1024 * 1024
_SAMPLE = b"""<rss version="2.0"><channel><title>Sample</title><item><title>One</title></item></channel></rss>"""


class Finding(NamedTuple):
    what: str
    ok: bool
    detail: str


async def examine() -> list[Finding]:
    return [finding async for finding in _findings()]


async def _findings() -> AsyncIterator[Finding]:
    yield Finding("python", sys.version_info >= (3, 11), platform.python_version())
    yield Finding("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version)
    try:
        loaded = load()
        parts = wire.open_parts(loaded)
    except HeadwaterError as error:
        yield Finding("settings", False, error.detail)
        return
    yield Finding("settings", True, "valid; `headwater config` shows them")
    try:
        yield _data_folder(parts)
        yield _database(parts)
        yield _file(parts)
        yield await _x(parts)
        yield await _parsing(parts)
        yield _compiled_parts()
        yield _port(parts)
    finally:
        parts.close()


def _data_folder(parts: Parts) -> Finding:
    folder = parts.settings.data_dir
    try:
        # Whether there is space is known only after it was tried; what a disk says about itself leaves quotas out.
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else folder.absolute().parent) as probe:
            probe.write(b"\0" * PROBE_BYTES)
    except OSError as error:
        return Finding("data folder", False, f"{folder} cannot be written: {error.strerror}. Free space, or check it")
    return Finding("data folder", True, f"{folder} can be written")


def _database(parts: Parts) -> Finding:
    name = parts.db.engine.dialect.name
    try:
        if not instance.is_there(parts.db):
            return Finding("database", True, f"{name}, empty; the first start fills it ({place_of(parts)})")
        instance.check_schema(parts.db)
        return Finding("database", True, f"{name}, schema {instance.schema_revision(parts.db)}")
    except HeadwaterError as error:
        return Finding("database", False, error.detail)


def _file(parts: Parts) -> Finding:
    """Whether the whole SQLite file can be read, and by whom."""
    file = parts.db.condition.file
    if file is None or not file.exists():
        return Finding("database file", True, "there is none")
    try:
        parts.db.quick_check()
        for problem in parts.db.condition.problems():
            raise problem
    except HeadwaterError as error:
        return Finding("database file", False, error.detail)
    if exposure := parts.db.condition.exposure():
        return Finding("database file", False, exposure)
    return Finding("database file", True, f"{file} is whole, and only its owner can read it")


async def _x(parts: Parts) -> Finding:
    """Whether what is followed at X can be asked for."""
    try:
        if not instance.is_there(parts.db):
            return Finding("X", True, "nothing is followed there")
        state = await instance.x_state(
            parts.db, partial(wire.x_token, parts), wire.x_allowance(parts.settings), parts.now()
        )
    except HeadwaterError:
        return Finding("X", True, "nothing is followed there")  # the database says what is the matter with it
    waits = state.sources > 0 and (state.problem != "" or state.is_spent)
    return Finding("X", not waits, state.words)


async def _parsing(parts: Parts) -> Finding:
    parsers = wire.open_parsers(parts)
    answer = Response("http://sample.invalid/", 200, {}, _SAMPLE, datetime.now(UTC))
    try:
        page = await parsers.read(Source(0, sources.DEFAULT_KIND, answer.url), SourceState(), answer)
        return Finding("parsing process", len(page.posts) == 1, "parses a sample feed")
    except HeadwaterError as error:
        return Finding("parsing process", False, error.detail)
    finally:
        await parsers.close()


def _compiled_parts() -> Finding:
    parts = instance.compiled_parts()
    slow = " and ".join(part for part, is_compiled in parts.items() if not is_compiled)
    if not slow:
        return Finding("compiled parts", True, " and ".join(parts))
    return Finding(
        "compiled parts", True, f"not {slow}, which takes longer. Install a C compiler, then Headwater again"
    )


def _port(parts: Parts) -> Finding:
    try:
        listen(parts.settings).close()
    except HeadwaterError as error:
        return Finding("port", False, error.detail)
    return Finding("port", True, f"{parts.settings.host}:{parts.settings.port} is free")
