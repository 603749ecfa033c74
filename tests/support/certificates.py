"""Certificates that sign themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from headwater.wire import utc_now


def self_signed(key: Any, *names: x509.GeneralName, days: tuple[int, int] = (-1, 1)) -> x509.Certificate:
    """Returns a certificate for these names. `days` are the days from now on which it begins and ends."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Headwater of a test")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(utc_now() + timedelta(days=days[0]))
        .not_valid_after(utc_now() + timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
