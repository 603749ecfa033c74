"""Pages that a script makes, in a real Chromium that has no network of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from shutil import which

import pytest

from headwater.errors import AddressRefused, AnswerTooLarge, FetchFailed, TimedOut
from headwater.fetch.browser import Browser, memory_of, process_tree
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard
from headwater.model import Request, Source, SourceState
from headwater.sources import news
from support.web import Answer, Web

HAS_SANDBOX = os.geteuid() != 0
MEMORY_MB = 600
HTML = {"Content-Type": "text/html; charset=utf-8"}
SCRIPTED = """<!doctype html><title>The Daily</title><main id=list></main><script>
fetch('/api').then(answer => answer.json()).then(found => {
  for (const one of found) {
    const box = document.createElement('h2'), link = document.createElement('a')
    link.href = one.url; link.textContent = one.title
    box.append(link); document.querySelector('main').append(box)
  }
})</script>"""
LISTED = json.dumps(
    [
        {"url": f"/2026/11/0{day}/the-river-rose-{day}-metres", "title": f"The river rose {day} metres over night"}
        for day in range(1, 7)
    ]
)


@dataclass
class Forbidden:
    """A place that nobody may reach; it remembers whoever tries."""

    port: int
    visitors: list[str] = field(default_factory=list)


@contextmanager
def forbidden(address: str = "127.0.0.2") -> Iterator[Forbidden]:
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind((address, 0))
        place = Forbidden(tcp.getsockname()[1])
        udp.bind((address, place.port))
        tcp.listen()
        tcp.settimeout(0.1)
        udp.settimeout(0.1)
        ended = threading.Event()

        def watch() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    tcp.accept()[0].close()
                    place.visitors.append("tcp")
                with suppress(TimeoutError):
                    udp.recvfrom(100)
                    place.visitors.append("udp")

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield place
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def site(world: Web) -> Web:
    return world


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client(user_agent="ours/1", guard=AddressGuard([ip_network("127.0.0.1")]), timeout=5)
    yield client
    await client.close()


@pytest.fixture
async def browser(client: Client) -> AsyncIterator[Browser]:
    if not any(map(which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("no chromium (scripts/services install chromium)")
    browser = Browser(client, sandbox=HAS_SANDBOX, memory_mb=MEMORY_MB, seconds=30, max_bytes=1_000_000)
    yield browser
    await browser.close()


async def test_a_list_that_a_script_makes_is_read_like_any_other(site: Web, browser: Browser) -> None:
    # B6
    site.pages = {"/news": Answer(SCRIPTED, headers=HTML), "/api": Answer(LISTED)}
    source = Source(1, "news", site.url("/news"), settings={"render": True})
    response = await browser.fetch(news.first(source, SourceState()))
    page = news.read(source, SourceState(), response)
    assert [item.title for item in page.items] == [f"The river rose {day} metres over night" for day in range(1, 7)]
    assert {asked.headers["user-agent"] for asked in site.asked} == {"ours/1"}


async def test_a_page_reaches_nothing_that_the_guard_refuses_by_any_way(site: Web, browser: Browser) -> None:
    # H1 H2 H11
    with forbidden() as place:
        target = f"127.0.0.2:{place.port}"
        tries = f"""<!doctype html><title>x</title><link rel=preconnect href="http://{target}">
        <link rel=prefetch href="http://{target}/prefetch"><link rel=stylesheet href="http://{target}/style">
        <img src="http://{target}/image"><iframe src="http://{target}/frame"></iframe>
        <script src="http://{target}/script"></script><script src="/redirected"></script>
        <script>
        const tried = []
        const attempt = (name, way) => {{
          try {{ Promise.resolve(way()).catch(() => 0) }} catch (error) {{}}
          tried.push(name) }}
        attempt('fetch', () => fetch('http://{target}/fetch', {{mode: 'no-cors'}}))
        attempt('beacon', () => navigator.sendBeacon('http://{target}/beacon', 'x'))
        attempt('socket', () => new WebSocket('ws://{target}/socket'))
        attempt('events', () => new EventSource('http://{target}/events'))
        attempt('rtc', () => {{
          const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{target}'}}]}})
          peer.createDataChannel('x'); return peer.createOffer().then(offer => peer.setLocalDescription(offer)) }})
        attempt('worker', () => new Worker(URL.createObjectURL(new Blob(["fetch('http://{target}/worker')"]))))
        attempt('window', () => window.open('http://{target}/window'))
        attempt('transport', () => new WebTransport('https://{target}/transport'))
        attempt('leave', () => {{ setTimeout(() => location = 'http://{target}/leave', 100) }})
        document.title = tried.length
        </script>"""
        site.pages = {
            "/": Answer(tries, headers=HTML),
            "/redirected": Answer("", 302, {"Location": f"http://{target}/redirected"}),
        }
        response = await browser.fetch(Request(site.url("/")))
        assert b"<title>9</title>" in response.body
        assert place.visitors == []
        # Whoever does reach it is seen.
        socket.create_connection(("127.0.0.2", place.port)).close()
        while not place.visitors:
            await asyncio.sleep(0.05)
    assert {asked.headers["user-agent"] for asked in site.asked} == {"ours/1"}


async def test_an_address_that_the_guard_refuses_is_refused_in_the_browser_too(browser: Browser) -> None:
    with pytest.raises(AddressRefused):
        await browser.fetch(Request("http://127.0.0.2:8080/"))


async def test_a_page_that_never_ends_is_ended(site: Web, client: Client) -> None:
    # H22
    site.pages = {"/": Answer("<script>for (;;) {}</script>", headers=HTML)}
    browser = Browser(client, sandbox=HAS_SANDBOX, seconds=3)
    try:
        with pytest.raises((TimedOut, FetchFailed)):
            await browser.fetch(Request(site.url("/")))
    finally:
        await browser.close()


async def test_a_page_that_grows_without_end_is_too_large(site: Web, browser: Browser) -> None:
    # H23
    site.pages = {"/": Answer("<script>document.write('x'.repeat(2000000))</script>", headers=HTML)}
    with pytest.raises(AnswerTooLarge):
        await browser.fetch(Request(site.url("/")))


async def test_without_chromium_the_failure_says_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FetchFailed, match="no Chromium was found") as failure:
        await Browser(client, sandbox=HAS_SANDBOX).fetch(Request("https://news.example/"))
    assert failure.value.facts == {"our_network": True}


GREEDY = {
    "arrays": "const kept = []; for (;;) { kept.push(new Uint8Array(1 << 24).fill(7)) }",
    "texts": "const kept = []; for (let n = 0; ; n++) { kept.push(('x' + n).repeat(1 << 20).split('')) }",
    "elements": "for (let n = 0; ; n++) { const one = document.createElement('p');"
    " one.textContent = 'x'.repeat(9999) + n; document.body.append(one) }",
    "patiently": "const kept = []; setInterval(() => kept.push(new Uint8Array(1 << 25).fill(7)), 1)",
    "workers": "for (let n = 0; n < 40; n++) new Worker(URL.createObjectURL(new Blob("
    "['const kept = []; for (;;) kept.push(new Uint8Array(1 << 24).fill(7))'])))",
}


@pytest.mark.parametrize("kind", GREEDY)
async def test_a_page_that_eats_memory_is_given_up_and_the_next_one_is_read(
    site: Web, browser: Browser, kind: str
) -> None:  # H24
    site.pages = {
        "/": Answer(f"<body><script>{GREEDY[kind]}</script></body>", headers=HTML),
        "/next": Answer("<title>next</title>", headers=HTML),
    }
    await browser.fetch(Request(site.url("/next")))
    root = browser._root
    assert root is not None
    most, ended = [0], asyncio.Event()
    seen: set[int] = set()

    async def look() -> None:
        while not ended.is_set():
            tree = process_tree(root)
            seen.update(tree)
            most[0] = max(most[0], memory_of(tree))
            await asyncio.sleep(0.05)

    looking = asyncio.create_task(look())
    with suppress(FetchFailed):  # a script that ended at the limit of its process leaves a page behind
        await browser.fetch(Request(site.url("/")))
    ended.set()
    await looking
    assert most[0] < 3 * MEMORY_MB * 1024**2
    assert b"next" in (await browser.fetch(Request(site.url("/next")))).body
    await browser.close()
    while memory_of(list(seen)):  # a process that has ended has none
        await asyncio.sleep(0.05)


async def test_the_limit_counts_all_processes_of_the_browser_together(site: Web, browser: Browser) -> None:  # H24
    site.pages = {"/": Answer("<title>whole</title>", headers=HTML)}
    assert b"whole" in (await browser.fetch(Request(site.url("/")))).body
    root = browser._root
    assert root is not None
    tree = process_tree(root)
    together, largest = memory_of(tree), max(memory_of([pid]) for pid in tree)
    assert largest < 0.8 * together, "one process has nearly all of it"
    browser._most_memory = (together + largest) // 2  # more than any of them takes, and less than all

    async def open_often() -> None:
        for _ in range(40):  # it is looked at now and then
            await browser.fetch(Request(site.url("/")))

    with pytest.raises(AnswerTooLarge, match="MB of memory in the browser"):
        await open_often()
    while memory_of(tree):
        await asyncio.sleep(0.05)


async def test_as_root_chromium_runs_only_without_its_sandbox_and_only_if_told_to(site: Web, client: Client) -> None:
    if HAS_SANDBOX:
        pytest.skip("this is not root")
    site.pages = {"/": Answer("<title>whole</title>", headers=HTML)}
    with pytest.raises(FetchFailed, match="Run Headwater as another user, or set HEADWATER_BROWSER_SANDBOX=off"):
        await Browser(client).fetch(Request(site.url("/")))
    assert site.asked == []
    told = Browser(client, sandbox=False)
    assert b"whole" in (await told.fetch(Request(site.url("/")))).body
    await told.close()


async def test_without_its_sandbox_chromium_is_not_run(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(FetchFailed, match="HEADWATER_BROWSER_SANDBOX=off") as failure:
        await Browser(client).fetch(Request("https://news.example/"))
    assert failure.value.facts == {"our_network": True}
