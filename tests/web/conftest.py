from __future__ import annotations

from collections.abc import Callable, Iterator
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect, sync_playwright

from api.running import Running

QUIET = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
)
PATIENCE = 180_000  # milliseconds; what comes at all comes at once, unless the machine is very busy
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium. It lives for one module, because its event loop would stand in the way of asynchronous tests."""
    program = which("chromium") or which("chromium-browser") or which("google-chrome")
    if program is None:
        pytest.skip("no chromium (scripts/services install chromium)")
    with sync_playwright() as playwright:
        options = [*QUIET.split(), "--disable-sync"]
        started = playwright.chromium.launch(executable_path=program, args=options, timeout=2 * PATIENCE)
        yield started
        started.close()


def is_fault(said: ConsoleMessage) -> bool:
    return said.type == "error" and not said.text.startswith("Failed to load resource")


def is_missing(answer: Response) -> bool:
    return answer.status >= 400 and answer.request.method == "GET"


@pytest.fixture
def opened(browser: Browser, headwater: Running) -> Iterator[Callable[..., Page]]:
    """Opens a page of Headwater, signed in; afterwards nothing may have gone wrong or been asked of anybody else."""
    faults: list[str] = []
    contexts = []

    def open_page(path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if is_fault(said) else None)
        page.on("response", lambda answer: faults.append(answer.url) if is_missing(answer) else None)
        page.on("request", lambda asked: None if asked.url.startswith(headwater.url) else faults.append(asked.url))
        page.goto(f"{headwater.url}{headwater.login_link()}&next={path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
