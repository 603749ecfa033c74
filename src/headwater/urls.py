"""Addresses: which ones we accept, their canonical form, and when two of them mean the same page."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from headwater.errors import BadAddress

MAX_LENGTH = 8192

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\x9f\\\ud800-\udfff]")
_DEFAULT_PORT = {"http": 80, "https": 443}
_USERINFO_SAFE = "%:!$&'()*+,;=~-._"
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_BARE_HOST = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?([/?#].*)?")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")

# Following a link with one of these schemes runs no script and reads no local file.
LINK_SCHEMES = frozenset({"http", "https", "magnet", "mailto", "ftp", "gemini"})

_PLAIN_LINK = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]{1,5})?(?:[/?#][!#-;=?-\[\]_a-z~]*)?", re.IGNORECASE)
_PLAIN_PATH = re.compile(r"(?!//)(?![^?#]*/\.)[/#][!#-;=?-\[\]_a-z~]*", re.IGNORECASE)
_PLAIN_BASE = re.compile(r"(https?://[a-z0-9.:-]+)(?=/)[^#]*")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufffe\uffff]")
_TO_QUOTE = re.compile(r"[\s\"<>`{}|\\^]")

# Without a slash it is a name and a password; with one, a password that nobody encoded.
_CREDENTIAL = re.compile(r"//(?:[^/?#\s@]*|[^/?#\s@:]*:[^@\s]*)@(?=[^\s])")
_SECRET_VALUE = re.compile(r"[?&;]([^=&;?#\s]+)=([^&;#\s\"']+)")
_SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|(?:^|_)(?:auth|key|sig|pass|session|sid|code|user_?key)|apikey|hash", re.I
)
_MIXED = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d")

# Parameters that say how a reader got to a page, and nothing about the page.
_TRACKING = re.compile(
    r"utm_\w*|(?:mc|mkt|hsa|pk|piwik|matomo|mtm|vero|oly|ns)_\w+|_hs(?:enc|mi)|__hs\w+|_openstat|_ga|_gl"
    r"|at_(?:medium|campaign|custom\d|link\w*)|[dfg]clid|fbclid|gclsrc|[gw]braid|msclkid|ysclid|yclid|twclid|ttclid"
    r"|igsh(?:id)?|li_fat_id|wt\.?_?mc|wickedid|rb_clickid|s_cid|ncid|cmpid|ocid|xtor|ftcamp|sr_share|ref_src|ref_url"
    r"|__twitter_impression|spm|guccounter|guce_referrer(?:_sig)?",
    re.IGNORECASE,
)

# Most addresses are this simple. They need no parsing to be compared.
_PLAIN_ADDRESS = re.compile(r"https?://(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(/[\w/.~+,;=:@!$&'()*-]*)?", re.ASCII)


def with_scheme(address: str) -> str:
    """Adds https:// to what a person types (`example.org/blog`). Leaves anything else as it is."""
    address = address.strip()
    return f"https://{address}" if _BARE_HOST.fullmatch(address) else address


def canonical(address: str) -> str:
    """Returns the canonical form: http(s), IDNA host in lower case, no default port, no fragment.

    Raises BadAddress for anything that two URL parsers could read differently.
    """
    parts = split(address)
    netloc = _netloc(parts)
    if "@" in parts.netloc:
        netloc = quote(parts.netloc.rpartition("@")[0], safe=_USERINFO_SAFE) + "@" + netloc
    path = quote(parts.path, safe=_PATH_SAFE) or "/"
    query = quote(parts.query, safe=_PATH_SAFE + "?")
    return urlunsplit((parts.scheme, netloc, path, query, ""))


def split(address: str) -> SplitResult:
    """Splits an address that came from outside. Raises BadAddress, with the reason, if it is not valid."""
    if len(address) > MAX_LENGTH:
        raise BadAddress(f"The address has {len(address):,} characters; at most {MAX_LENGTH:,} are allowed.")
    address = address.strip(" ")
    if _FORBIDDEN.search(address):
        raise BadAddress("The address contains a space, a backslash or a control character. Percent-encode it.")
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - raises where the port is not a number
    except ValueError as error:
        # What is taken for a port may be half of a password: it is not repeated.
        raise BadAddress(
            "The address cannot be read: its port is not a number, or a bracket is missing. Percent-encode passwords."
        ) from error
    if parts.scheme not in _DEFAULT_PORT:
        raise BadAddress("Only http:// and https:// addresses can be used.")
    if parts.netloc.count("@") > 1:
        raise BadAddress("The address has more than one @ before its host. Percent-encode them.")
    return parts


def without_credential(address: str) -> tuple[str, str | None]:
    """Returns a canonical address without `name:password@`, and the decoded credential if there was one."""
    scheme, _, rest = address.partition("://")
    netloc, slash, path = rest.partition("/")
    credential, mark, host = netloc.rpartition("@")
    if not mark:
        return address, None
    return f"{scheme}://{host}{slash}{path}", unquote(credential)


