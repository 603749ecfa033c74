"""Passwords, hashed with argon2id. The whole password counts, however long it is."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING

from headwater.errors import BadInput

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST = 10
LONGEST = 1000  # argon2 takes any length; this bounds the work that a stranger can ask for
# Each check takes 19 MiB for a moment. These two at once are all that a sign-in page can cost.
_turns = threading.BoundedSemaphore(2)


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # loaded by whoever has passwords

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@cache
def _nobodys() -> str:
    return _hasher().hash("nobody has this password")


def hashed(password: str) -> str:
    """Returns what is stored. Raises BadInput if the password is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise BadInput(f"A password has {SHORTEST} to {LONGEST} characters.")
    with _turns:
        return _hasher().hash(password)


def fits(stored: str | None, password: str) -> bool:
    """Whether this is the password. Without a stored one it is not, which takes as long to find out."""
    from argon2.exceptions import InvalidHashError, VerificationError

    if len(password) > LONGEST:
        return False
    with _turns:
        nobodys = _nobodys()  # also where it is not needed: the first check costs the same for everybody
        try:
            return _hasher().verify(stored or nobodys, password) and stored is not None
        except (VerificationError, InvalidHashError):
            return False
