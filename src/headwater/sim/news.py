"""A simulated news site: a paged list, a JSON endpoint with a cursor, a list made by a script, sitemaps, on loopback.

    python -m headwater.sim.news --port 8901 --seed 1 --language zh

Lists are at /news (pages), /api/articles (JSON), /live (script) and /sitemap.xml. Its clock stands still unless told
otherwise: POST /sim/clock?seconds=3600 moves it on, and articles come out and are edited.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import ThreadingHTTPServer

from headwater.sim.news_http import door_of
from headwater.sim.news_world import SimNews, simulated


@contextmanager
def serving(site: SimNews, port: int = 0) -> Iterator[SimNews]:
    """Serve it on loopback; `url` is where."""
    server = _Server(("127.0.0.1", port), door_of(site))
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked has gone; that is no trouble of ours."""


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