def without_secrets(words: str) -> str:
    """Returns words for a log or an answer, with credentials and what looks like a token in addresses left out."""
    return _SECRET_VALUE.sub(_hidden, _CREDENTIAL.sub("//…@", words)) if "//" in words else words


def _hidden(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    is_secret = _SECRET_NAME.search(name) is not None or (len(value) >= 16 and _MIXED.search(value) is not None)
    return f"{found[0][0]}{name}={'…' if is_secret else value}"


def same_server(address: str, other: str) -> bool:
    """Whether both addresses belong to the same server. It may have moved from http to https."""
    one, two = split(address), split(other)
    if (one.scheme, one.hostname, one.port) == (two.scheme, two.hostname, two.port):
        return True
    ports = (one.port or 80, two.port or 443)
    return one.hostname == two.hostname and (one.scheme, two.scheme, *ports) == ("http", "https", 80, 443)


def host_of(parts: SplitResult) -> str:
    """Returns the host in ASCII and lower case. Raises BadAddress if programs could read it differently."""
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise BadAddress("The address has no host name.")
    if "%" in host:
        raise BadAddress("The host name contains a percent sign, which some programs decode and others do not.")
    try:
        if ":" in host:
            return str(IPv6Address(host))
        host = _ascii(host)
    except ValueError as error:
        raise BadAddress(f"The host name is not valid: {error}.") from error
    if not _HOST.fullmatch(host) or ".." in host:
        raise BadAddress("The host name contains characters that are not allowed in host names.")
    return host


def safe_link(link: str | None, base: str | None) -> str | None:
    """Returns a link from a document as an absolute address, or None if it must not be shown."""
    if not link:
        return None
    if _PLAIN_LINK.fullmatch(link):
        return link
    start = _PLAIN_BASE.match(base) if base and _PLAIN_PATH.fullmatch(link) else None
    if start:
        return (start[1] if link[0] == "/" else start[0]) + link
    link = _INVISIBLE.sub("", link).strip()
    if not link or len(link) > MAX_LENGTH:
        return None
    scheme = _SCHEME.match(link)
    if scheme and scheme[1].lower() not in LINK_SCHEMES:
        return None
    try:
        absolute = urljoin(base, link) if base and not scheme else link
        parts = urlsplit(absolute)
    except ValueError:
        return None
    if parts.scheme not in LINK_SCHEMES or (parts.scheme in _DEFAULT_PORT and not parts.hostname):
        return None
    if "\\" in parts.netloc or "\\" in link[:9]:
        return None
    return _TO_QUOTE.sub(lambda found: quote(found[0]), absolute)


def joined(base: str | None, link: str | None) -> str | None:
    """Returns a link resolved against a base; the base itself if they do not fit together."""
    if not link:
        return base
    try:
        return urljoin(base or "", link.strip())
    except ValueError:
        return base


def without_tracking(url: str) -> str:
    """Removes the parameters that only say how a reader got to the page."""
    head, mark, query = url.partition("?")
    if not mark:
        return url
    query, hash_mark, fragment = query.partition("#")
    kept = [pair for pair in query.split("&") if pair and not _TRACKING.fullmatch(pair.partition("=")[0])]
    if len(kept) == query.count("&") + 1:
        return url
    return head + ("?" + "&".join(kept) if kept else "") + hash_mark + fragment


def identity(url: str) -> str:
    """Returns a key that is equal for all addresses of one article.

    http or https, `www.`, a default port, a trailing slash, tracking parameters and the fragment make no difference. A
    fragment that is itself an address (`#!...`, `#/...`) does.
    """
    plain = _PLAIN_ADDRESS.fullmatch(url)
    if plain:
        return plain[1] + (plain[2] or "").rstrip("/")
    try:
        parts = urlsplit(without_tracking(url.strip()))
        host, port = _ascii((parts.hostname or "").rstrip(".")), parts.port
    except ValueError:
        return url.strip()
    if parts.scheme not in _DEFAULT_PORT:
        return url.strip()
    netloc = host.removeprefix("www.") if host.count(".") > 1 else host
    if port is not None and port not in _DEFAULT_PORT.values():
        netloc += f":{port}"
    path = quote(parts.path, safe=_PATH_SAFE).rstrip("/")
    query = "?" + quote(parts.query, safe=_PATH_SAFE + "?") if parts.query else ""
    fragment = "#" + parts.fragment if parts.fragment[:1] in {"!", "/"} else ""
    return netloc + path + query + fragment


def _ascii(host: str) -> str:
    """Returns a host name in lower case. Names with non-ASCII characters are converted to IDNA."""
    return host.lower() if host.isascii() else host.encode("idna").decode("ascii").lower()


def _netloc(parts: SplitResult) -> str:
    host = host_of(parts)
    netloc = f"[{host}]" if ":" in host else host
    if parts.port is not None and parts.port != _DEFAULT_PORT[parts.scheme]:
        netloc += f":{parts.port}"
    return netloc
