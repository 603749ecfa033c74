"""A port for a server that another process opens later."""

from __future__ import annotations

import os
import random
import socket

# Below the ports that the system gives to whoever asks for any: between our look and the other process nobody gets it.
_OURS = range(12_000, 30_000)


def free_port() -> int:
    chance = random.Random(os.urandom(8))
    while True:
        port = chance.choice(_OURS)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
