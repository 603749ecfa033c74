"""robots.txt: what sites let programs read. Fetches it once a day per site for all processes, and stores the answer.

A site without rules allows everything. A site that cannot answer at the moment is left alone until it can, unless its
rules are stored from before (RFC 9309).
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
from headwater.parse.process import LARGEST_ROBOTS
from headwater.store.db import Database
from headwater.store.sources import leases, limits
from headwater.store.sources.limits import RobotsRules

MAX_AGE = timedelta(days=1)
LONGEST_DELAY = 120.0
MOST_CACHED = 200


class Robots:
    """Fetches rules and keeps them. They are untrusted bytes, so a parser process interprets them."""

    def __init__(
        self,
        db: Database,
        fetch: Callable[[Request], Awaitable[Response]],
        parsers: Parsers,
        agent: str,
        now: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._fetch = fetch
        self._parsers = parsers
        self._agent = agent.partition("/")[0]
        self._now = now
        self._cached: dict[str, RobotsRules] = {}

    async def check(self, url: str, wait_for_slot: Callable[[], Awaitable[None]]) -> None:
        """Raises RobotsRefused if the site asks programs not to read this page.

        `wait_for_slot` waits for the host's rate limit; it is called only if robots.txt has to be fetched.
        """
        rules = await self._rules(url, wait_for_slot)
        if not rules.text:
            return
        verdict = await self._parsers.verdict(_as_answer(rules), url, self._agent)
        if not verdict.allowed:
            raise RobotsRefused("The site's robots.txt asks programs not to read this page. It is left alone.")

    async def _rules(self, url: str, wait_for_slot: Callable[[], Awaitable[None]]) -> RobotsRules:
        origin = origin_of(url)
        rules = self._cached.get(origin) or await self._db.read(limits.load_robots, origin)
        if rules is None or self._now() - rules.fetched_at > MAX_AGE:
            await wait_for_slot()
            rules = await self._fetched(origin, rules)
        while len(self._cached) >= MOST_CACHED:
            self._cached.pop(next(iter(self._cached)))
        self._cached[origin] = rules
        return rules

    async def _fetched(self, origin: str, before: RobotsRules | None) -> RobotsRules:
        try:
            answer = await self._fetch(Request(f"{origin}/robots.txt", (("Accept", "text/plain, */*;q=0.1"),)))
            status, text = answer.status, _text(answer)
        except FetchFailed:
            if before is None:
                raise
            return before._replace(fetched_at=self._now())
        rules = RobotsRules(origin, status, text, self._now())
        delay = (await self._parsers.verdict(_as_answer(rules), origin, self._agent)).delay if text else None
        await self._db.write(_store, rules, delay)
        return rules


def origin_of(url: str) -> str:
    """Returns scheme, host and port: rules apply to all three together."""
    parts = urlsplit(urls.canonical(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _text(answer: Response) -> str:
    """Returns the rules in an answer, or nothing if the site says that it has none. Raises if the site cannot say."""
    if 400 <= answer.status < 500 and answer.status != 429:
        return ""
    try:
        judge(answer)
    except StatusRefused as refused:
        raise StatusRefused(f"The site's robots.txt cannot be read: {refused.detail}", **refused.facts) from refused
    return unpacked(answer, LARGEST_ROBOTS * 4)[:LARGEST_ROBOTS].decode("utf-8", "replace").replace("\0", "")


def _as_answer(rules: RobotsRules) -> Response:
    return Response(rules.origin, rules.status, {}, rules.text.encode(), rules.fetched_at)


def _store(conn: Connection, rules: RobotsRules, delay: float | None) -> None:
    limits.save_robots(conn, rules)
    gap = timedelta(seconds=min(max(delay or 0.0, 0.0), LONGEST_DELAY))
    leases.set_crawl_delay(conn, urls.host_of(urlsplit(rules.origin)), gap, rules.fetched_at)
