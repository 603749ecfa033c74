"""Clients for the outside: sources, Reddit, X, and the providers at which people sign in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from headwater.access.budget import Access, RateLimiter
from headwater.access.reddit import RedditApi, RedditApp, RedditFeeds
from headwater.access.x import MonthlyMeter, XApi
from headwater.app import instance
from headwater.errors import StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.model import Request
from headwater.store.sources.limits import Budget
from headwater.wire.checks import reddit_budget, x_allowance

if TYPE_CHECKING:
    from headwater.wire.parts import Parts  # which has the providers

MOST_KEY_BYTES = 256 * 1024
OK = 200
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
    allow: str | None = None,
) -> Client:
    """Opens a client with the guard, the proxy and the clock that all clients share. `allow` says which private
    networks it may reach, where that differs."""
    settings = parts.settings
    return Client(
        user_agent=user_agent,
        guard=AddressGuard(parse_allow(allow or settings.allow_private_networks)),
        timeout=timeout,
        max_bytes=max_bytes,
        max_redirects=max_redirects,
        max_connections=connections,
        max_connections_per_host=per_host or connections,
        proxy=settings.proxy_url.get_secret_value() if settings.proxy_url else None,
        clock=parts.now,
    )


def reddit_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    limiter = RateLimiter(parts.db, reddit_budget(settings), parts.now, rest)
    at_once = min(settings.reddit_max_concurrency, settings.crawler_max_concurrency or settings.reddit_max_concurrency)
    site = settings.reddit_url.rstrip("/")
    if not settings.reddit_client_id or not settings.reddit_client_secret:
        return RedditFeeds(client.fetch, limiter, site, at_once)
    secret = settings.reddit_client_secret.get_secret_value()
    app = RedditApp(settings.reddit_client_id, secret, site, settings.reddit_api_url.rstrip("/"))
    return RedditApi(app, client.fetch, limiter, parts.now, at_once)


def x_access(parts: Parts, client: Client, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Access:
    settings = parts.settings
    window = timedelta(seconds=settings.x_rate_limit_window_seconds)
    limiter = RateLimiter(parts.db, Budget("x api", settings.x_rate_limit, window), parts.now, rest)
    meter = MonthlyMeter(parts.db, x_allowance(settings), parts.now)
    return XApi(settings.x_api_url.rstrip("/"), partial(x_token, parts), client.fetch, limiter, meter, parts.now)


async def x_token(parts: Parts) -> str:
    """Returns the token for X: the one in the settings, or the stored one. Raises KeyMissing if there is neither."""
    if parts.settings.x_bearer_token:
        return parts.settings.x_bearer_token.get_secret_value()
    return await instance.stored_x_token(parts.db, parts.unseal)


async def ask_provider(parts: Parts, request: Request) -> tuple[int, bytes]:
    """Sends a request to a provider that the settings name, which may well be in a private network. Follows nobody
    elsewhere. Raises FetchFailed."""
    fetching = client(
        parts,
        user_agent=parts.settings.user_agent,
        timeout=10,
        max_bytes=MOST_KEY_BYTES,
        connections=1,
        max_redirects=0,
        allow="true",
    )
    try:
        answer = await fetching.fetch(request)
    finally:
        await fetching.close()
    return answer.status, unpacked(answer, MOST_KEY_BYTES)


async def fetch_keys(parts: Parts, url: str) -> bytes:
    """Loads the keys of another issuer. Raises FetchFailed."""
    status, body = await ask_provider(parts, Request(url, (("accept", "application/json"),)))
    if status != OK:
        raise StatusRefused(f"{url} answered {status}.", http_status=status)
    return body


async def oidc_secret(parts: Parts, key: str = "") -> str | None:
    """Returns our secret at an OpenID Connect provider: the one in the settings, or the stored one, if any."""
    given = parts.settings.oidc_client_secret
    if given and not key:
        return given.get_secret_value()
    sealed = await parts.db.read(instance.stored_oidc_secret, key)
    return parts.unseal(sealed) if sealed is not None else None
