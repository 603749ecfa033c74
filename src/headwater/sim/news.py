"""A simulated news site over HTTP: a paged list, a JSON endpoint with a cursor, a list made by a script, sitemaps.

    python -m headwater.sim.news --port 8901 --seed 1 --language zh

Lists are at /news (pages), /api/articles (JSON), /live (script) and /sitemap.xml. As its clock moves, articles appear
and are edited.
"""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from html import escape
from typing import Any

from headwater.sim.news_world import SimArticle, SimNews, simulated
from headwater.sim.serving import Answer, Ask, conditional, json_answer, png, run, serving_site, with_faults

_HTML = {"Content-Type": "text/html; charset=utf-8"}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
_SCRIPT = """
const list = document.querySelector("#list")
let cursor = ""
async function more() {
  const answer = await fetch("/api/articles?cursor=" + cursor)
  const page = await answer.json()
  for (const article of page.data.items) {
    const heading = document.createElement("h2"), link = document.createElement("a")
    link.href = article.url; link.textContent = article.title
    heading.append(link); list.append(heading)
  }
  cursor = page.data.next
}
more()
"""


@with_faults
def answer(site: SimNews, asked: Ask, now: datetime, fault: str | None) -> Answer:
    """Answers at the site's present time. A news site has no faults of its own."""
    return conditional(_page(site, asked.path, asked.query), asked)


def serving(site: SimNews, port: int = 0) -> AbstractContextManager[SimNews]:
    """Serves it on loopback and sets its `url`."""
    return serving_site(site, answer, port)


def _page(site: SimNews, path: str, query: Mapping[str, str]) -> Answer:
    steps = [step for step in path.split("/") if step]
    match steps:
        case [] | ["news"]:
            return _list(site, _number(query.get("page"), 1))
        case ["live"]:
            body = f'<main id="list"></main><script>{_SCRIPT}</script>'
            return Answer(200, _framed(site, site.title, body), _HTML)
        case ["api", "articles"]:
            return _endpoint(site, query)
        case ["robots.txt"]:
            return Answer(200, f"User-agent: *\nDisallow: /private/\nSitemap: {site.url}/sitemap.xml\n".encode())
        case ["sitemap.xml"]:
            return _sitemap_index(site)
        case ["sitemap-news.xml"]:
            return Answer(200, _sitemap(site).encode(), _XML)
        case ["sitemap-all.xml.gz"]:
            return Answer(200, gzip.compress(_sitemap(site).encode(), mtime=0), {"Content-Type": "application/gzip"})
        case ["pictures", name]:
            return Answer(200, _image(_number(name.partition(".")[0], 0)), {"Content-Type": "image/png"})
        case [_, _, _, name] if found := site.article(_number(name.partition("-")[0], 0)):
            return Answer(200, _article(site, found), _HTML)
    return Answer(404, _framed(site, "Not found", "<main><p>There is no such page.</p></main>"), _HTML)


def address_of(article: SimArticle) -> str:
    return f"/{article.published_at:%Y/%m/%d}/{article.id}-{article.slug}"


def _list(site: SimNews, page: int) -> Answer:
    shown = site.shown()
    here = shown[(page - 1) * site.page_size : page * site.page_size]
    if not here:
        return Answer(404, _framed(site, "Not found", "<main><p>There is no such page.</p></main>"), _HTML)
    boxes = "".join(_teaser(site, article) for article in here)
    older = (
        f'<a rel="next" href="/news?page={page + 1}">Older articles</a>' if len(shown) > page * site.page_size else ""
    )
    body = f'<main>{boxes}<div class="pagination">{older}</div></main>'
    return Answer(200, _framed(site, site.title, body), _HTML)


def _teaser(site: SimNews, article: SimArticle) -> str:
    version = article.version_at(site.clock.now())
    return (
        f'<div class="teaser"><h2><a href="{address_of(article)}?utm_source=list">{escape(version.title)}</a></h2>'
        f"<p>{escape(version.paragraphs[0][:120])}…</p></div>"
    )


def _endpoint(site: SimNews, query: Mapping[str, str]) -> Answer:
    """Returns a page of JSON: newest first after a cursor, or by ascending id after `min_id`."""
    shown = site.shown()
    if "min_id" in query:
        shown = [article for article in reversed(shown) if article.id > _number(query["min_id"], 0)]
        start = 0
    else:
        after = query.get("cursor", "").removeprefix("after-")
        start = next((place + 1 for place, one in enumerate(shown) if str(one.id) == after), 0)
    here = shown[start : start + site.page_size]
    items = [_as_json(site, article) for article in here]
    more = start + site.page_size < len(shown)
    document = {"data": {"items": items, "next": f"after-{here[-1].id}" if here and more else ""}}
    return json_answer(document)


