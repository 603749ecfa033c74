"""The simulated Reddit for benchmarks: in its own process, without rate limits, and with its pages kept in memory.

It answers from memory, so that only the client is measured. `step` moves the time between two rounds.
"""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from urllib.parse import parse_qs, urlsplit

from headwater.sim.reddit import answer
from headwater.sim.reddit_world import CommunityHabits, RedditLimits, SimReddit, history
from headwater.sim.serving import Answer, Answered, Ask, Clock
from loopback import listening, written

POSTS_A_DAY = 60.0
ROUND = timedelta(hours=2)  # as the highest tier is visited; a community has five new posts in it
LIVES = timedelta(days=8)
STILL = CommunityHabits(posts_per_day=POSTS_A_DAY, late=0, edited=0, deleted=0, removed=0, bursts=0)


class Simulator:
    """A handle on the simulator's process."""

    def __init__(self, pipe: Connection, url: str) -> None:
        self._pipe = pipe
        self.url = url

    def step(self, share: float) -> None:
        """Moves the time by a round in this share of the communities; in the others nothing happens."""
        self._pipe.send(share)
        self._pipe.recv()

    def requests(self) -> int:
        """Returns the number of requests for a listing since the last call."""
        self._pipe.send("requests")
        return int(self._pipe.recv())


@contextmanager
def simulator(communities: int, *, scores_move: bool) -> Iterator[Simulator]:
    ours, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_serve, args=(theirs, communities, scores_move), daemon=True)
    process.start()
    try:
        yield Simulator(ours, ours.recv())
    finally:
        ours.send(None)
        process.join()


def name_of(number: int) -> str:
    return f"c{number:04}"


class World:
    """Communities with separate clocks, so that some can stand still."""

    def __init__(self, communities: int, scores_move: bool) -> None:
        begins = datetime.now(UTC) - 2 * LIVES
        self.requests = 0
        self._clocks = [Clock(begins + LIVES / 2) for _ in range(communities)]
        self._reddits: list[SimReddit] = []
        for number, clock in enumerate(self._clocks):
            posts = history(name_of(number), begins, LIVES, number, STILL)
            posts = posts if scores_move else [post._replace(liked=0) for post in posts]
            limits = RedditLimits(requests=0, token_life=timedelta(days=365))
            reddit = SimReddit({name_of(number): posts}, limits, keeps_record=False, clock=clock)
            reddit.tokens["token"] = datetime.max.replace(tzinfo=UTC)
            self._reddits.append(reddit)
        self._answers: dict[str, bytes] = {}

    def step(self, share: float) -> None:
        count = round(len(self._clocks) * share)
        for clock, reddit in zip(self._clocks[:count], self._reddits, strict=False):
            clock.advance(ROUND)
            for path in [path for path in self._answers if f"/{next(iter(reddit.posts))}/" in path]:
                self._answers[path] = self._made(path)

    def answer(self, path: str) -> bytes:
        if path == "/api/v1/access_token":
            return _written(Answer(200, b'{"access_token": "token", "expires_in": 86400, "scope": "*"}'))
        self.requests += 1
        if path not in self._answers:
            self._answers[path] = self._made(path)
        return self._answers[path]

    def _made(self, path: str) -> bytes:
        parts = urlsplit(path)
        query: Mapping[str, str] = {name: values[0] for name, values in parse_qs(parts.query).items()}
        reddit = self._reddits[int(parts.path.split("/")[2][1:])]
        return _written(answer(reddit, Ask("GET", parts.path, query, "Bearer token")))


def _written(answer: Answered) -> bytes:
    """Returns the response compressed, as Reddit sends it."""
    body = gzip.compress(answer.body, 6)
    return written("200 OK", body, "Content-Type: application/json", "Content-Encoding: gzip")


def _serve(pipe: Connection, communities: int, scores_move: bool) -> None:
    asyncio.run(_answering(pipe, World(communities, scores_move)))


async def _answering(pipe: Connection, world: World) -> None:
    server, url = await listening(lambda path, _: world.answer(path))
    pipe.send(url)
    while (asked := await asyncio.to_thread(pipe.recv)) is not None:
        if asked == "requests":
            pipe.send(world.requests)
            world.requests = 0
        else:
            world.step(asked)
            pipe.send(True)
    server.close()
