"""Secrets that Headwater has to use again, such as a feed's password, encrypted at rest."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from headwater.errors import SourceFailure, StoreUnavailable
from headwater.model import Credential

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


KEY_FILE = "secret.key"


class Vault:
    """Encrypts and decrypts with one key. The database alone reveals no secret."""

    def __init__(self, key: str) -> None:
        self._key = hashlib.sha256(key.encode()).digest()

    @cached_property
    def _fernet(self) -> Fernet:
        from cryptography.fernet import Fernet  # takes 7 MB, and many instances have no secret

        return Fernet(base64.urlsafe_b64encode(self._key))

    @property
    def key_id(self) -> str:
        """Names the key without revealing it."""
        return self.derived("key id")[:16]

    def seal(self, secret: str) -> bytes:
        return self._fernet.encrypt(secret.encode())

    def derived(self, name: str) -> str:
        """Returns a secret that need not be stored: it can always be derived again from the key."""
        return hmac.digest(self._key, f"derived: {name}".encode(), "sha256").hex()

    def credential(self, secret: str) -> Credential:
        """Encrypts the name and password of a source, and derives the key by which the same ones are recognised."""
        return Credential(self.seal(secret), self.derived(f"credential {secret}")[:32])

    def open(self, sealed: bytes) -> str:
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise SourceFailure(
                "The password of this source cannot be read with the present HEADWATER_SECRET_KEY. Follow it again."
            ) from error


def has_key_in(folder: Path) -> bool:
    return (folder / KEY_FILE).exists()


def key_in(folder: Path) -> str:
    """Returns the key in this folder, which only its owner can read. Makes one if there is none."""
    file = folder / KEY_FILE
    try:
        if not file.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_key(file)
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise StoreUnavailable(f"The key {file} cannot be read or created: {error.strerror}.") from error


def _make_key(file: Path) -> None:
    """Writes the key atomically. If several processes do so at once, one wins and all read the same key."""
    with NamedTemporaryFile("w", dir=file.parent, prefix=".secret-", encoding="ascii") as made:
        made.write(base64.urlsafe_b64encode(os.urandom(32)).decode())
        made.flush()
        with contextlib.suppress(FileExistsError):
            os.link(made.name, file)
