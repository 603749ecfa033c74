"""What a request costs: CPU of the client per request, against aiohttp and bare pycurl, on a local nginx.

    python bench/fetch.py [--requests 2000] [--rounds 3]

Each contender runs in a process of its own, over 64 connections, and is charged its own CPU only. The loads are
conditional requests answered 304 (in clear and over TLS with HTTP/2 where the contender speaks it) and 200s with
100 KB of gzip; nobody inflates. "per-socket" is the client with each socket registered at the event loop instead of in
one selector. Where nginx is missing a small server in Python answers, without TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

CONNECTIONS = 64
BODY_BYTES = 100_000
ETAG = '"unchanged"'
GOAL = 0.2  # seconds of CPU for 2,000 unchanged feeds


class Load(NamedTuple):
    title: str
    base: str
    headers: tuple[tuple[str, str], ...]
    status: int
    body_bytes: int
    ca_file: str | None = None

    def check(self, status: int, body: bytes) -> None:
        if (status, len(body)) != (self.status, self.body_bytes):
            sys.exit(f"unexpected answer: {status} with {len(body)} bytes")


def main() -> None:
    arguments = _arguments()
    if arguments.contender:
        load = Load(*json.loads(arguments.load))
        print(json.dumps(_charged(CONTENDERS[arguments.contender], load, arguments.requests)))
        return
    if arguments.serve:
        asyncio.run(_serve(arguments.serve))
        return
    nginx = None if arguments.without_nginx else shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        server = _nginx(nginx, Path(folder)) if nginx else _python_server()
        with server as loads:
            for load in loads:
                _compare(load, arguments.requests, arguments.rounds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3, help="the best of these counts")
    parser.add_argument("--without-nginx", action="store_true")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _compare(load: Load, requests: int, rounds: int) -> None:
    print(f"\n{requests} requests, {load.title}")
    print(f"{'':<24}{'µs CPU each':>12}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'ratio':>8}")
    ours = 0.0
    for contender in CONTENDERS:
        if contender == "aiohttp" and importlib.util.find_spec("aiohttp") is None:
            print(f"{contender:<24}  not installed")
            continue
        best = min((_run(contender, load, requests) for _ in range(rounds)), key=lambda run: run["cpu"])
        cpu = best["cpu"]
        ours = ours or cpu
        figures = f"{cpu / requests * 1e6:>12.0f}{cpu:>8.3f}{best['wall']:>8.3f}{best['peak']:>9.0f}{cpu / ours:>8.2f}"
        print(f"{contender:<24}{figures}")
    if load.status == 304 and not load.ca_file:
        print(f"{'goal':<24}{GOAL / 2000 * 1e6:>12.0f}{GOAL * requests / 2000:>8.3f}")


def _run(contender: str, load: Load, requests: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--contender", contender, "--load", json.dumps(load)]
    done = subprocess.run([*command, "--requests", str(requests)], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _charged(contender: Callable[[list[str], Load], None], load: Load, requests: int) -> dict[str, float]:
    urls = [f"{load.base}/feed/{number}" for number in range(requests)]
    contender(urls[:CONNECTIONS], load)  # imports are not what is measured
    cpu, wall = time.process_time(), time.perf_counter()
    contender(urls, load)
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def headwater(urls: list[str], load: Load) -> None:
    asyncio.run(_headwater(urls, load))


def headwater_on_uvloop(urls: list[str], load: Load) -> None:
    import uvloop

    uvloop.run(_headwater(urls, load))


def headwater_per_socket(urls: list[str], load: Load) -> None:
    from headwater.fetch import client

    vars(client)["Transfers"] = _transfers_per_socket()
    asyncio.run(_headwater(urls, load))


async def _headwater(urls: list[str], load: Load) -> None:
    from headwater.fetch.client import Client
    from headwater.fetch.guard import AddressGuard
    from headwater.model import Request

    client = Client(
        user_agent="bench",
        guard=AddressGuard(allow=True),
        max_connections=CONNECTIONS,
        max_connections_per_host=CONNECTIONS,
        ca_file=load.ca_file,
    )
    headers = tuple((name, value) for name, value in load.headers)
    waiting = iter(urls)

    async def worker() -> None:
        for url in waiting:
            response = await client.fetch(Request(url, headers))
            load.check(response.status, response.body)

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
    await client.close()


def _transfers_per_socket() -> type:
    import pycurl

    from headwater.fetch.curl import Transfers

    class PerSocket(Transfers):
        def _watch(self, events: int, fd: int, multi: object, data: object) -> None:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            if events in (pycurl.POLL_IN, pycurl.POLL_INOUT):
                self._loop.add_reader(fd, self._ready, fd, pycurl.CSELECT_IN)
            if events in (pycurl.POLL_OUT, pycurl.POLL_INOUT):
                self._loop.add_writer(fd, self._ready, fd, pycurl.CSELECT_OUT)

        def _ready(self, fd: int, events: int) -> None:
            self._multi.socket_action(fd, events)
            self._finish()

    return PerSocket


def bare_pycurl(urls: list[str], load: Load) -> None:
    """No event loop, no limits, no guard, no parsed headers: the floor."""
    import pycurl

    multi = pycurl.CurlMulti()
    lines = [f"{name}: {value}" for name, value in (*load.headers, ("Accept-Encoding", "gzip, deflate"))]
    bodies: dict[Any, list[bytes]] = {}
    waiting = iter(urls)
    for url in [next(waiting) for _ in range(min(CONNECTIONS, len(urls)))]:
        easy = pycurl.Curl()
        bodies[easy] = []
        easy.setopt(pycurl.WRITEFUNCTION, bodies[easy].append)
        easy.setopt(pycurl.HTTPHEADER, lines)
        if load.ca_file:
            easy.setopt(pycurl.CAINFO, load.ca_file)
        easy.setopt(pycurl.URL, url)
        multi.add_handle(easy)
    running = 1
    while running:
        running = multi.perform()[1]
        for easy in multi.info_read()[1]:
            load.check(easy.getinfo(pycurl.RESPONSE_CODE), b"".join(bodies[easy]))
            bodies[easy].clear()
            multi.remove_handle(easy)
            if url := next(waiting, ""):
                easy.setopt(pycurl.URL, url)
                multi.add_handle(easy)
                running = 1
        multi.select(1.0)


def aiohttp(urls: list[str], load: Load) -> None:
    asyncio.run(_aiohttp(urls, load))


async def _aiohttp(urls: list[str], load: Load) -> None:
    import ssl

    aiohttp = importlib.import_module("aiohttp")  # not among our dependencies
    tls = ssl.create_default_context(cafile=load.ca_file) if load.ca_file else True
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls)
    waiting = iter(urls)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def worker() -> None:
            for url in waiting:
                async with session.get(url, headers=dict(load.headers)) as response:
                    load.check(response.status, await response.read())

        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


CONTENDERS: dict[str, Callable[[list[str], Load], None]] = {
    "headwater": headwater,
    "headwater on uvloop": headwater_on_uvloop,
    "headwater, per-socket": headwater_per_socket,
    "bare pycurl": bare_pycurl,
    "aiohttp": aiohttp,
}


def _loads(port: int, tls_port: int = 0, ca_file: str | None = None) -> Iterator[Load]:
    base = f"http://127.0.0.1:{port}"
    yield Load("answered 304", base, (("If-None-Match", ETAG),), 304, 0)
    yield Load("100 KB of gzip each", base, (), 200, BODY_BYTES)
    if ca_file:
        yield Load(
            "answered 304 over TLS", f"https://127.0.0.1:{tls_port}", (("If-None-Match", ETAG),), 304, 0, ca_file
        )


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off; keepalive_requests 100000; etag off; if_modified_since off;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls_port} ssl http2;
        ssl_certificate {folder}/tls.pem; ssl_certificate_key {folder}/tls.pem;
        root {folder};
        location /feed/ {{
            default_type application/rss+xml;
            add_header ETag '{etag}' always; add_header Content-Encoding gzip;
            if ($http_if_none_match = '{etag}') {{ return 304; }}
            try_files /feed.gz =404;
        }}
    }}
}}
"""


@contextmanager
def _nginx(nginx: str, folder: Path) -> Iterator[Iterator[Load]]:
    folder.chmod(0o755)  # nginx's workers give up root where it was started as root
    (folder / "feed.gz").write_bytes(os.urandom(BODY_BYTES))
    (folder / "tls.pem").write_bytes(_certificate())
    port, tls_port = _free_port(), _free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, tls_port=tls_port, etag=ETAG))
    with _running([nginx, "-c", str(config)], port):
        yield _loads(port, tls_port, str(folder / "tls.pem"))


@contextmanager
def _python_server() -> Iterator[Iterator[Load]]:
    port = _free_port()
    with _running([sys.executable, __file__, "--serve", str(port)], port):
        yield _loads(port)


async def _serve(port: int) -> None:
    unchanged = f"HTTP/1.1 304 Not Modified\r\nETag: {ETAG}\r\n\r\n".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode()
    whole = head + os.urandom(BODY_BYTES)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                request = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            writer.write(unchanged if ETAG.encode() in request else whole)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port)
    await server.serve_forever()


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(250):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        else:
            sys.exit(f"{command[0]} did not start.")
        yield
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _certificate() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return private + signed.public_bytes(serialization.Encoding.PEM)


if __name__ == "__main__":
    main()
