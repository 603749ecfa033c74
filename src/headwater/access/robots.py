"""What sites let us read: asks each for its robots.txt once a day, over all processes, and remembers the answer.

A site without rules lets us read everything; one that cannot say at the moment is left alone until it can, unless it
said so before (RFC 9309).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import Connection

from headwater import urls
from headwater.errors import FetchFailed, RobotsRefused, StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.statuses import judge
from headwater.model import Request, Response
from headwater.parse.pool import Parsers
from headwater.sources.robots import LARGEST
from headwater.store.db import Database
from headwater.store.sources import leases, limits
from headwater.store.sources.limits import RobotsRules

KEPT = timedelta(days=1)
LONGEST_DELAY = 120.0
MOST_REMEMBERED = 200


class Robots:
    """Asks for rules and keeps them. What they mean is decided in a reading process: they come from outside."""

    def __init__(
        self,
        db: Database,
        fetch: Callable[[Request], Awaitable[Response]],
        readers: Parsers,
        agent: str,
        now: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._fetch = fetch
        self._readers = readers
        self._agent = agent.partition("/")[0]
        self._now = now
        self._remembered: dict[str, RobotsRules] = {}

    async def check(self, url: str, turn: Callable[[], Awaitable[None]]) -> None:
        """Raise RobotsRefused where the site asks programs not to read this page. `turn` waits for the host's turn."""
        rules = await self._rules(url, turn)
        if not rules.text:
            return
        verdict = await self._readers.verdict(_as_answer(rules), url, self._agent)
        if not verdict.allowed:
            raise RobotsRefused("The site's robots.txt asks programs not to read this page. It is left alone.")

    async def _rules(self, url: str, turn: Callable[[], Awaitable[None]]) -> RobotsRules:
        origin = origin_of(url)
        rules = self._remembered.get(origin) or await self._db.read(limits.load_robots, origin)
        if rules is None or self._now() - rules.fetched_at > KEPT:
            await turn()
            rules = await self._asked(origin, rules)
        while len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)))
        self._remembered[origin] = rules
        return rules

    async def _asked(self, origin: str, before: RobotsRules | None) -> RobotsRules:
        try:
            answer = await self._fetch(Request(f"{origin}/robots.txt", (("Accept", "text/plain, */*;q=0.1"),)))
            status, text = answer.status, _text(answer)
        except FetchFailed:
            if before is None:
                raise
            return before._replace(fetched_at=self._now())
        rules = RobotsRules(origin, status, text, self._now())
        delay = (await self._readers.verdict(_as_answer(rules), origin, self._agent)).delay if text else None
        await self._db.write(_keep, rules, delay)
        return rules


def origin_of(url: str) -> str:
    """Scheme, host and port: rules hold for these."""
    parts = urlsplit(urls.canonical(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _text(answer: Response) -> str:
    """The rules in an answer; none where the site says that it has none. Raises where it cannot say."""
    if 400 <= answer.status < 500 and answer.status != 429:
        return ""
    try:
        judge(answer)
    except StatusRefused as refused:
        raise StatusRefused(f"The site's robots.txt cannot be read: {refused.detail}", **refused.facts) from refused
    return unpacked(answer, LARGEST * 4)[:LARGEST].decode("utf-8", "replace").replace("\0", "")


def _as_answer(rules: RobotsRules) -> Response:
    return Response(rules.origin, rules.status, {}, rules.text.encode(), rules.fetched_at)


def _keep(conn: Connection, rules: RobotsRules, delay: float | None) -> None:
    limits.save_robots(conn, rules)
    gap = timedelta(seconds=min(max(delay or 0.0, 0.0), LONGEST_DELAY))
    leases.widen_gap(conn, urls.host_of(urlsplit(rules.origin)), gap, rules.fetched_at)
