"""A simulated Reddit: tokens, listings with pages, public feeds, limits and faults, over real HTTP on loopback.

    python -m headwater.sim.reddit --port 8900 --seed 1

Its clock stands still unless told otherwise: POST /sim/clock?seconds=3600 moves it on, GET /sim/clock says what it is.
Whoever uses only what Reddit has cannot tell the difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headwater.sim.communities import Habits
from headwater.sim.reddit_http import door_of
from headwater.sim.reddit_world import SimReddit, simulated
from headwater.sim.serving import served


@contextmanager
def serving(reddit: SimReddit, port: int = 0) -> Iterator[SimReddit]:
    """Serve it on loopback; `url` is where."""
    with served(door_of(reddit), port) as reddit.url:
        yield reddit


def main() -> None:
    arguments = argparse.ArgumentParser(description="A simulated Reddit on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--days", type=float, default=7.0)
    arguments.add_argument("--speed", type=float, default=0.0, help="simulated seconds in a real one")
    arguments.add_argument("communities", nargs="*", default=["python", "news", "gardening"])
    given = arguments.parse_args()
    reddit = simulated(
        {name: Habits() for name in given.communities}, seed=given.seed, lasts=timedelta(days=given.days)
    )
    with serving(reddit, given.port):
        print(f"HEADWATER_REDDIT_API_URL={reddit.url} HEADWATER_REDDIT_URL={reddit.url}", flush=True)
        print(f"HEADWATER_REDDIT_CLIENT_ID='{reddit.client[0]}' HEADWATER_REDDIT_CLIENT_SECRET='{reddit.client[1]}'")
        try:
            while True:
                time.sleep(1)
                reddit.clock.advance(timedelta(seconds=given.speed))
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
