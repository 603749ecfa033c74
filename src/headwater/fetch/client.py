"""The HTTP client: one request in, one answer out, with limits on time, size and addresses.

libcurl moves the bytes, for half the CPU of a client written in Python. Redirects are followed here, hop by hop, so
that each one passes the same rules. HTTP statuses are answers, not errors. Bodies stay compressed: see `fetch/body.py`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from headwater.errors import FetchFailed, NameUnknown, TimedOut, TooManyRedirects
from headwater.fetch import failures, hops
from headwater.fetch.failures import Code
from headwater.fetch.guard import AddressGuard
from headwater.fetch.hops import Hop
from headwater.model import Request, Response
from headwater.waiting import Slots

if TYPE_CHECKING:  # the first request loads it: libcurl takes 6 MB
    from headwater.fetch.curl import Handle, Transfers

MAX_BYTES = 10 * 1024 * 1024
_LOOKUP_AGAIN_SECONDS = 2.0
# A lookup cannot be interrupted. In these threads, one that hangs keeps nobody else waiting.
_LOOKUPS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="dns")


class FetchLimits(NamedTuple):
    """What one request may use over all its hops."""

    max_bytes: int
    seconds: float


class FetchAnswer(NamedTuple):
    """What one hop brought."""

    status: int
    headers: dict[str, str]
    body: bytes


class Options(NamedTuple):
    """The options that are the same for every transfer of a client. Without a `ca_file`, the machine's own is used."""

    guard: AddressGuard
    user_agent: str
    connect_timeout: float
    proxy: str
    ca_file: str | None
    resolve: tuple[str, ...]


