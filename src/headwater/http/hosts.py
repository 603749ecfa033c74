"""Under which names this server may be reached.

A page on the internet can give its own name the address 127.0.0.1 and then talk to a server there as if it were its own
(DNS rebinding). The browser still says the page's name in the Host header, so a name that nobody configured is refused.
Numeric addresses cannot be rebound; they are accepted when the server listens on all of the machine's addresses.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHosts:
    def __init__(self, listens_on: str, public_url: str | None) -> None:
        public = urlsplit(public_url).hostname if public_url else None
        self._names = LOCAL_NAMES | {listens_on.lower()} | ({public.lower()} if public else set())
        self._any_address = listens_on in ("0.0.0.0", "::", "")

    def knows(self, host_header: str) -> bool:
        name = name_of(host_header)
        return name in self._names or (self._any_address and _is_address(name))


def name_of(host_header: str) -> str:
    """The host without its port, in lower case."""
    try:
        return (urlsplit(f"//{host_header}").hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    return _is_address(address) and ip_address(address).is_loopback


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
