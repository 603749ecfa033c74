"""Looks up names without libcurl: for targets behind a proxy, and to find out why a name failed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from headwater.fetch.failures import name_unknown

# A lookup cannot be interrupted. In these threads, one that hangs keeps nobody else waiting.
_LOOKUPS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="dns")


async def addresses(host: str, port: int, resolve: Sequence[str] = ()) -> list[str]:
    """Returns the numeric addresses of a host. Raises NameUnknown.

    `resolve` has overrides as curl writes them (`host:port:address,address`).
    """
    for entry in resolve:
        if entry.startswith(f"{host}:{port}:"):
            return [address.strip("[]") for address in entry.removeprefix(f"{host}:{port}:").split(",")]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(_LOOKUPS, socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise name_unknown(host, no_name_server=error.errno == socket.EAI_AGAIN) from error
    except UnicodeError as error:
        raise name_unknown(host) from error
    return [str(address[0]) for *_, address in found]