class Client:
    """Belongs to the event loop that first uses it.

    `max_bytes` limits what is received here and, given to `body.unpacked`, what it unpacks to. `resolve` overrides
    names as curl's option does (`host:port:address`).
    """

    def __init__(
        self,
        *,
        user_agent: str,
        guard: AddressGuard,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        max_bytes: int = MAX_BYTES,
        max_redirects: int = 10,
        max_connections: int = 64,
        max_connections_per_host: int = 6,
        proxy: str | None = None,
        ca_file: str | None = None,
        resolve: Sequence[str] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._options = Options(guard, user_agent, connect_timeout, proxy or "", ca_file, tuple(resolve))
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._max_connections = max_connections
        self._per_host = max_connections_per_host
        self._clock = clock
        self._concurrency = Slots(max_connections)
        self._host_concurrency: WeakValueDictionary[str, Slots] = WeakValueDictionary()
        self._idle: list[Handle] = []
        self._outage = failures.Outage()
        self._transfers: Transfers | None = None
        self._closed = False

    async def fetch(
        self, request: Request, *, max_bytes: int | None = None, timeout: float | None = None, first: bool = False
    ) -> Response:
        """Returns the answer to a request, after redirects. `timeout` covers all hops, not the wait for a connection.

        A request that is to be sent `first` overtakes all others that wait for a connection.
        Raises BadAddress or BadInput for a request that cannot be sent, and a FetchFailed if no usable answer came.
        """
        hop = hops.first(request)
        limits = FetchLimits(max_bytes or self._max_bytes, timeout or self._timeout)
        left = limits.seconds
        moved_to: str | None = None
        permanent = True
        for _ in range(self._max_redirects + 1):
            answer, left = await self._with_connection(hop, limits, left, first)
            following = hops.following(hop, answer.status, answer.headers)
            if following is None:
                return Response(hop.url, *answer, self._clock(), moved_to)
            permanent = permanent and hops.is_permanent(hop, answer.status, following)
            moved_to = following.address if permanent else None
            hop = following
        raise TooManyRedirects(f"{hop.host} still redirects after {self._max_redirects} redirects.", host=hop.host)

    async def close(self) -> None:
        """Ends every transfer. Callers that still wait for one get a FetchFailed."""
        self._closed = True
        transfers, self._transfers = self._transfers, None
        if transfers:
            await transfers.close()
        for idle in self._idle:
            idle.close()
        self._idle.clear()

    async def _with_connection(
        self, hop: Hop, limits: FetchLimits, left: float, first: bool
    ) -> tuple[FetchAnswer, float]:
        """Waits for a free connection, and makes one hop. Returns its answer and the seconds that are left."""
        loop = asyncio.get_running_loop()
        of_host = self._host_concurrency.get(hop.host)
        if of_host is None:
            of_host = self._host_concurrency[hop.host] = Slots(self._per_host)
        # In this order, or requests that wait for one slow host would take the connections of all others.
        async with of_host.taken(first=first), self._concurrency.taken(first=first):
            deadline = loop.time() + left
            try:
                if self._closed:
                    raise failures.stopping()
                if self._options.proxy:
                    await self._check_target(hop, left)
                    left = deadline - loop.time()
                if left <= 0:
                    raise TimedOut(f"{hop.host} had not answered completely after {limits.seconds:g} s.", host=hop.host)
                answer = await self._exchange(hop, limits, left)
            except FetchFailed as error:
                self._outage.judge(error)
                raise
            self._outage.sign_of_life()
            return answer, deadline - loop.time()

    async def _exchange(self, hop: Hop, limits: FetchLimits, left: float) -> FetchAnswer:
        from headwater.fetch import curl

        transfers = self._transfers = self._transfers or curl.Transfers(self._max_connections)
        handle = self._idle.pop() if self._idle else curl.Handle(self._options, transfers.lend)
        keep = False
        try:
            handle.prepare(hop, limits.max_bytes, left)
            code, message = await transfers.run(handle.easy)
            if code != Code.OK:
                raise await self._why(hop, handle, limits, code, message)
            keep = handle.reusable and not self._closed
            return FetchAnswer(*handle.answer())
        finally:
            if keep:
                self._idle.append(handle)
            else:
                handle.close()

    async def _why(self, hop: Hop, handle: Handle, limits: FetchLimits, code: int, message: str) -> FetchFailed:
        if handle.refusal:
            return failures.refused(hop.host, handle.refusal)
        if handle.own_errno:
            return failures.no_socket(handle.own_errno)
        if code == Code.COULDNT_RESOLVE_HOST:
            return await self._why_unresolved(hop)
        os_errno = handle.os_errno
        through_proxy = bool(self._options.proxy)
        return failures.failure(failures.Ended(hop.host, code, message, os_errno, *limits, through_proxy))

    async def _why_unresolved(self, hop: Hop) -> FetchFailed:
        """Asks again, because libcurl does not distinguish an unknown name from an unreachable name server."""
        try:
            async with asyncio.timeout(_LOOKUP_AGAIN_SECONDS):
                await addresses_of(hop.host, hop.port)
        except NameUnknown as error:
            return error
        except TimeoutError:
            return failures.name_unknown(hop.host, no_name_server=True)
        return failures.name_unknown(hop.host)

    async def _check_target(self, hop: Hop, left: float) -> None:
        """Checks all addresses of a host first, because behind a proxy we do not see the connection."""
        try:
            async with asyncio.timeout(left):
                found = await addresses_of(hop.host, hop.port, self._options.resolve)
        except TimeoutError as error:
            raise failures.name_unknown(hop.host, no_name_server=True) from error
        for ip in found:
            reason = self._options.guard.refusal(ip, hop.port)
            if reason:
                raise failures.refused(hop.host, reason)


async def addresses_of(host: str, port: int, resolve: Sequence[str] = ()) -> list[str]:
    """Returns the numeric addresses of a host, looked up without libcurl. Raises NameUnknown.

    `resolve` has overrides as curl writes them (`host:port:address,address`).
    """
    for entry in resolve:
        if entry.startswith(f"{host}:{port}:"):
            return [address.strip("[]") for address in entry.removeprefix(f"{host}:{port}:").split(",")]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(_LOOKUPS, socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise failures.name_unknown(host, no_name_server=error.errno == socket.EAI_AGAIN) from error
    except UnicodeError as error:
        raise failures.name_unknown(host) from error
    return [str(address[0]) for *_, address in found]
