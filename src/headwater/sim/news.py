"""A simulated news site: a paged list, a JSON endpoint with a cursor, a list made by a script, sitemaps, on loopback.

    python -m headwater.sim.news --port 8901 --seed 1 --language zh

Lists are at /news (pages), /api/articles (JSON), /live (script) and /sitemap.xml. Its clock stands still unless told
otherwise: POST /sim/clock?seconds=3600 moves it on, and articles come out and are edited.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headwater.sim.news_http import door_of
from headwater.sim.news_world import SimNews, simulated
from headwater.sim.serving import served


@contextmanager
def serving(site: SimNews, port: int = 0) -> Iterator[SimNews]:
    """Serve it on loopback; `url` is where."""
    with served(door_of(site), port) as site.url:
        yield site


def main() -> None:
    arguments = argparse.ArgumentParser(description="A simulated news site on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--articles", type=int, default=35, help="that are out when it begins")
    arguments.add_argument("--language", choices=["en", "zh"], default="en")
    arguments.add_argument("--speed", type=float, default=0.0, help="simulated seconds in a real one")
    given = arguments.parse_args()
    with serving(simulated(seed=given.seed, before=given.articles, language=given.language), given.port) as site:
        print(f"{site.url}/news", flush=True)
        try:
            while True:
                time.sleep(1)
                site.clock.advance(timedelta(seconds=given.speed))
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
