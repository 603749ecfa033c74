"""A name that is public at first and loopback afterwards, as a real name server says it.

This runs as a program in a network of its own, in which a public address is on this machine. libcurl resolves names by
itself, so nothing less than a name server can deceive it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.disks import NO_MOUNT
from support.web import rss

PUBLIC, INSIDE, NAME_SERVER, PORT = "93.184.216.34", "127.0.0.1", "127.0.0.9", 8080
TESTS = Path(__file__).resolve().parents[1]
A = 1
# Addresses of each name: one for each time that it is asked for, and then the last one again.
NAMES: dict[str, Sequence[str]] = {
    "public.example": [PUBLIC],
    "inside.example": [INSIDE],
    "rebinds.example": [PUBLIC, INSIDE],
    "returns.example": [INSIDE, PUBLIC],
}
_INTO_IT = """
ip link set lo up && ip addr add {public}/32 dev lo && mount --bind "$1" /etc/resolv.conf || exit 1
shift && exec "$@"
"""


def outcome(folder: Path) -> dict[str, Any]:
    """Runs this file in a network of its own. Returns what happened; skips the test where that is not allowed."""
    (folder / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions attempts:1 timeout:5\n")
    into = ["unshare", "--mount", "--net", "sh", "-c", _INTO_IT.format(public=PUBLIC), "sh"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environ = {**clean, "HEADWATER_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [*into, str(folder / "resolv.conf"), sys.executable, "-m", "hostile.rebinding"],
        env=environ,
        capture_output=True,
        text=True,
    )
    if done.returncode and "Traceback" not in done.stderr:
        pytest.skip(f"{NO_MOUNT}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    told: defaultdict[str, list[str]] = defaultdict(list)
    visitors: defaultdict[str, int] = defaultdict(int)
    with socket.socket(type=socket.SOCK_DGRAM) as names:
        names.bind((NAME_SERVER, 53))
        _start(lambda: _answer_names(names, told))
        for address in (PUBLIC, INSIDE):
            server = ThreadingHTTPServer((address, PORT), _site(address, visitors))
            _start(server.serve_forever)
        said = {}
        for name in NAMES:
            said[name] = [_headwater("try", f"http://{name}:{PORT}/feed") for _ in range(2)]
    json.dump({"said": said, "told": told, "visitors": visitors}, sys.stdout)


def _headwater(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "headwater", *words], capture_output=True, text=True)
    return done.stdout + done.stderr


def _start(work: Callable[[], object]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _site(address: str, visitors: dict[str, int]) -> type[BaseHTTPRequestHandler]:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            visitors[address] += 1
            body = rss("first").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    return Site


def _answer_names(names: socket.socket, told: dict[str, list[str]]) -> None:
    while True:
        query, client = names.recvfrom(4096)
        names.sendto(_answer(query, told), client)


def _answer(query: bytes, told: dict[str, list[str]]) -> bytes:
    labels, at = [], 12
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode())
        at += size + 1
    (kind,) = struct.unpack(">H", query[at + 1 : at + 3])
    name, question = ".".join(labels).lower(), query[12 : at + 5]
    record = b""
    if kind == A and name in NAMES:
        given = NAMES[name][min(len(told[name]), len(NAMES[name]) - 1)]
        told[name].append(given)
        record = struct.pack(">HHHIH", 0xC00C, A, 1, 0, 4) + socket.inet_aton(given)  # valid for 0 seconds
    flags = 0x8180 if name in NAMES else 0x8183
    return query[:2] + struct.pack(">HHHHH", flags, 1, int(bool(record)), 0, 0) + question + record


if __name__ == "__main__":
    main()
