"""Signatures of messages to webhooks, as Standard Webhooks says. Pure but for making a secret."""

from __future__ import annotations

import base64
import hmac
import secrets

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signature(message_id: str, timestamp: str, body: bytes, secret: str) -> str:
    """HMAC-SHA256 over id, time and body, so that none of them can be exchanged."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
