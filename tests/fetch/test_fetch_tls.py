"""TLS is verified, always."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fetch.raw_server import RawServer, answer
from headwater.errors import CertificateBad, ConnectionFailed
from headwater.fetch.client import Client
from headwater.fetch.curl import trusted_certificates
from headwater.model import Request
from support.certificates import self_signed

Serve = Callable[..., Awaitable[RawServer]]
NewClient = Callable[..., Client]


def certificate(folder: Path, *names: x509.GeneralName, days: tuple[int, int] = (-1, 1)) -> Path:
    """A certificate that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    built = self_signed(key, *names, days=days)
    file = folder / "certificate.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return file


LOOPBACK_NAME = x509.IPAddress(ip_address("127.0.0.1"))


def context(file: Path) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    return tls


@pytest.fixture(autouse=True)
async def _handshakes_fail_quietly() -> None:
    """The refused side of a handshake is what these tests are about; the server's loop need not report it."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: None)


async def test_a_certificate_of_a_trusted_authority_is_accepted(
    serve: Serve, new_client: NewClient, tmp_path: Path
) -> None:
    file = certificate(tmp_path, LOOPBACK_NAME)
    server = await serve(answer(body=b"safe"), context(file))
    client = new_client(ca_file=str(file))
    for _ in range(3):
        assert (await client.fetch(Request(server.url(scheme="https")))).body == b"safe"


async def test_a_self_signed_certificate_is_refused(serve: Serve, new_client: NewClient, tmp_path: Path) -> None:
    # H35
    server = await serve(answer(body=b"?"), context(certificate(tmp_path, LOOPBACK_NAME)))
    with pytest.raises(CertificateBad, match=r"127\.0\.0\.1"):
        await new_client().fetch(Request(server.url(scheme="https")))
    assert server.heads == []


@pytest.mark.parametrize("days", [(-10, -1), (1, 10)])
async def test_a_certificate_out_of_its_time_is_refused(
    serve: Serve, new_client: NewClient, tmp_path: Path, days: tuple[int, int]
) -> None:
    # H35
    file = certificate(tmp_path, LOOPBACK_NAME, days=days)
    server = await serve(answer(body=b"?"), context(file))
    with pytest.raises(CertificateBad):
        await new_client(ca_file=str(file)).fetch(Request(server.url(scheme="https")))
    assert server.heads == []


async def test_a_certificate_for_another_host_is_refused(serve: Serve, new_client: NewClient, tmp_path: Path) -> None:
    # H35
    file = certificate(tmp_path, x509.DNSName("other.example"))
    server = await serve(answer(body=b"?"), context(file))
    with pytest.raises(CertificateBad):
        await new_client(ca_file=str(file)).fetch(Request(server.url(scheme="https")))


async def test_a_server_without_tls_is_not_spoken_to_in_clear(new_client: NewClient) -> None:
    # H35
    heard: list[bytes] = []

    async def in_clear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.write(answer("400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(in_clear, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ConnectionFailed, match="secure connection"):
            await new_client().fetch(Request(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/secret-path"))
    assert len(heard) == 1
    assert b"secret-path" not in heard[0]


async def test_an_unreadable_file_of_certificates_is_not_ignored(
    serve: Serve, new_client: NewClient, tmp_path: Path
) -> None:
    # H35
    server = await serve(answer(), context(certificate(tmp_path, LOOPBACK_NAME)))
    with pytest.raises(CertificateBad, match="trusted certificates"):
        await new_client(ca_file=str(tmp_path / "missing.pem")).fetch(Request(server.url(scheme="https")))


def test_this_machines_certificates_are_found() -> None:
    file = trusted_certificates()
    assert file is not None
    assert os.path.getsize(file) > 10_000
