"""Undoing Content-Encoding: what real servers send, and what hostile ones do."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.errors import AnswerBroken, AnswerTooLarge
from headwater.fetch.body import unpacked
from headwater.model import Response

TEXT = b"<rss>" + b"A feed with some words in it. " * 500 + b"</rss>"
LIMIT = 1_000_000


def response(body: bytes, coding: str | None) -> Response:
    headers = {} if coding is None else {"content-encoding": coding}
    return Response("http://a.example/", 200, headers, body, datetime(2026, 1, 1, tzinfo=UTC))


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (TEXT, None),
        (TEXT, "identity"),
        (TEXT, ""),
        (TEXT, "UTF-8"),
        (gzipped(TEXT), "gzip"),
        (gzipped(TEXT), "GZIP"),
        (gzipped(TEXT), "x-gzip"),
        (zlib.compress(TEXT), "deflate"),
        (raw_deflate(TEXT), "deflate"),
        (gzipped(TEXT), "deflate"),
        (gzipped(gzipped(TEXT)), "gzip, gzip"),
        (gzipped(zlib.compress(gzipped(TEXT))), "gzip, deflate, gzip"),
        (gzipped(zlib.compress(TEXT)), "deflate, gzip"),
        (TEXT, "gzip"),
    ],
    ids=range(14),
)
def test_what_servers_send_is_unpacked(body: bytes, coding: str | None) -> None:
    assert unpacked(response(body, coding), LIMIT) == TEXT


def test_all_members_of_a_gzip_body_are_unpacked() -> None:
    members = b"".join(gzipped(TEXT[start : start + 100]) for start in range(0, len(TEXT), 100))
    assert unpacked(response(members, "gzip"), LIMIT) == TEXT


@pytest.mark.parametrize("tail", [b"\x00" * 512, b"\r\n", b"junk after the end", b"<!-- cached -->"])
def test_padding_and_junk_after_a_complete_gzip_body_are_tolerated(tail: bytes) -> None:
    # H25
    assert unpacked(response(gzipped(TEXT) + tail, "gzip"), LIMIT) == TEXT


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_an_empty_body_stays_empty(coding: str) -> None:
    assert unpacked(response(b"", coding), LIMIT) == b""


@pytest.mark.parametrize("kept", [1, 2, 9, 10, 20, -9, -8, -4, -1])
def test_a_truncated_gzip_body_is_broken(kept: int) -> None:
    # H25
    with pytest.raises(AnswerBroken):
        unpacked(response(gzipped(TEXT)[:kept], "gzip"), LIMIT)


@pytest.mark.parametrize("kept", [10, -3])
@pytest.mark.parametrize("pack", [zlib.compress, raw_deflate])
def test_a_truncated_deflate_body_is_broken(pack: object, kept: int) -> None:
    # H25
    assert callable(pack)
    with pytest.raises(AnswerBroken):
        unpacked(response(pack(TEXT)[:kept], "deflate"), LIMIT)


def test_a_truncated_second_member_is_broken() -> None:
    # H25
    with pytest.raises(AnswerBroken):
        unpacked(response(gzipped(TEXT) + gzipped(TEXT)[:-6], "gzip"), LIMIT)


def test_a_damaged_gzip_body_is_broken() -> None:
    packed = bytearray(gzipped(TEXT))
    packed[-6] ^= 0xFF
    with pytest.raises(AnswerBroken, match="damaged"):
        unpacked(response(bytes(packed), "gzip"), LIMIT)


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, br"])
def test_a_coding_that_was_not_asked_for_is_broken_and_named(coding: str) -> None:
    # H24
    with pytest.raises(AnswerBroken, match="gzip, deflate"):
        unpacked(response(b"\x28\xb5\x2f\xfd", coding), LIMIT)


def test_more_layers_than_anybody_needs_are_refused() -> None:
    # H24
    body = TEXT
    for _ in range(4):
        body = gzipped(body)
    with pytest.raises(AnswerBroken, match="4 times"):
        unpacked(response(body, "gzip, gzip, gzip, gzip"), LIMIT)


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("coding", [None, "gzip", "deflate"])
def test_the_limit_is_on_what_comes_out(coding: str | None, size: int) -> None:
    # H24
    packers: dict[str | None, Callable[[bytes], bytes]] = {None: bytes, "gzip": gzipped, "deflate": zlib.compress}
    pack = packers[coding]
    answer = response(pack(bytes(size)), coding)
    if size <= LIMIT:
        assert len(unpacked(answer, LIMIT)) == size
    else:
        with pytest.raises(AnswerTooLarge, match="1,000,000"):
            unpacked(answer, LIMIT)


def test_the_limit_is_on_all_members_together() -> None:
    # H24
    member = gzipped(bytes(LIMIT // 10))
    assert len(unpacked(response(member * 10, "gzip"), LIMIT)) == LIMIT
    with pytest.raises(AnswerTooLarge):
        unpacked(response(member * 11, "gzip"), LIMIT)


BOMBS = """
import gzip, json, resource
from datetime import UTC, datetime
from isal import isal_zlib
from headwater.errors import AnswerTooLarge
from headwater.fetch.body import unpacked
from headwater.model import Response

