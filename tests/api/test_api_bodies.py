"""What clients may send: strict JSON, and not too much of it."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.running import Client, Running
from headwater.errors import BadDocument
from headwater.http.edge import read_strict

JSON = "application/json"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,  # H49
        b"[" * 40 + b"]" * 40,
        b'{"a":' * 100_000,
        b'{"feed_id": NaN}',
        b'{"feed_id": Infinity}',
        b'{"feed_id": 1e400}',
        b'{"feed_id": 1' + b"0" * 5000 + b"}",
        b'{"feed_id": 9223372036854775808}',
        b'{"feed_id": 1, "feed_id": 2}',
        b'{"feed_id": "\\u0000"}',
        b'{"feed_id": "\\ud800"}',
        b'{"\\udfff": 1}',
        b"\xff\xfe",
        b"{",
        b"nothing",
    ],
)
def test_json_that_programs_could_read_differently_is_refused(program: Client, body: bytes) -> None:
    for path in ("/api/queue/schedule-feed", "/api/sources", "/api/posts/mark"):
        answer = program.post(path, body, Content_Type=JSON)
        assert (answer.status, answer.json()["code"]) == (422, "bad_document")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadDocument):
        read_strict(body)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63) + 1, 2**63 - 1)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
        max_leaves=10,
    )
)
def test_ordinary_json_is_read_as_it_is(value: object) -> None:
    assert read_strict(json.dumps(value).encode()) == value


def test_a_body_that_is_no_json_is_refused(program: Client) -> None:
    assert program.post("/api/sources", b"address=x", Content_Type="application/x-www-form-urlencoded").status == 422
    assert program.post("/api/sources", b"").status == 422


def test_a_body_may_have_one_mebibyte_and_a_list_ten(program: Client) -> None:
    assert program.post("/api/sources", b" " * (1024 * 1024 + 1), Content_Type=JSON).status == 413
    assert program.post("/api/opml", b"<opml>" + b" " * 2_000_000 + b"</opml>").status == 200
    assert program.post("/api/opml", b" " * 11_000_000).status == 413


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(headwater: Running) -> None:
    with socket.create_connection(("127.0.0.1", headwater.port), timeout=30) as connection:
        connection.sendall(
            b"POST /api/sources HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Authorization: Bearer " + headwater.token().encode() + b"\r\n\r\n"
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(17):
            connection.sendall(chunk)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_hangs_up_leaves_no_trace(headwater: Running) -> None:
    with socket.create_connection(("127.0.0.1", headwater.port), timeout=30) as connection:
        token = headwater.token().encode()
        connection.sendall(
            b"POST /api/sources HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nAuthorization: Bearer "
            + token
            + b"\r\n\r\n{"
        )
    assert headwater.program().get("/api/sources").json()["items"] == []
