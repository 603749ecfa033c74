"""A request as a chain of hops: what is sent to which host, and where a redirect leads. Pure."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

from headwater import urls
from headwater.errors import AddressRefused, BadAddress, BadInput
from headwater.model import Request

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
# What another host may see. Everything else (Authorization, Cookie, X-Api-Key, ...) was meant for the first one.
_FOR_ANYBODY = frozenset(
    {"accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "range", "a-im"}
)
# These control the transfer. Setting them by hand could make two parsers of one request disagree.
_OURS = frozenset({"accept-encoding", "connection", "content-length", "expect", "host", "te", "transfer-encoding"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x1f\x7f]|[^\x00-\xff]")

_DEFAULT_PORT = {"http": 80, "https": 443}
# Most addresses are stored in canonical form. Checking that costs a tenth of making it.
_CANONICAL_ALREADY = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)(?::([1-9][0-9]{1,4}))?"
    r"/[A-Za-z0-9/%:@!$&'()*+,;=~._-]*(?:\?[A-Za-z0-9/%:@!$&'()*+,;=~._?-]+)?"
)

Headers = tuple[tuple[str, str], ...]


class Hop(NamedTuple):
    """One request to one host. `url` has no user name and password.

    They are in `headers` and, for an address that is to be remembered, in `userinfo`.
    """

    url: str
    host: str
    port: int
    headers: Headers
    method: str
    body: bytes | None
    userinfo: str = ""

    @property
    def address(self) -> str:
        """The URL as a source's address is stored, with user name and password."""
        return self.url.replace("://", f"://{self.userinfo}@", 1) if self.userinfo else self.url


def first(request: Request) -> Hop:
    """Returns the first hop of a request. Raises BadAddress or BadInput for one that must not be sent as it is."""
    for name, value in request.headers:
        if not _TOKEN.fullmatch(name) or _NOT_IN_A_HEADER.search(value):
            raise BadInput(f"The header {name[:40]!r} contains a character that a header cannot have.")
        if name.lower() in _OURS:
            raise BadInput(f"The header {name!r} is set by Headwater itself.")
    if request.method != "GET" and not _TOKEN.fullmatch(request.method):
        raise BadInput(f"{request.method[:20]!r} is not a method.")
    hop = _to(request.url, request.headers, request.method, request.body)
    if not hop.userinfo:
        return hop
    credentials = b64encode(unquote_to_bytes(hop.userinfo)).decode("ascii")
    return hop._replace(headers=(*hop.headers, ("Authorization", f"Basic {credentials}")))


def following(hop: Hop, status: int, headers: Mapping[str, str]) -> Hop | None:
    """Returns the hop that an answer sends us to; None if it is not a redirect.

    Raises AddressRefused if it leads to something that is not a web address.
    """
    location = headers.get("location")
    if status not in _REDIRECTS or not location:
        return None
    try:
        moved = _to(urljoin(hop.url, _readable(location)), hop.headers, *_method_after(status, hop))
    except (BadAddress, ValueError) as error:
        reason = error.detail if isinstance(error, BadAddress) else "The address cannot be read."
        raise AddressRefused(f"{hop.host} redirects to an address that cannot be used. {reason}") from error
    if _may_keep_credentials(hop, moved):
        return moved._replace(userinfo=hop.userinfo)
    kept = tuple(header for header in hop.headers if header[0].lower() in _FOR_ANYBODY)
    return moved._replace(headers=kept, userinfo="")


def is_permanent(hop: Hop, status: int, following: Hop) -> bool:
    """Whether the new address may replace the old one. A step down from https is followed, never remembered."""
    return status in _PERMANENT and not (_is_secure(hop) and not _is_secure(following))


def _to(url: str, headers: Headers, method: str, body: bytes | None) -> Hop:
    """Raises BadAddress. libcurl only gets canonical addresses, so it cannot read them differently than we do."""
    plain = _CANONICAL_ALREADY.fullmatch(url) if len(url) <= urls.MAX_LENGTH else None
    if plain:
        scheme, host, port = plain.groups()
        if port is None or (port not in ("80", "443") and int(port) < 65536):
            return Hop(url, host, int(port or _DEFAULT_PORT[scheme]), headers, method, body)
    url = urls.canonical(url)
    parts = urlsplit(url)
    userinfo, at, _ = parts.netloc.rpartition("@")
    if at:
        url = url.replace(f"{userinfo}@", "", 1)
    port = parts.port or _DEFAULT_PORT[parts.scheme]
    return Hop(url, parts.hostname or "", port, headers, method, body, userinfo)


def _method_after(status: int, hop: Hop) -> tuple[str, bytes | None]:
    """Does as browsers do: GET after a 303, and after a 301 or 302 to a POST."""
    if (status == 303 and hop.method != "HEAD") or (status in (301, 302) and hop.method == "POST"):
        return "GET", None
    return hop.method, hop.body


def _may_keep_credentials(hop: Hop, target: Hop) -> bool:
    """Whether it is the same host and port, and no weaker protocol. A move from http to https counts as the same."""
    if hop.host != target.host:
        return False
    if _is_secure(hop) == _is_secure(target):
        return hop.port == target.port
    return _is_secure(target) and hop.port == 80 and target.port == 443


def _is_secure(hop: Hop) -> bool:
    return hop.url.startswith("https:")


def _readable(location: str) -> str:
    """Fixes raw UTF-8 and spaces in a Location header. Servers send both, and browsers accept them."""
    with suppress(UnicodeDecodeError):
        location = location.encode("latin-1").decode("utf-8")
    return location.strip().replace(" ", "%20")