def zeros(wbits, megabytes):
    packer = isal_zlib.compressobj(1, wbits=wbits)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(megabytes)]
    return b"".join(parts) + packer.flush()

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

plain = zeros(31, 300)
bombs = [
    (plain, "gzip"),
    (zeros(15, 300), "deflate"),
    (zeros(-15, 300), "deflate"),
    (gzip.compress(plain), "gzip, gzip"),
    (gzip.compress(gzip.compress(plain)), "gzip, gzip, gzip"),
    (zeros(31, 4) * 200, "gzip"),
]
before = peak()
refused = 0
for body, coding in bombs:
    try:
        unpacked(Response("", 200, {"content-encoding": coding}, body, datetime.now(UTC)), 10 << 20)
    except AnswerTooLarge:
        refused += 1
print(json.dumps({"refused": refused, "bombs": len(bombs), "grown_mb": peak() - before}))
"""


def test_bombs_are_refused_with_flat_memory() -> None:
    # H24: 300 MB in each, plain, nested and in many members.
    source = str(Path(headwater.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", BOMBS], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    told = json.loads(run.stdout)
    assert told["refused"] == told["bombs"]
    assert told["grown_mb"] < 60


def test_a_hundred_thousand_tiny_members_take_linear_time() -> None:
    # H24: bounded by the suite's time limit; offering the whole rest to each member would take hours.
    members = gzipped(b"") * 100_000
    assert unpacked(response(members, "gzip"), LIMIT) == b""


def test_the_parse_workers_do_not_import_libcurl_with_it() -> None:
    source = str(Path(headwater.__file__).parents[1])
    code = "import sys, headwater.fetch.body; print('pycurl' in sys.modules, 'asyncio' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "False"]


@given(st.binary(max_size=3000), st.sampled_from(["gzip", "deflate", "gzip, deflate", "deflate, gzip"]))
def test_any_bytes_give_a_document_or_one_of_our_errors(body: bytes, coding: str) -> None:
    with suppress(AnswerBroken, AnswerTooLarge):
        assert len(unpacked(response(body, coding), 10_000)) <= 10_000


@given(st.binary(max_size=3000), st.integers(0, 200), st.binary(min_size=1, max_size=4))
def test_a_damaged_stream_never_unpacks_to_something_else(data: bytes, where: int, damage: bytes) -> None:
    packed = bytearray(gzipped(data))
    where = 10 + where % (len(packed) - 10)
    packed[where : where + len(damage)] = damage
    with suppress(AnswerBroken, AnswerTooLarge):
        assert unpacked(response(bytes(packed), "gzip"), 10_000_000) == data
