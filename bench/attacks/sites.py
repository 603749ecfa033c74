"""Attacks by what is followed: boards and sites made to do harm, and a name server that lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from attacks import Answer, Finding, Target, until
from attacks.texts import MARKUP, listed
from hostile import rebinding  # type: ignore[import-not-found]

HTML = {"Content-Type": "text/html; charset=utf-8"}
MOST_PAGES = 8  # of three that are allowed, and what a second visit reads
MOST_MEMORY = 700 * 1024 * 1024


def boards(target: Target) -> Iterator[Finding]:
    """Has it follow boards whose lists and threads never end, nest, multiply, or lead to a forbidden place."""
    here = f"http://127.0.0.2:{target.trap.port}"
    threads = {
        "plain": post("a word"),
        "leads": post(f'<a href="{here}/a">a</a><img src="{here}/b.png"><iframe src="{here}/c"></iframe>')
        + f'<link rel=next href="{here}/next"><a rel=next href="{here}/next">next</a><base href="{here}/">',
        "many": post("a word") * 30_000,
        "nested": post("<blockquote>" * 100_000 + "deep"),
        "nested-posts": '<article class="message js-post">' * 50_000,
        "dates": post("a word", date="Posted " + "1 " * 100_000 + "ago"),
        "spaces": post(" " * 500_000 + "<b " * 100_000),
        "script": f'<script type="application/ld+json">{"[" * 200_000}</script>' + post("a word"),
        "entities": post("&amp;" * 200_000 + "&#x110000;&#0;&#xD800;"),
        "attributes": f"<article {' '.join(f'a{n}=1' for n in range(50_000))}>" + post("a word"),
        **{f"markup{place}": post(markup, author=markup) for place, markup in enumerate(MARKUP)},
    }
    for name, thread in threads.items():
        target.site.pages[f"/{name}/board"] = Answer(board(name), headers=HTML)
        target.site.pages[f"/{name}/threads/a.1/"] = Answer(page(name, thread), headers=HTML)
    # Of a list without end, every page names another one.
    target.site.fallback = lambda asked: Answer(board("endless", f"/endless/board?page={asked.at}"), headers=HTML)
    addresses = {name: target.site.url(f"/{name}/board") for name in (*threads, "endless")}
    settings = {"profile": "xenforo", "max_pages": 3}
    for name, address in addresses.items():
        made = target.program("POST", "/api/sources", {"address": address, "kind": "forum", "settings": settings})
        yield None if made.status == 202 else f"not tried: {name}: {made.text[:100]}"
    read = {f"/{name}/threads/a.1/" for name in addresses}
    until(lambda: read <= set(target.site.paths()), target.seconds)
    yield None if read <= set(target.site.paths()) else f"not tried: {sorted(read - set(target.site.paths()))}"
    until(lambda: "A thread of plain" in titles(target), 20)
    yield None if "A thread of plain" in titles(target) else "not tried: no thread was stored"
    pages = [path for path in target.site.paths() if path.startswith("/endless/board")]
    yield f"{len(pages)} pages of an endless list were read" if len(pages) > MOST_PAGES else None
    yield from (f"reached by {visitor}" for visitor in target.trap.visitors)
    memory = memory_of(target.pid)
    yield f"it takes {memory // 1024**2} MB" if memory > MOST_MEMORY else None


def titles(target: Target) -> set[str]:
    return {one["title"] for one in listed(target, "posts")}


def board(name: str, following: str = "") -> str:
    row = (
        '<div class="structItem structItem--thread"><div class="structItem-title">'
        f'<a href="/{name}/threads/a.1/">A thread of {name}</a></div></div>'
    )
    return page(name, row + (f'<link rel="next" href="{following}">' if following else ""))


def page(title: str, body: str) -> str:
    return f'<html id="XF"><head><title>{title}</title></head><body>{body}</body></html>'


def post(words: str, author: str = "alder", date: str = "2026-11-02T09:00:00Z") -> str:
    return (
        f"<article class='message js-post' data-content='post-1' data-author='{author}'><time datetime='{date}'>{date}"
        f"</time><article class='message-body'><div class='bbWrapper'>{words}</div></article></article>"
    )


def memory_of(pid: int) -> int:
    said = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in said.splitlines() if line.startswith("VmRSS"))


def names(target: Target) -> Iterator[Finding]:
    """Asks for names of which a name server says now one address and now another, in a network of its own."""
    with TemporaryDirectory(prefix="headwater-names-") as folder:
        try:
            found = rebinding.outcome(Path(folder), "follow")
        except pytest.skip.Exception as reason:
            yield f"not tried: {reason}"
            return
    yield from [None] * found["asked"]
    lied = [name for name, addresses in found["told"].items() if len(set(addresses)) > 1]
    yield None if lied else "not tried: no name changed its address"
    yield None if found["visitors"].get(rebinding.PUBLIC) else "not tried: nobody was reached"
    inside = found["visitors"].get(rebinding.INSIDE, 0)
    yield f"the inside was reached {inside} times" if inside else None
