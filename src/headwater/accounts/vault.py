"""Secrets that have to be used again, such as a feed's password, encrypted at rest."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from cryptography.fernet import Fernet, InvalidToken

from headwater.errors import SourceFailure, StoreUnavailable


class Vault:
    """Seals and opens with one key. Whoever has the database alone has no secret."""

    def __init__(self, key: str) -> None:
        self._key = hashlib.sha256(key.encode()).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(self._key))

    def seal(self, secret: str) -> bytes:
        return self._fernet.encrypt(secret.encode())

    def derived(self, name: str) -> str:
        """A secret that nobody has to keep: whoever has the key can always make it again."""
        return hmac.digest(self._key, f"derived: {name}".encode(), "sha256").hex()

    def open(self, sealed: bytes) -> str:
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise SourceFailure(
                "The password of this source cannot be read with the present HEADWATER_SECRET_KEY. Follow it again."
            ) from error


def key_in(folder: Path) -> str:
    """The key kept in this folder, for its owner's eyes alone; made when there is none yet."""
    file = folder / "secret.key"
    try:
        if not file.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_key(file)
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise StoreUnavailable(f"The key {file} can be neither read nor made: {error.strerror}.") from error


def _make_key(file: Path) -> None:
    """Whole or not at all: of several processes that make it at once, one wins and all read the same."""
    with NamedTemporaryFile("w", dir=file.parent, prefix=".secret-", encoding="ascii") as made:
        made.write(Fernet.generate_key().decode())
        made.flush()
        with contextlib.suppress(FileExistsError):
            os.link(made.name, file)
