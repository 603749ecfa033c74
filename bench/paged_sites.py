"""The sites that paged crawls are measured on: article pages behind lists, and boards of any length made on the fly.

/round/SITE/OF/              a list of the articles whose number is SITE, counted by OF
/validated/THREADS/NUMBER/   a board with so many threads and an ETag; /bare/... has neither tag nor date
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import loopback
import pages

THREADS_A_PAGE = 100
POSTS_A_THREAD = 5
_LAST = "2026-1-3 10:00"
MARK = f"{POSTS_A_THREAD - 1}/{_LAST}"  # of every thread, as it is read
_HTML = "Content-Type: text/html"
_MISSING = loopback.written("404 Not Found", b"")
_MENU = "".join(f'<li><a href="/menu/{number}.html">Something else, number {number}</a></li>' for number in range(200))
_PARAGRAPH = "The river rose by another hand's breadth overnight, and those who live beside it carried sand again. " * 5


def article_pages(most: int, archive: Path = pages.DATA / "pages" / "pages.tar.xz") -> tuple[list[bytes], str]:
    """Returns pages with one article each, and where they come from."""
    if not archive.is_file():
        return [_made_up(number) for number in range(most or 300)], "made-up"
    found = [truth.html for truth in pages.truths(archive)]
    return found[:: max(1, len(found) // most)] if most else found, "real"


def _made_up(number: int) -> bytes:
    text = "".join(f"<p>{place}. {_PARAGRAPH}</p>" for place in range(number % 30 + 5))
    script = f"<script>{'var something = 1;' * 5_000}</script>"
    title = f"High water, part {number}"
    return (
        f"<html><head><title>{title}</title>{script}</head><body><ul>{_MENU * 4}</ul>"
        f"<article><h1>{title}</h1>{text}</article></body></html>"
    ).encode()


def articles(most: int) -> loopback.Answer:
    """Returns a function that answers with the article pages, the same ones on every site and in every round."""
    return partial(_article_or_list, article_pages(most)[0])


def _article_or_list(found: Sequence[bytes], path: str, _: bytes) -> bytes:
    match path.strip("/").split("/"):
        case [_, _, _, name]:
            return loopback.written("200 OK", found[int(name.removesuffix(".html"))], _HTML)
        case [_, site, of]:
            links = (f'<a class="article" href="{number}.html">Article</a>' for number in range(len(found)))
            return loopback.written("200 OK", "".join(list(links)[int(site) :: int(of)]).encode(), _HTML)
    return _MISSING


def boards() -> loopback.Answer:
    return _board_or_thread


def _board_or_thread(path: str, head: bytes) -> bytes:
    way, _, rest = path.strip("/").partition("/")
    match rest.split("/"):
        case [threads, number, page] if page.startswith("forum-"):
            tag = f'"{threads}-{number}-{page}"'
            if way == "validated" and tag.encode() in head:
                return loopback.written("304 Not Modified", b"", f"ETag: {tag}")
            listed = _list(int(threads), int(page.removesuffix(".html").split("-")[2]))
            return loopback.written("200 OK", listed, _HTML, *([f"ETag: {tag}"] if way == "validated" else []))
        case [_, _, thread]:
            return loopback.written("200 OK", _thread(int(thread.split("-")[1])), _HTML)
    return _MISSING


def _list(threads: int, page: int) -> bytes:
    last = threads - (page - 1) * THREADS_A_PAGE
    rows = "".join(map(_row, range(last, max(0, last - THREADS_A_PAGE), -1)))
    more = f'<a class="nxt" href="forum-1-{page + 1}.html">next</a>' if last > THREADS_A_PAGE else ""
    return _page(f'<ul>{_MENU}</ul><table id="threadlisttableid">{rows}</table><div class="pg">{more}</div>')


def _row(id: int) -> str:
    return (
        f'<tbody id="normalthread_{id}"><tr><th><a href="thread-{id}-1-1.html" class="s xst">Thread {id}</a></th>'
        '<td class="by"><cite>somebody</cite><em><span>2026-1-2 10:00</span></em></td>'
        f'<td class="num"><a class="xi2">{POSTS_A_THREAD - 1}</a><em>40</em></td>'
        f'<td class="by"><cite>another</cite><em><a>{_LAST}</a></em></td></tr></tbody>'
    )


def _thread(id: int) -> bytes:
    title = f'<h1><span id="thread_subject">Thread {id}</span></h1>'
    return _page(f'{title}<div id="postlist">{"".join(_posts(id))}</div>')


def _posts(thread: int) -> Iterator[str]:
    for id in range(thread * POSTS_A_THREAD, (thread + 1) * POSTS_A_THREAD):
        yield (
            f'<div id="post_{id}"><table id="pid{id}" class="plhin"><tr>'
            '<td class="pls"><div class="authi"><a class="xw1" href="space-1.html">somebody</a></div></td>'
            f'<td class="plc"><em id="authorposton{id}"><span>2026-1-2 10:00</span></em>'
            f'<table><tr><td class="t_f" id="postmessage_{id}"><p>{id}. {_PARAGRAPH}</p></td></tr></table>'
            "</td></tr></table></div>"
        )


def _page(body: str) -> bytes:
    head = '<meta charset="utf-8"/><meta name="generator" content="Discuz! X3.5"/><title>A board</title>'
    return f'<!DOCTYPE html><html><head>{head}</head><body id="nv_forum">{body}</body></html>'.encode()
