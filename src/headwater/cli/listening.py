"""The socket that the web server listens on."""

from __future__ import annotations

import socket

from headwater.errors import BadSetting
from headwater.settings import Settings


def listen(settings: Settings) -> socket.socket:
    """The listening socket, opened before anything is started, so that a taken port is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise BadSetting(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. "
            "Stop the other program or choose another port with --port or HEADWATER_PORT."
        ) from error
    return listening
