"""What opens connections to the outside: HTTP clients, parsing processes, and the access to Reddit and X."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from headwater.access.budget import Access, RateLimiter
from headwater.access.reddit import RedditApi, RedditApp, RedditFeeds
from headwater.access.x import MonthlyMeter, XApi
from headwater.app import instance
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.parse.pool import Parsers
from headwater.settings import Settings
from headwater.store.sources.limits import Budget, MonthlyAllowance
from headwater.wire.parts import Parts

PER_HOST = 6  # connections to one host, where requests to it are spaced out


def open_client(parts: Parts) -> Client:
    """Opens a client for fetching sources."""
    settings = parts.settings
    agent, most = settings.user_agent, settings.max_concurrency
    return client(
        parts,
        user_agent=f"{agent} (+{settings.public_url})" if settings.public_url else agent,
        timeout=settings.fetch_seconds,
        max_bytes=settings.fetch_max_bytes,
        connections=most,
        per_host=PER_HOST if settings.host_gap_seconds else most,
    )


def open_reddit_client(parts: Parts) -> Client:
    settings = parts.settings
    return client(
        parts,
        user_agent=settings.reddit_user_agent or settings.user_agent,
        timeout=settings.reddit_request_timeout_seconds,
        max_bytes=settings.fetch_max_bytes,
        connections=settings.reddit_max_concurrency,
    )


def client(
    parts: Parts,
    *,
    user_agent: str,
    timeout: float,
    max_bytes: int,
    connections: int,
    per_host: int | None = None,
    max_redirects: int = 10,
) -> Client:
    """Opens a client with the guard, the proxy and the clock that all clients share."""
    settings = parts.settings
    return Client(
        user_agent=user_agent,
        guard=AddressGuard(parse_allow(settings.allow_private_networks)),
        timeout=timeout,
        max_bytes=max_bytes,
        max_redirects=max_redirects,
        max_connections=connections,
        max_connections_per_host=per_host or connections,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )


def open_parsers(parts: Parts) -> Parsers:
    settings = parts.settings
    return Parsers(
        settings.reader_processes,
        cpu_seconds=settings.reader_seconds,
        memory_mb=settings.reader_memory_mb,
        max_bytes=settings.fetch_max_bytes,
    )


def reddit_budget(settings: Settings) -> Budget:
    """Returns how much may be asked of Reddit: of its API with credentials, of its feeds without."""
    if settings.reddit_client_id:
        window = timedelta(seconds=settings.reddit_rate_limit_window_seconds)
        return Budget("reddit api", settings.reddit_rate_limit, window)
    gap = timedelta(seconds=settings.reddit_feed_gap_seconds)
    return Budget("reddit feeds", 1 if gap else 0, gap)


def reddit_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    limiter = RateLimiter(parts.db, reddit_budget(settings), parts.now, rest)
    site = settings.reddit_url.rstrip("/")
    if not settings.reddit_client_id or not settings.reddit_client_secret:
        return RedditFeeds(client.fetch, limiter, site, settings.reddit_max_concurrency)
    secret = settings.reddit_client_secret.get_secret_value()
    app = RedditApp(settings.reddit_client_id, secret, site, settings.reddit_api_url.rstrip("/"))
    return RedditApi(app, client.fetch, limiter, parts.now, settings.reddit_max_concurrency)


def x_allowance(settings: Settings) -> MonthlyAllowance:
    """Returns how much may be asked of X in a month."""
    return MonthlyAllowance(settings.x_monthly_requests, settings.x_monthly_posts)


async def x_token(parts: Parts) -> str:
    """Returns the token for X: the one in the settings, or the stored one. Raises KeyMissing if there is neither."""
    if parts.settings.x_bearer_token:
        return parts.settings.x_bearer_token.get_secret_value()
    return await instance.stored_x_token(parts.db, parts.unseal)


def x_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    window = timedelta(seconds=settings.x_rate_limit_window_seconds)
    limiter = RateLimiter(parts.db, Budget("x api", settings.x_rate_limit, window), parts.now, rest)
    meter = MonthlyMeter(parts.db, x_allowance(settings), parts.now)
    return XApi(settings.x_api_url.rstrip("/"), partial(x_token, parts), client.fetch, limiter, meter, parts.now)
