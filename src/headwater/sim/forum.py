"""A simulated forum: boards, threads that grow, edits, deletions, pictures and faults, over real HTTP on loopback.

    python -m headwater.sim.forum --port 8902 --seed 1

The same boards stand at /bbs/ as pages, like those of most Chinese boards, and at /talk/ as JSON, like Discourse's.
Its clock stands still unless told otherwise: POST /sim/clock?seconds=3600 moves it on, GET /sim/clock says what it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headwater.sim.forum_http import door_of
from headwater.sim.forum_world import Habits, SimForum, simulated
from headwater.sim.serving import served


@contextmanager
def serving(forum: SimForum, port: int = 0) -> Iterator[SimForum]:
    """Serve it on loopback; `url` is where."""
    with served(door_of(forum), port) as forum.url:
        yield forum


def main() -> None:
    arguments = argparse.ArgumentParser(description="A simulated forum on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--days", type=float, default=7.0)
    arguments.add_argument("--speed", type=float, default=0.0, help="simulated seconds in a real one")
    given = arguments.parse_args()
    boards = {"mining": Habits(), "kuangji": Habits(lang="zh")}
    forum = simulated(boards, seed=given.seed, lasts=timedelta(days=given.days))
    forum.clock.advance(timedelta(days=given.days / 2))
    with serving(forum, given.port):
        for number, name in forum.boards.items():
            print(f"{forum.url}/bbs/forum-{number}-1.html {forum.url}/talk/c/{name}/{number}", flush=True)
        try:
            while True:
                time.sleep(1)
                forum.clock.advance(timedelta(seconds=given.speed))
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
