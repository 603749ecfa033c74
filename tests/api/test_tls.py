"""Headwater speaks TLS itself: version 1.3 alone, with files that are safe to use, and renews its certificate."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from http.client import HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from api.running import running
from headwater.errors import BadSetting
from headwater.http.connections import Certificate
from headwater.settings import load
from headwater.wire import open_parts
from support.certificates import self_signed
from support.ports import free_port
from support.processes import wait_until


def write(folder: Path, *, key: Any = None, days: int = 30, password: bytes | None = None) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    made = self_signed(key, x509.IPAddress(ip_address("127.0.0.1")), days=(-60, days))
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").touch(mode=0o600)
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return folder / "cert.pem", folder / "key.pem"


def settings(folder: Path) -> dict[str, str]:
    return {"HEADWATER_TLS_CERTIFICATE": str(folder / "cert.pem"), "HEADWATER_TLS_KEY": str(folder / "key.pem")}


def serial(port: int) -> int:
    """Returns the serial number of the certificate that the server shows."""
    shown = ssl.get_server_certificate(("127.0.0.1", port))
    return x509.load_pem_x509_certificate(shown.encode()).serial_number


def test_it_speaks_tls_13_and_nothing_less(sqlite_url: str, tmp_path: Path) -> None:
    # E10
    certificate, _ = write(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running(sqlite_url, **settings(tmp_path)) as headwater:
        connection = HTTPSConnection("127.0.0.1", headwater.port, context=trusting, timeout=60)
        connection.request("GET", headwater.login_link())
        answer = connection.getresponse()
        assert answer.status == 303
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert "; Secure" in answer.headers["set-cookie"]
        assert connection.sock.version() == "TLSv1.3"
        connection.close()
        old = ssl.create_default_context(cafile=str(certificate))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with (
            socket.create_connection(("127.0.0.1", headwater.port), timeout=60) as plain,
            pytest.raises(ssl.SSLError),
        ):
            old.wrap_socket(plain, server_hostname="127.0.0.1")
        with socket.create_connection(("127.0.0.1", headwater.port), timeout=60) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP")


def test_a_renewed_certificate_is_used_without_a_restart(sqlite_url: str, tmp_path: Path) -> None:
    write(tmp_path)
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    more = {"HEADWATER_DATABASE_URL": sqlite_url, "HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_PORT": str(port)}
    command = [sys.executable, "-m", "headwater", "up", "--no-crawl"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env={**clean, **more, **settings(tmp_path)}, stdout=log, stderr=log)
    try:
        wait_until(lambda: "https://127.0.0.1" in (tmp_path / "log").read_text())
        wait_until(lambda: _answers(port))
        first = serial(port)
        (tmp_path / "cert.pem").write_text("no certificate")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "certificate.refused" in (tmp_path / "log").read_text())
        assert serial(port) == first
        write(tmp_path)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: serial(port) != first)
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    try:
        return bool(serial(port))
    except OSError:
        return False


def test_files_that_are_not_safe_to_use_are_refused(tmp_path: Path) -> None:
    def refused(says: str) -> None:
        with pytest.raises(BadSetting, match=says):
            Certificate(tmp_path / "cert.pem", tmp_path / "key.pem")

    refused("cert.pem cannot be used: No such file")
    _, key = write(tmp_path)
    Certificate(tmp_path / "cert.pem", key)
    key.chmod(0o640)
    Certificate(tmp_path / "cert.pem", key)
    key.chmod(0o644)
    refused("everybody on this machine can read")
    key.chmod(0o600)
    key.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    refused("has to be its key")
    write(tmp_path, password=b"secret")
    refused("without a password")
    write(tmp_path, key=rsa.generate_private_key(public_exponent=65537, key_size=1024))
    refused("key too small")
    write(tmp_path, days=-1)
    refused("it has expired on")
    (tmp_path / "cert.pem").write_text("nothing")
    refused("there is no certificate in it")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"HEADWATER_TLS_CERTIFICATE": "/cert.pem"}, "go together"),
        ({"HEADWATER_TLS_KEY": "/key.pem"}, "go together"),
        (
            {
                "HEADWATER_TLS_CERTIFICATE": "/cert.pem",
                "HEADWATER_TLS_KEY": "/key.pem",
                "HEADWATER_PUBLIC_URL": "http://news.example",
            },
            "begins with http:",
        ),
    ],
)
def test_settings_of_tls_that_contradict_each_other_are_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadSetting, match=says):
        open_parts(load({"HEADWATER_CONFIG": "", **given}))
