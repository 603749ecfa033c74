"""A port for a server that another process opens later."""

from __future__ import annotations

import random
import socket

from support.processes import wait_until

# Below the ports that the system gives to whoever asks for any: between our look and the other process nobody gets it.
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
    """`headwater up` says where it will be a moment before it is there."""
    wait_until(lambda: is_open(port))
