"""The attacks of `make attack` on a running Headwater: none gets through. The longest of them are tried there alone."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import attack
from support.processes import wait_until


@pytest.mark.parametrize("name", sorted(attack.ATTACKS.keys() - {"names", "oddities", "scripts"}))
def test_no_attack_gets_through(tmp_path: Path, name: str) -> None:
    # H1 H3 H50 H51 H70 H72 H73 H74
    with attack.attacked(tmp_path, seconds=120) as target:
        tries = list(attack.ATTACKS[name](target))
        assert [one for one in tries if one] == []
        assert len(tries) > 10
        assert target.ask("GET", "/healthz").status == 200


def test_whoever_reaches_the_forbidden_place_is_seen() -> None:
    with attack.trap() as trap:
        with socket.create_connection(("127.0.0.2", trap.port)) as client:
            client.sendall(b"GET /secret HTTP/1.1\r\n\r\n")
        wait_until(lambda: bool(trap.visitors))
    assert "GET /secret" in trap.visitors[0]
