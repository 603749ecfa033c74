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
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.disks import NO_MOUNT
from support.web import rss
from support.whole import headwater_process

PUBLIC, INSIDE, NAME_SERVER, PORT = "93.184.216.34", "127.0.0.1", "127.0.0.9", 8080
TESTS = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 180.0
A = 1
BOTH = f"{PUBLIC} {INSIDE}"
# Addresses of each name: one for each time that it is asked for, and then the last one again.
NAMES: dict[str, Sequence[str]] = {
    "public.example": [PUBLIC],
    "inside.example": [INSIDE],
    "rebinds.example": [PUBLIC, INSIDE],
    "returns.example": [INSIDE, PUBLIC],
}
# For a running Headwater, which asks for a name as often as it likes: every order of three answers.
FOLLOWED: dict[str, Sequence[str]] = {
    f"{''.join(map(str, order))}.example": [(PUBLIC, INSIDE, BOTH)[which] for which in order]
    for order in product(range(3), repeat=3)
}
_INTO_IT = """
ip link set lo up && ip addr add {public}/32 dev lo && mount --bind "$1" /etc/resolv.conf || exit 1
shift && exec "$@"
"""


def outcome(folder: Path, *words: str) -> dict[str, Any]:
    """Runs this file in a network of its own. Returns what happened; skips the test where that is not allowed."""
    (folder / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions attempts:1 timeout:5\n")
    into = ["unshare", "--mount", "--net", "sh", "-c", _INTO_IT.format(public=PUBLIC), "sh"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environ = {**clean, "HEADWATER_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [*into, str(folder / "resolv.conf"), sys.executable, "-m", "hostile.rebinding", *words],
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
        asked = _follow_all() if "follow" in sys.argv else 0
    json.dump({"said": said, "told": told, "visitors": visitors, "asked": asked}, sys.stdout)


def _follow_all() -> int:
    """Has a running Headwater visit every name: as a source, after a redirect, and as a webhook. Returns how many."""
    with headwater_process("up", environ={"HEADWATER_DATA_DIR": os.environ["HEADWATER_DATA_DIR"]}) as (_, port):
        token = _headwater("token").strip()
        addresses = [f"http://{name}:{PORT}/feed" for name in FOLLOWED]
        addresses += [f"http://public.example:{PORT}/to/{name}" for name in FOLLOWED]
        for address in addresses:
            _ask(port, token, "/api/sources", {"address": address})
        for name in FOLLOWED:
            made = _ask(port, token, "/api/webhooks", {"address": f"http://{name}:{PORT}/hook", "kinds": []})
            _ask(port, token, f"/api/webhooks/{made['id']}/test", {})
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            found = _ask(port, token, "/api/sources?limit=200")["items"]
            if all(one["status"] != "new" for one in found):
                break
            time.sleep(0.5)
    return sum(one["status"] != "new" for one in found) + len(FOLLOWED)


def _ask(port: int, token: str, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _headwater(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "headwater", *words], capture_output=True, text=True)
    return done.stdout + done.stderr


def _start(work: Callable[[], object]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _site(address: str, visitors: dict[str, int]) -> type[BaseHTTPRequestHandler]:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            visitors[address] += 1
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", f"http://{self.path[4:]}:{PORT}/feed")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = rss("first").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

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
    records: list[bytes] = []
    known = {**NAMES, **FOLLOWED}
    if kind == A and name in known:
        given = known[name][min(len(told[name]), len(known[name]) - 1)]
        told[name].append(given)
        head = struct.pack(">HHHIH", 0xC00C, A, 1, 0, 4)  # valid for 0 seconds
        records = [head + socket.inet_aton(address) for address in given.split()]
    flags = 0x8180 if name in known else 0x8183
    return query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question + b"".join(records)


if __name__ == "__main__":
    main()
