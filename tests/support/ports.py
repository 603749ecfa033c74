"""A port for a server that another process opens later."""

from __future__ import annotations

import random
import socket

from support.processes import wait_until

# Below the ephemeral ports, so that the system does not give it to somebody else before the other process opens it.
_OURS = range(12_000, 30_000)
_chance = random.SystemRandom()


def free_port() -> int:
    while is_open(port := _chance.choice(_OURS)):
        pass
    return port


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until_open(port: int) -> None:
    """Waits for the port: `headwater up` prints its address a moment before it listens."""
    wait_until(lambda: is_open(port))
