"""Opens pages that are made by scripts, in a Chromium that has no network of its own.

Our guarded client answers every request of the page, with its limits on addresses, bytes and time. The browser itself
has a proxy that does not exist, resolves no names, and has no workers, downloads or sockets. So a request that is not
answered here goes nowhere.

Chromium and all of its processes have a limit on memory together, and each has one of its own. (Where there is no
/proc, nothing is known or limited.) It always runs in its
sandbox, unless the operator says otherwise: as root it has none.

Playwright and Chromium are optional: `pip install 'headwater[browser]'`, and Chromium from the system.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from shutil import which
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.errors import AnswerTooLarge, FetchFailed, HeadwaterError, TimedOut
from headwater.fetch.body import unpacked
from headwater.fetch.client import Client
from headwater.model import Request, Response

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import BrowserContext, Playwright, Route
import resource
import signal
from collections import defaultdict
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MOST_REQUESTS = 150
MOST_BYTES = 20 * 1024 * 1024
QUIET_SECONDS = 5.0
LOOK_SECONDS = 0.2  # how often its memory is looked at
_NOT_NEEDED = frozenset({"image", "media", "font", "texttrack", "manifest", "eventsource", "websocket"})
_PASSED_ON = frozenset({"accept", "accept-language", "content-type", "x-requested-with"})
_NOT_PASSED_BACK = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "link", "refresh"}
)
_NOWHERE = "http://127.0.0.1:9"  # the discard port, where nobody listens
_PROC = Path("/proc")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
    "--no-first-run",
    "--no-pings",
    "--dns-prefetch-disable",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
# APIs that reach the network without a request are removed before any script of the page runs.
_WITHOUT_NETWORK_APIS = """
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "WebSocketStream"])
  Object.defineProperty(globalThis, name, {value: undefined, writable: false, configurable: false});
