"""The attacks of `make attack` on a running Headwater: none gets through. The longest of them are tried there alone."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import attack
from attacks import Target
from support.processes import wait_until

# One measures memory, with lists without end; the other the CPU of a process that does nothing else.
ALONE = ("boards", "timing")
LONG = ("names", "oddities", "scripts")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One Headwater for all attacks that leave each other alone."""
    with attack.attacked(tmp_path_factory.mktemp("attacked"), seconds=120) as one:
        yield one


def withstands(target: Target, name: str) -> None:
    tries = list(attack.ATTACKS[name](target))
    assert [one for one in tries if one] == []
    assert len(tries) > 10
    assert target.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("name", [name for name in attack.ATTACKS if name not in ALONE + LONG])
def test_no_attack_gets_through(target: Target, name: str) -> None:
    # H1 H3 H50 H51 H70 H72 H73 H74
    withstands(target, name)


@pytest.mark.parametrize("name", ALONE)
def test_no_attack_that_is_measured_gets_through(tmp_path: Path, name: str) -> None:
    with attack.attacked(tmp_path, seconds=120) as target:
        withstands(target, name)


def test_whoever_reaches_the_forbidden_place_is_seen() -> None:
    with attack.trap() as trap:
        with socket.create_connection(("127.0.0.2", trap.port)) as client:
            client.sendall(b"GET /secret HTTP/1.1\r\n\r\n")
        wait_until(lambda: bool(trap.visitors))
    assert "GET /secret" in trap.visitors[0]
