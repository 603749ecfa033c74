"""Attacks a running Headwater, and counts what got through. Everything stays on loopback.

    python bench/attack.py [--attacks addresses,scripts,…] [--seconds 120]

For each attack, starts `headwater up` with an empty store, a site that attacks it, and a place that nobody may reach. A
try that should have been refused and was not is a finding. Ends with 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from attacks import EMAIL, PASSWORD, Finding, Target, Trap, web
from attacks.connections import addresses, requests
from attacks.doors import FORM, doors, escalation, forgery, guesses, privacy, timing
from attacks.sites import boards, names
from attacks.texts import lists, oddities, scripts
from support.whole import headwater_process, login_link  # type: ignore[import-not-found]

ATTACKS: dict[str, Callable[[Target], Iterator[Finding]]] = {
    "addresses": addresses,
    "doors": doors,
    "forgery": forgery,
    "privacy": privacy,
    "escalation": escalation,
    "guesses": guesses,
    "timing": timing,
    "names": names,
    "boards": boards,
    "oddities": oddities,
    "lists": lists,
    "requests": requests,
    "scripts": scripts,
}


@contextmanager
def trap() -> Iterator[Trap]:
    """A server on 127.0.0.2 and on ::1."""
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.2", 0)))
        listeners = [first]
        with suppress(OSError):
            six = socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6)
            listeners.append(stack.enter_context(six))
        caught, ended = Trap(first.getsockname()[1], []), threading.Event()

        def watch(listener: socket.socket) -> None:
            listener.settimeout(0.2)
            while not ended.is_set():
                with suppress(TimeoutError, OSError):
                    client, _ = listener.accept()
                    client.settimeout(2)
                    with client, suppress(OSError):
                        caught.visitors.append(repr(client.recv(100)))

        threads = [threading.Thread(target=watch, args=(listener,)) for listener in listeners]
        for thread in threads:
            thread.start()
        try:
            yield caught
        finally:
            ended.set()
            for thread in threads:
                thread.join()


@contextmanager
def attacked(folder: Path, seconds: float) -> Iterator[Target]:
    """A Headwater of its own, that may reach the attacking site and nothing else on this machine."""
    environ = {
        "HEADWATER_DATA_DIR": str(folder),
        "HEADWATER_ALLOW_PRIVATE_NETWORKS": "127.0.0.1/32",
        "HEADWATER_RATE_LIMITS": "",
    }
    with web() as site, trap() as caught, headwater_process("up", environ=environ) as (process, port):
        made = [sys.executable, "-m", "headwater", "token"]
        token = subprocess.run(made, env={**environ}, capture_output=True, text=True, check=True).stdout.strip()
        bare = Target(port, token, "", site, caught, seconds, process.pid)
        link = urlsplit(login_link(environ, port))
        signed = bare.ask("GET", f"{link.path}?{link.query}")
        target = bare._replace(cookie=signed.cookies[0].partition(";")[0])
        invited = json.loads(target.program("POST", "/api/invitations", {"email": EMAIL, "role": "viewer"}).body)
        joins = {"token": invited["link"].partition("token=")[2], "name": "Ann", "password": PASSWORD}
        target.ask("POST", "/invitation", urlencode(joins).encode(), Content_Type=FORM)
        yield target


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks a running Headwater, and counts what got through.")
    parser.add_argument("--attacks", default=",".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=120.0, help="the longest wait for what a visit brings")
    given = parser.parse_args()
    found = 0
    print(f"{'attack':12} {'tries':>7} {'findings':>9} {'seconds':>8}")
    for name in given.attacks.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="headwater-attack-") as folder,
            attacked(Path(folder), given.seconds) as target,
        ):
            start = time.monotonic()
            tries = list(ATTACKS[name](target))
            findings = [one for one in tries if one]
            healthy = target.ask("GET", "/healthz").status == 200
            findings += [] if healthy else ["it does not answer any more"]
        found += len(findings)
        print(f"{name:12} {len(tries):7,} {len(findings):9,} {time.monotonic() - start:8.0f}", flush=True)
        for one in findings[:20]:
            print(f"    {one[:200]}", flush=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