"""


class Browser:
    """Belongs to the event loop that first uses it. The first page starts Chromium, and `close` ends it."""

    def __init__(
        self,
        client: Client,
        *,
        program: str | None = None,
        sandbox: bool = True,
        memory_mb: int = 1024,
        pages_at_once: int = 1,
        seconds: float = 30.0,
        max_bytes: int = 10 * 1024 * 1024,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._program = program
        self._sandbox = sandbox
        self._most_memory = memory_mb * 1024 * 1024
        self._root: int | None = None
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._clock = clock
        self._concurrency = asyncio.Semaphore(pages_at_once)
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._chromium: Chromium | None = None

    async def fetch(self, request: Request) -> Response:
        """Returns the page as it is after its scripts have run. Raises a FetchFailed if there is none."""
        async with self._concurrency:
            chromium = await self._started()
            context = await chromium.new_context(accept_downloads=False, service_workers="block", bypass_csp=False)
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._within_memory(self._opened(context, request))
            except TimeoutError as error:
                raise TimedOut(f"The page was not ready after {self._seconds:g} s in the browser.") from error
            finally:
                with suppress(_errors()):
                    await context.close()

    async def _within_memory(self, opening: Coroutine[Any, Any, Response]) -> Response:
        """Returns the page, unless Chromium takes too much memory first. Then all of it is killed."""
        opened, outgrown = asyncio.ensure_future(opening), asyncio.ensure_future(self._outgrow())
        try:
            await asyncio.wait((opened, outgrown), return_when=asyncio.FIRST_COMPLETED)
            if outgrown.done():
                raise AnswerTooLarge(
                    f"The page took more than {self._most_memory // 1024**2:,} MB of memory in the browser."
                    " HEADWATER_BROWSER_MEMORY_MB is the limit."
                )
            return opened.result()
        finally:
            for task in (opened, outgrown):
                task.cancel()
            with suppress(asyncio.CancelledError, HeadwaterError, _errors()):
                await opened

    async def _outgrow(self) -> None:
        while self._root is not None:
            tree = await asyncio.to_thread(process_tree, self._root)
            if await asyncio.to_thread(memory_of, tree) > self._most_memory:
                kill_processes(tree)
                return
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.Event().wait()  # nothing is known about memory here

    async def close(self) -> None:
        chromium, self._chromium = self._chromium, None
        playwright, self._playwright = self._playwright, None
        self._root = None
        if chromium:
            with suppress(_errors()):
                await chromium.close()
        if playwright:
            await playwright.stop()

    async def _opened(self, context: BrowserContext, request: Request) -> Response:
        page_requests = _PageRequests(self._client, request, self._max_bytes)
        await context.add_init_script(_WITHOUT_NETWORK_APIS)
        await context.route("**/*", page_requests.answer)
        await context.route_web_socket("**/*", lambda socket: socket.close())
        page = await context.new_page()
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
        page.on("popup", lambda other: asyncio.ensure_future(other.close()))
        try:
            await page.goto(request.url, wait_until="load", timeout=self._seconds * 1000)
            with suppress(_errors()):
                await page.wait_for_load_state("networkidle", timeout=QUIET_SECONDS * 1000)
            html = (await page.content()).encode("utf-8", "replace")
        except _errors() as error:
            if page_requests.failure:
                raise page_requests.failure from error
            raise FetchFailed(f"The browser could not open the page: {_first_line(error)}.") from error
        return self._response(page_requests, html)

    def _response(self, page_requests: _PageRequests, html: bytes) -> Response:
        document = page_requests.document
        if document is None:
            raise FetchFailed("The browser opened a page that was never requested.")
        if len(html) > self._max_bytes:
            raise AnswerTooLarge(f"The page made by the script is larger than the limit of {self._max_bytes:,} bytes.")
        headers = {"content-type": "text/html; charset=utf-8"}
        return document._replace(headers=headers, body=html, received_at=self._clock())

    async def _started(self) -> Chromium:
        async with self._starting:
            if self._chromium is None or not self._chromium.is_connected():
                await self.close()
                self._chromium = await self._start()
            return self._chromium

    async def _start(self) -> Chromium:
        if self._sandbox and os.geteuid() == 0:
            raise FetchFailed(
                "The site's list is made by a script, and as root Chromium would run it without its sandbox. Run"
                " Headwater as another user, or set HEADWATER_BROWSER_SANDBOX=off.",
                our_network=True,
            )
        try:
            from playwright.async_api import async_playwright
        except ImportError as error:
            raise FetchFailed(
                "The site's list is made by a script, and the browser for such pages is not installed:"
                " pip install 'headwater[browser]'.",
                our_network=True,
            ) from error
        program = self._program or next((found for name in PROGRAMS if (found := which(name))), None)
        if program is None:
            raise FetchFailed(
                "The site's list is made by a script, and no Chromium was found to run it. Install the system's.",
                our_network=True,
            )
        self._playwright = await async_playwright().start()
        ours = f"--headwater={uuid4().hex}"  # Chromium ignores it, and its process is found by it
        try:
            chromium = await self._playwright.chromium.launch(
                executable_path=program,
                args=[*_ARGUMENTS, ours],
                proxy={"server": _NOWHERE},
                chromium_sandbox=self._sandbox,
            )
            self._root = await asyncio.to_thread(find_process, ours)
            if self._root is not None:
                limit_memory(process_tree(self._root), self._most_memory)
            return chromium
        except _errors() as error:
            raise FetchFailed(f"Chromium did not start: {_first_line(error)}.", our_network=True) from error


class _PageRequests:
    """The requests of one page. The client answers each, up to the limits for a page."""

    def __init__(self, client: Client, request: Request, max_bytes: int) -> None:
        self._client = client
        self._request = request
        self._max_bytes = max_bytes
        self._requests = 0
        self._bytes = 0
        self.document: Response | None = None
        self.failure: HeadwaterError | None = None

    async def answer(self, route: Route) -> None:
        asked = route.request
        # The first one is the page itself. Others are frames and windows, or a script that navigates away: then another
        # page would be reported under this address.
        is_document = self._requests == 0
        self._requests += 1
        if asked.is_navigation_request() and not is_document:
            return await _refuse(route, "aborted")  # the page stays as it is
        if asked.resource_type in _NOT_NEEDED or self._requests > MOST_REQUESTS or self._bytes > MOST_BYTES:
            return await _refuse(route)
        try:
            response = await self._client.fetch(self._request if is_document else _as_ours(asked))
            body = await asyncio.to_thread(unpacked, response, self._max_bytes)
        except HeadwaterError as error:
            if is_document:
                self.failure = error
            return await _refuse(route)
        self._bytes += len(body)
        if is_document:
            self.document = response
        headers = {name: value for name, value in response.headers.items() if name not in _NOT_PASSED_BACK}
        with suppress(_errors()):
            await route.fulfill(status=response.status, headers=headers, body=body)
        return None


def _as_ours(asked: Any) -> Request:
    headers = tuple((name, value) for name, value in asked.headers.items() if name.lower() in _PASSED_ON)
    return Request(asked.url, headers, asked.method, asked.post_data_buffer)


async def _refuse(route: Route, why: str = "blockedbyclient") -> None:
    with suppress(_errors()):
        await route.abort(why)


def _errors() -> type[Exception]:
    from playwright.async_api import Error

    return Error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200].rstrip(".")


def find_process(argument: str) -> int | None:
    """Returns the process that was started with this argument."""
    for pid in _pids():
        with suppress(*_GONE):
            if argument.encode() in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0"):
                return pid
    return None


def process_tree(root: int) -> list[int]:
    """Returns the process and everything below it."""
    children = defaultdict(list)
    for pid in _pids():
        with suppress(*_GONE):
            # The name of a program may have spaces and brackets; the fields begin after the last one.
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(pid)
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def memory_of(pids: list[int]) -> int:
    """Returns how many bytes they take, without the files that they share."""
    total = 0
    for pid in pids:
        with suppress(*_GONE):
            for line in (_PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def limit_memory(pids: list[int], most: int) -> None:
    """Limits the data of each process. Those that they fork inherit it."""
    for pid in pids:
        with suppress(*_GONE):
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def kill_processes(pids: list[int]) -> None:
    for pid in pids:
        with suppress(*_GONE):
            os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    with suppress(FileNotFoundError):
        return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return []
