"""Secrets that Headwater has to use again, such as a feed's password, encrypted at rest.

Each secret is encrypted with a data key of its own, and the data key with the key of the instance. What is stored says
which key that was: `hw1.KEY ID.DATA KEY.SECRET`. So several keys can be in use while one takes the place of another,
and a missing one has a name. Secrets of earlier versions have no name on them: they were encrypted with the key itself.

The key is in the settings, printed by a command, or in a file in the data folder. The first one encrypts; the others
are only for what was encrypted before.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from headwater.errors import KeyUnavailable, SourceFailure
from headwater.model import Credential

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_FILE = "secret.key"
COMMAND_SECONDS = 30.0
COMMAND_AGAIN_SECONDS = 60.0  # at least between two runs
MOST_KEY_CHARACTERS = 10_000
UNFINISHED_SECONDS = 600  # after which nobody is still writing a key file
_MARK = b"hw1"
_UNFINISHED = ".secret-"


class InstanceKey:
    """A key of the instance."""

    def __init__(self, text: str) -> None:
        self._raw = hashlib.sha256(text.encode()).digest()
        self.id = self.derived("key id")[:16]  # names the key without revealing it

    def derived(self, name: str) -> str:
        return hmac.digest(self._raw, f"derived: {name}".encode(), "sha256").hex()

    def fits(self, sealed: bytes) -> bool:
        """Whether this was encrypted with the key itself, as earlier versions did it."""
        from cryptography.fernet import InvalidToken

        try:
            self.fernet.decrypt(sealed)
        except InvalidToken:
            return False
        return True

    @cached_property
    def fernet(self) -> Fernet:
        return _fernet(base64.urlsafe_b64encode(self._raw))


def _fernet(key: bytes) -> Fernet:
    from cryptography.fernet import Fernet  # takes 7 MB, and many instances have no secret

    return Fernet(key)


class Vault:
    """Encrypts with the first of its keys, and decrypts with all of them. The database alone reveals no secret.

    `load` returns the keys as text, the first one first; it is asked anew (True) if a key is missing.
    """

    def __init__(self, *given: str, load: Callable[[bool], Sequence[str]] | None = None) -> None:
        self._load = load or (lambda _: given)
        self._texts: Sequence[str] = ()
        self._keys: dict[str, InstanceKey] = {}

    def keys(self, *, again: bool = False) -> dict[str, InstanceKey]:
        """Returns all keys by their ids, the one that encrypts first. Raises KeyUnavailable."""
        texts = self._load(again)
        if texts != self._texts:
            self._keys = {key.id: key for key in map(InstanceKey, texts)}
            self._texts = texts
        return self._keys

    @property
    def _first(self) -> InstanceKey:
        return next(iter(self.keys().values()))

    @property
    def key_id(self) -> str:
        """Names the key that encrypts."""
        return self._first.id

    def seal(self, secret: str) -> bytes:
        key, data_key = self._first, base64.urlsafe_b64encode(os.urandom(32))
        wrapped, token = key.fernet.encrypt(data_key), _fernet(data_key).encrypt(secret.encode())
        return b".".join((_MARK, key.id.encode(), wrapped, token))

    def derived(self, name: str) -> str:
        """Returns a secret that need not be stored: it can always be derived again from the key."""
        return self._first.derived(name)

    def all_derived(self, name: str) -> list[str]:
        """Returns what each of the keys gives for this name, the present one first."""
        return [key.derived(name) for key in self.keys().values()]

    def credential(self, secret: str) -> Credential:
        """Encrypts the name and password of a source, and derives the key by which the same ones are recognised."""
        return Credential(self.seal(secret), self.derived(f"credential {secret}")[:32])

    def open(self, sealed: bytes) -> str:
        """Decrypts a secret. Raises SourceFailure if its key is not here."""
        from cryptography.fernet import InvalidToken

        try:
            if key_id_of(sealed) is None:
                return self._open_unnamed(sealed)
            _, name, wrapped, token = sealed.split(b".")
            key = self.keys().get(name.decode()) or self.keys(again=True).get(name.decode())
            if key is None:
                raise SourceFailure(f"It is encrypted with the key {name.decode()}, which is not here. {_GIVE_AGAIN}")
            return _fernet(key.fernet.decrypt(wrapped)).decrypt(token).decode()
        except (InvalidToken, ValueError) as error:
            raise SourceFailure(f"It cannot be decrypted with any of the keys that are here. {_GIVE_AGAIN}") from error
        except KeyUnavailable as error:
            raise SourceFailure(error.detail) from error

    def _open_unnamed(self, sealed: bytes) -> str:
        from cryptography.fernet import MultiFernet

        return MultiFernet([key.fernet for key in self.keys().values()]).decrypt(sealed).decode()

    def is_current(self, sealed: bytes) -> bool:
        """Whether this is encrypted with the first of the keys."""
        return key_id_of(sealed) == self.key_id


_GIVE_AGAIN = (
    "Bring the key back (HEADWATER_OTHER_SECRET_KEYS, or a line of secret.key), or give the password or token again."
)


def key_id_of(sealed: bytes) -> str | None:
    """Returns the name of the key that this is encrypted with; None: it does not say."""
    mark, _, rest = sealed.partition(b".")
    return rest.partition(b".")[0].decode("ascii", "replace") if mark == _MARK else None


class KeyFile:
    """The keys in a file of the data folder, one a line, which only its owner can read."""

    def __init__(self, folder: Path, may_be_made: Callable[[], None] = lambda: None) -> None:
        """`may_be_made` raises KeyUnavailable if a new key must not take the place of a missing one."""
        self.path = folder / KEY_FILE
        self._may_be_made = may_be_made
        self._read: tuple[object, Sequence[str]] = (None, ())

    def __call__(self, again: bool = False) -> Sequence[str]:
        """Returns the keys. The first call makes one, if there is none. A file that was changed is read again."""
        try:
            return self.present() or self._first_key()
        except OSError as error:
            raise KeyUnavailable(f"The key {self.path} cannot be read or created: {error.strerror}.") from error

    def present(self) -> Sequence[str]:
        """Returns the keys, without making one."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return ()
        seen = (state.st_ino, state.st_mtime_ns, state.st_size)
        if self._read[0] != seen:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            if not (found := [line.strip() for line in lines if line.strip()]):
                raise KeyUnavailable(f"The key file {self.path} is empty. Put back your copy of it.")
            self._read = (seen, tuple(found))
        return self._read[1]

    def _first_key(self) -> Sequence[str]:
        """Writes the key atomically. If several processes do so at once, one wins and all read the same key."""
        self._may_be_made()
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._written(new_key()) as made, contextlib.suppress(FileExistsError):
            os.link(made, self.path)
        return self.present()

    def add(self, key: str) -> None:
        """Puts a new key before all others. Whoever is killed meanwhile leaves the file as it was, or as it will be."""
        with self.prepared(key) as put:
            put()

    @contextlib.contextmanager
    def prepared(self, key: str) -> Iterator[Callable[[], None]]:
        """Writes a new key, before all others, to the disk. Nobody uses it until what this returns is called."""
        with self._written("\n".join([key, *self.present()])) as made:
            yield lambda: self._put(made)

    def has(self, key_id: str) -> bool:
        return any(InstanceKey(one).id == key_id for one in self.present())

    def remove(self, key_id: str) -> bool:
        """Takes out a key that is not the first. Returns whether it was there."""
        present = self.present()
        if not present:
            return False
        first, *others = present
        kept = [one for one in others if InstanceKey(one).id != key_id]
        if len(kept) < len(others):
            with self._written("\n".join([first, *kept])) as made:
                self._put(made)
        return len(kept) < len(others)

    def _put(self, made: str) -> None:
        os.link(made, f"{made}.new")
        os.replace(f"{made}.new", self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _written(self, text: str) -> Iterator[str]:
        folder = self.path.parent
        for left in folder.glob(f"{_UNFINISHED}*"):  # by whoever was killed
            with contextlib.suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > UNFINISHED_SECONDS:
                    left.unlink()
        with NamedTemporaryFile("w", dir=folder, prefix=_UNFINISHED, encoding="utf-8") as made:
            made.write(text)
            made.flush()
            os.fsync(made.fileno())
            yield made.name


def new_key() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


class KeyCommand:
    """The key that a command prints, such as one that asks a KMS. It is run once, and again if a key is missing."""

    def __init__(self, command: str, others: Sequence[str] = (), seconds: float = COMMAND_SECONDS) -> None:
        self._words, self._others, self._seconds = shlex.split(command), others, seconds
        self._printed = ""
        self._run_at = float("-inf")

    def __call__(self, again: bool = False) -> Sequence[str]:
        if not self._printed or (again and time.monotonic() - self._run_at > COMMAND_AGAIN_SECONDS):
            self._printed = self._run()
            self._run_at = time.monotonic()
        return (self._printed, *self._others)

    def _run(self) -> str:
        try:
            done = subprocess.run(
                self._words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"took longer than {self._seconds:g} seconds") from error
        except OSError as error:
            raise self._failed(f"cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise self._failed(f"ended with {done.returncode}{f': {said}' if said else ''}")
        printed = done.stdout[: MOST_KEY_CHARACTERS + 1].decode("utf-8", "replace").strip()
        if not printed or len(printed) > MOST_KEY_CHARACTERS:
            raise self._failed("printed no key" if not printed else "printed too much for a key")
        return printed

    def _failed(self, why: str) -> KeyUnavailable:
        return KeyUnavailable(f"HEADWATER_SECRET_KEY_COMMAND ({self._words[0]}) {why}.")
