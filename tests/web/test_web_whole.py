"""The whole of Headwater, as somebody uses it who has just installed it: one command, one browser, a small web."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect

from support.ports import free_port, wait_until_open
from support.web import ALLOW_LOOPBACK, Answer, rss, web


@contextmanager
def headwater_up(data: Path) -> Iterator[str]:
    """`headwater up` as a process of its own; gives its login link."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environ = {**kept, **ALLOW_LOOPBACK, "HEADWATER_DATA_DIR": str(data), "HEADWATER_HOST_GAP_SECONDS": "0"}
    command = [sys.executable, "-m", "headwater", "up", "--port", str(port)]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            link = next(
                (found[0] for line in process.stdout if (found := re.search(r"http://\S+/login\S+", line))), None
            )
            assert link, "it did not start"
            wait_until_open(port)
            yield link
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def test_an_address_typed_into_the_page_becomes_posts_in_the_stream(tmp_path: Path, browser: Browser) -> None:
    # D1, D2, D10
    with web() as world, headwater_up(tmp_path) as link:
        world.pages["/"] = Answer(
            '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml"></head></html>',
            headers={"Content-Type": "text/html"},
        )
        world.pages["/feed.xml"] = Answer(rss("first", "second"))
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(link)
        page.get_by_label("Address of a feed or a site").fill(world.url("/"))
        page.get_by_role("button", name="Follow", exact=True).click()
        expect(page.locator(".entry")).to_have_count(2)
        page.get_by_role("link", name="Sources", exact=True).click()
        row = page.locator("tr.source")
        expect(row).to_contain_text("Working")
        expect(row).to_contain_text(world.url("/feed.xml"))
        world.pages["/feed.xml"] = Answer(rss("first", "second", "third"))
        row.get_by_role("button", name="Check The News now").click()
        expect(row.locator(".number")).to_have_text("3")
        page.close()
