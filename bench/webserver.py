"""A local nginx that serves a corpus in three ways: plain, over TLS, and without validators."""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

CONFIG = """
daemon off; worker_processes 1; pid {run}/nginx.pid; error_log {run}/error.log; {user}
events {{ worker_connections 4096; }}
http {{
    types {{ application/xml xml; application/feed+json json; }}
    access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000; root {www}; gzip_static on;
    open_file_cache max=50000 inactive=600s; open_file_cache_valid 600s;
    client_body_temp_path {run}/a; proxy_temp_path {run}/b; fastcgi_temp_path {run}/c; uwsgi_temp_path {run}/d;
    scgi_temp_path {run}/e;
    server {{ listen 127.0.0.1:{plain} backlog=4096; }}
    server {{
        listen 127.0.0.1:{tls} ssl backlog=4096;
        ssl_certificate {run}/server.pem; ssl_certificate_key {run}/server.key; ssl_session_cache shared:tls:10m;
    }}
    server {{ listen 127.0.0.1:{bare} backlog=4096; etag off; if_modified_since off; add_header Last-Modified ""; }}
}}
"""


class WebServer(NamedTuple):
    plain: str
    tls: str
    without_validators: str
    authority: Path  # the certificate that clients have to trust


@contextmanager
def serving(www: Path) -> Iterator[WebServer]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not nginx:
        raise SystemExit("This benchmark needs nginx (scripts/services install nginx).")
    with tempfile.TemporaryDirectory(prefix="headwater-nginx-") as folder:
        run = Path(folder)
        _write_certificates(run)
        plain, tls, bare = free_ports(3)
        user = "user root;" if os.getuid() == 0 else ""  # the cache is in a home that other accounts cannot enter
        (run / "nginx.conf").write_text(CONFIG.format(run=run, www=www, plain=plain, tls=tls, bare=bare, user=user))
        process = subprocess.Popen([nginx, "-p", folder, "-c", run / "nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            _wait_for(plain, process, run / "error.log")
            yield WebServer(
                f"http://127.0.0.1:{plain}",
                f"https://127.0.0.1:{tls}",
                f"http://127.0.0.1:{bare}",
                run / "authority.pem",
            )
        finally:
            process.terminate()
            process.wait(20)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"nginx did not start:\n{log.read_text() if log.exists() else ''}")


def _write_certificates(folder: Path) -> None:
    """Makes a certificate authority and its certificate for 127.0.0.1."""
    now = datetime.datetime.now(datetime.UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Headwater benchmark")])
    server = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])

    def signed(name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> bytes:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(authority).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(extension, critical=False)
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=30))
        return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    (folder / "authority.pem").write_bytes(
        signed(authority, authority_key, x509.BasicConstraints(ca=True, path_length=0))
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    (folder / "server.pem").write_bytes(signed(server, server_key, address))
    (folder / "server.key").write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