def _as_json(site: SimNews, article: SimArticle) -> dict[str, Any]:
    version = article.version_at(site.clock.now())
    return {
        "id": article.id,
        "url": address_of(article),
        "title": version.title,
        "published": article.published_at.isoformat(),
        "updated": version.since.isoformat(),
    }


def _article(site: SimNews, article: SimArticle) -> bytes:
    version = article.version_at(site.clock.now())
    address = site.url + address_of(article)
    told = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": version.title,
        "datePublished": article.published_at.isoformat(),
        "dateModified": version.since.isoformat(),
        "author": {"@type": "Person", "name": article.author},
        "image": site.url + article.image,
    }
    head = (
        f'<link rel="canonical" href="{address}"><meta property="og:site_name" content="{site.title}">'
        f'<script type="application/ld+json">{json.dumps(told, ensure_ascii=False)}</script>'
    )
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in version.paragraphs)
    others = "".join(_teaser(site, other) for other in site.shown()[:4] if other.id != article.id)
    body = (
        f'<main><article><h1>{escape(version.title)}</h1><div class="byline">{article.author}</div>'
        f'<figure><img src="{article.image}" alt="{escape(version.title)}" width="640"></figure>{text}</article>'
        f'<aside class="related"><h3>Related</h3>{others}</aside></main>'
    )
    return _framed(site, f"{version.title} | {site.title}", body, head)


def _framed(site: SimNews, title: str, body: str, head: str = "") -> bytes:
    """Returns a page with the header, menu and footer of the site."""
    menu = "".join(
        f'<li><a href="/section/{name}">{name.title()}</a></li>' for name in ("politics", "economy", "sport")
    )
    return (
        f'<!doctype html><html lang="{site.language}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"{head}</head><body><header><nav><ul>{menu}</ul></nav></header>"
        f'<div class="cookie">We use cookies. <a href="/privacy">More</a></div>{body}'
        f'<footer><p>© 2026 {site.title}. All rights reserved.</p><a href="/contact">Contact</a></footer></body></html>'
    ).encode()


def _sitemap_index(site: SimNews) -> Answer:
    newest = site.shown()[0].published_at
    maps = (("sitemap-news.xml", newest), ("sitemap-all.xml.gz", newest - timedelta(days=1)))
    entries = "".join(
        f"<sitemap><loc>{site.url}/{name}</loc><lastmod>{at.isoformat()}</lastmod></sitemap>" for name, at in maps
    )
    return Answer(200, f'<?xml version="1.0"?><sitemapindex xmlns="{_SITEMAP}">{entries}</sitemapindex>'.encode(), _XML)


def _sitemap(site: SimNews) -> str:
    now = site.clock.now()
    entries = "".join(
        f"<url><loc>{site.url}{address_of(article)}</loc><lastmod>{article.version_at(now).since.isoformat()}</lastmod>"
        f"<n:news><n:publication_date>{article.published_at.isoformat()}</n:publication_date>"
        f"<n:title>{escape(article.version_at(now).title)}</n:title></n:news></url>"
        for article in site.shown()
    )
    news = "http://www.google.com/schemas/sitemap-news/0.9"
    return f'<?xml version="1.0"?><urlset xmlns="{_SITEMAP}" xmlns:n="{news}">{entries}</urlset>'


def _image(id: int) -> bytes:
    """Returns a small image of one colour, which depends on the id."""
    return png(bytes([id * 37 % 256, id * 91 % 256, id * 13 % 256]), 16, 9)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else otherwise


def _from_arguments(given: Namespace) -> SimNews:
    return simulated(seed=given.seed, before=given.articles, language=given.language)


def _addresses(site: SimNews) -> Iterator[str]:
    yield f"{site.url}/news"


if __name__ == "__main__":
    options: dict[str, dict[str, Any]] = {
        "--articles": {"type": int, "default": 35, "help": "published when it begins"},
        "--language": {"choices": ["en", "zh"], "default": "en"},
    }
    run("A simulated news site on loopback.", options, _from_arguments, answer, _addresses)
