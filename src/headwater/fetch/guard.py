"""Which addresses a connection may go to.

It judges the numeric address that is about to be connected to, never a name or a spelling, because those can lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from headwater.errors import BadSetting

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SETTING = "HEADWATER_ALLOW_PRIVATE_NETWORKS"

# Cloud machines give out their credentials here (AWS, Google, Azure, Alibaba, Oracle). No setting opens these.
METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)

# Our own list, because `ipaddress` differs between Python releases, and calls shared space, NAT64 and 6to4 global.
_NOT_PUBLIC = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "means this machine"),
        ("10.0.0.0/8", "is private"),
        ("100.64.0.0/10", "is internal to a carrier"),
        ("127.0.0.0/8", "is this machine (loopback)"),
        ("169.254.0.0/16", "is link-local"),
        ("172.16.0.0/12", "is private"),
        ("192.0.0.0/24", "is reserved"),
        ("192.0.2.0/24", "is reserved for documentation"),
        ("192.88.99.0/24", "is reserved"),
        ("192.168.0.0/16", "is private"),
        ("198.18.0.0/15", "is reserved for measurements"),
        ("198.51.100.0/24", "is reserved for documentation"),
        ("203.0.113.0/24", "is reserved for documentation"),
        ("224.0.0.0/4", "is multicast"),
        ("240.0.0.0/4", "is reserved"),
        ("::/128", "means this machine"),
        ("::1/128", "is this machine (loopback)"),
        ("64:ff9b:1::/48", "is a local translation network (NAT64)"),
        ("fc00::/7", "is private (unique local)"),
        ("fe80::/10", "is link-local"),
        ("fec0::/10", "is site-local"),
        ("ff00::/8", "is multicast"),
        ("2001:2::/48", "is reserved for measurements"),
        ("2001:10::/28", "is reserved"),
        ("2001:20::/28", "is reserved"),
        ("2001:db8::/32", "is reserved for documentation"),
        ("3fff::/20", "is reserved for documentation"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")

# Where the four bytes of IPv4 can be in a local NAT64 address (RFC 6052, prefixes of 48, 56, 64 and 96 bits).
_LOCAL_NAT64_BYTES = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))

# The "bad ports" of the Fetch standard, then databases, caches and remote shells that answer anybody.
REFUSED_PORTS = frozenset(
    {0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109}
    | {110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530}
    | {531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190}
    | {5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
    | {445, 873, 1433, 1521, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 6379, 9042, 9092, 11211, 27017}
)


class AddressGuard:
    """Decides whether a connection may be opened.

    `allow` is False (public addresses only), True (private ones too), or the networks that are open besides public
    addresses. Metadata addresses of clouds and ports that are not for the web are always refused.
    """

    def __init__(self, allow: bool | Sequence[Network] = False) -> None:
        self._everything = allow is True
        self._networks = () if isinstance(allow, bool) else tuple(allow)

    def refusal(self, ip: str, port: int) -> str | None:
        """Returns why no connection may go there; None if it may."""
        if port in REFUSED_PORTS:
            return f"port {port} is not a web port"
        try:
            address = ip_address(ip.partition("%")[0])
        except ValueError:
            return f"{ip} is not an IP address"
        carried = list(_carried(address))
        if METADATA.intersection((address, *carried, *_perhaps_carried(address))):
            return f"{ip} is a cloud's metadata address, which hands out credentials"
        if self._everything or self._opens(address):
            return None
        for inner in carried or [address]:
            reason = None if self._opens(inner) else _why_not_public(inner)
            if reason:
                named = ip if inner is address else f"{ip} stands for {inner}, which"
                return f"{named} {reason}; only {SETTING} can open it"
        return None

    def _opens(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def parse_allow(text: str) -> bool | tuple[Network, ...]:
    """Parses HEADWATER_ALLOW_PRIVATE_NETWORKS: `true`, `false`, or networks separated by commas."""
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    try:
        return tuple(ip_network(part.strip()) for part in word.split(","))
    except ValueError as error:
        raise BadSetting(
            f"{SETTING} must be true, false or networks such as 127.0.0.0/8,10.1.0.0/16: {error}.", setting=SETTING
        ) from error


def _why_not_public(address: Address) -> str | None:
    for network, reason in _NOT_PUBLIC:
        if address in network:
            return reason
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return "is reserved"
    return None


def _carried(address: Address) -> Iterator[Address]:
    """Yields the IPv4 addresses that a packet to this IPv6 address reaches or passes."""
    if address.version == 4:
        return
    packed = address.packed
    if address in _MAPPED or address in _NAT64:
        yield IPv4Address(packed[12:])
    elif address in _6TO4:
        yield IPv4Address(packed[2:6])
    elif address in _TEREDO:
        yield IPv4Address(packed[4:8])
        yield IPv4Address(bytes(byte ^ 0xFF for byte in packed[12:]))


def _perhaps_carried(address: Address) -> Iterator[Address]:
    if address.version == 6 and address in _NAT64_LOCAL:
        for places in _LOCAL_NAT64_BYTES:
            yield IPv4Address(bytes(address.packed[place] for place in places))
