"""A simulated X: accounts, timelines and searches of its API v2, limits and faults, over real HTTP on loopback.

    python -m headwater.sim.x --port 8901 --seed 1

Its clock stands still unless told otherwise: POST /sim/clock?seconds=3600 moves it on, GET /sim/clock says what it is.
Whoever uses only what X has cannot tell the difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headwater.sim.serving import served
from headwater.sim.x_accounts import Habits
from headwater.sim.x_http import door_of
from headwater.sim.x_world import SimX, simulated


@contextmanager
def serving(x: SimX, port: int = 0) -> Iterator[SimX]:
    """Serve it on loopback; `url` is where."""
    with served(door_of(x), port) as x.url:
        yield x


def main() -> None:
    arguments = argparse.ArgumentParser(description="A simulated X on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--days", type=float, default=7.0)
    arguments.add_argument("--speed", type=float, default=0.0, help="simulated seconds in a real one")
    arguments.add_argument("accounts", nargs="*", default=["hashrate", "ledger", "kuangji"])
    given = arguments.parse_args()
    habits = {name: Habits(lang="zh" if name == "kuangji" else "en") for name in given.accounts}
    x = simulated(habits, seed=given.seed, lasts=timedelta(days=given.days))
    with serving(x, given.port):
        print(f"HEADWATER_X_API_URL={x.url} HEADWATER_X_BEARER_TOKEN={x.token}", flush=True)
        try:
            while True:
                time.sleep(1)
                x.clock.advance(timedelta(seconds=given.speed))
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
