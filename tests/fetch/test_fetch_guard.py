"""The address guard by itself: numeric addresses in, reasons out."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import BadSetting
from headwater.fetch.guard import METADATA, REFUSED_PORTS, AddressGuard, parse_allow

PUBLIC_ONLY = AddressGuard()
EVERYTHING = AddressGuard(allow=True)


@pytest.mark.parametrize(
    "ip",
    [
        *("127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::"),  # H1
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"),  # H2
        *("100.64.0.1", "100.127.255.255"),  # H4
        *("169.254.1.1", "fe80::1", "fe80::1%eth0", "fec0::1"),
        *("224.0.0.1", "239.255.255.255", "ff02::1", "240.0.0.1", "255.255.255.255"),
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.0.0.8", "2001:db8::1", "3fff::1"),
        *("4000::1", "100::1", "5f00::1"),
    ],
)
def test_addresses_that_are_not_public_are_refused_with_a_reason(ip: str) -> None:
    reason = PUBLIC_ONLY.refusal(ip, 80)

    assert reason is not None
    assert ip in reason
    assert EVERYTHING.refusal(ip, 80) is None


PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860::8888"]
CARRIES_PUBLIC = ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7"]


@pytest.mark.parametrize("ip", PUBLIC + CARRIES_PUBLIC)
def test_public_addresses_are_allowed_also_inside_an_address(ip: str) -> None:
    assert PUBLIC_ONLY.refusal(ip, 443) is None
    assert PUBLIC_ONLY.refusal(ip, 80) is None


@pytest.mark.parametrize(
    "ip",
    [  # H5
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:10.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::8.8.8.8",
        "64:ff9b:1:a00:1::",
        "2002:7f00:1::1",
        "2002:c0a8:101::",
        "2001:0:7f00:1::f7f7:f7f7",
        "2001:0:808:808::80ff:fffe",
        "::127.0.0.1",
        "::8.8.8.8",
    ],
)
def test_an_address_inside_an_address_is_refused_for_what_it_carries(ip: str) -> None:
    assert PUBLIC_ONLY.refusal(ip, 80)


@pytest.mark.parametrize(
    "ip",
    [  # H3
        "169.254.169.254",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2002:a9fe:a9fe::1",
        "168.63.129.16",
        "100.100.100.200",
    ],
)
@pytest.mark.parametrize(
    "guard", [PUBLIC_ONLY, EVERYTHING, AddressGuard([ip_network("169.254.0.0/16"), ip_network("::/0")])]
)
def test_metadata_addresses_are_refused_whatever_is_allowed(guard: AddressGuard, ip: str) -> None:
    reason = guard.refusal(ip, 80)

    assert reason is not None
    assert "metadata" in reason


@pytest.mark.parametrize("port", [22, 25, 6379, 5432, 11211, 0])
def test_ports_that_are_not_for_the_web_are_refused_even_where_everything_is_allowed(port: int) -> None:
    # H17
    assert EVERYTHING.refusal("8.8.8.8", port) == f"port {port} is not a web port"


@pytest.mark.parametrize("port", [80, 443, 8080, 8443, 3000, 8000, 8888, 49152])
def test_ports_that_carry_web_servers_are_allowed(port: int) -> None:
    assert PUBLIC_ONLY.refusal("8.8.8.8", port) is None


def test_listed_networks_are_opened_and_nothing_else_is() -> None:
    guard = AddressGuard(parse_allow("127.0.0.0/8, 10.1.0.0/16,fd12::/16"))

    for ip in ("127.0.0.1", "10.1.2.3", "fd12::1", "::ffff:10.1.2.3", "8.8.8.8"):
        assert guard.refusal(ip, 80) is None
    for ip in ("10.2.0.1", "192.168.0.1", "::1", "fd13::1", "::ffff:10.2.0.1"):
        assert guard.refusal(ip, 80)


def test_what_is_not_an_address_is_refused() -> None:
    assert EVERYTHING.refusal("localhost", 80) == "localhost is not an IP address"


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_the_same_in_every_wrapping(inner: IPv4Address) -> None:
    number = int(inner)
    for outer in (
        f"::ffff:{inner}",
        f"64:ff9b::{inner}",
        str(ip_address(0x2002 << 112 | number << 80)),
    ):
        assert (PUBLIC_ONLY.refusal(outer, 80) is None) == (PUBLIC_ONLY.refusal(str(inner), 80) is None)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_allowed(address: object) -> None:
    parsed = ip_address(str(address))
    if parsed.is_loopback or parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified:
        assert PUBLIC_ONLY.refusal(str(address), 80)
    if parsed in METADATA:
        assert EVERYTHING.refusal(str(address), 80)


@pytest.mark.parametrize(("text", "allow"), [("true", True), ("TRUE ", True), ("false", False)])
def test_the_setting_is_true_or_false(text: str, allow: bool) -> None:
    assert parse_allow(text) is allow


def test_the_setting_lists_networks() -> None:
    assert parse_allow("127.0.0.0/8, ::1") == (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    "text", ["", "yes", "1", "10.0.0.0/33", "10.1.2.3/8", "localhost", "127.0.0.0/8,", "127.0.0.1;::1"]
)
def test_any_other_value_of_the_setting_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(BadSetting, match="HEADWATER_ALLOW_PRIVATE_NETWORKS"):
        parse_allow(text)


def test_every_port_of_the_list_is_a_port() -> None:
    assert all(0 <= port < 65536 for port in REFUSED_PORTS)
    assert not REFUSED_PORTS & {80, 443, 8080, 8443}
