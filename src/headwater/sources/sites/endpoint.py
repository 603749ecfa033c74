"""Lists that a site serves as JSON: articles at the paths that the settings give."""

from __future__ import annotations

import json
from datetime import datetime
from html import escape
from typing import Any, NamedTuple

import orjson

from headwater.errors import ReadFailed
from headwater.sources.feeds.dates import parse_date
from headwater.sources.sites.settings import NewsSettings, found_at, text_at
from headwater.text import clean_html, looks_like_html, plain, text_as_html
from headwater.urls import safe_link

MAX_ITEMS = 1_000
MAX_TITLE = 1_000


class ListedArticle(NamedTuple):
    """An article as the list shows it. `content` is empty if the list does not contain its text."""

    id: str
    url: str
    title: str
    published: datetime | None
    mark: str
    content: str
    author: str


class ArticleList(NamedTuple):
    articles: list[ListedArticle]
    cursor: str
    truncated: bool


def read_endpoint(body: bytes, settings: NewsSettings, base: str) -> ArticleList:
    document = _parsed(body)
    found = [item for item in found_at(document, settings.items) if isinstance(item, dict | str)]
    articles = {one.url: one for item in found[:MAX_ITEMS] if (one := _article(item, settings, base))}
    cursor = text_at(document, settings.next)
    return ArticleList(list(articles.values()), cursor, len(found) > MAX_ITEMS)


def _article(item: dict[str, Any] | str, settings: NewsSettings, base: str) -> ListedArticle | None:
    if isinstance(item, str):
        url = safe_link(item, base)
        return ListedArticle("", url, "", None, "", "", "") if url and url.startswith("http") else None
    id = text_at(item, settings.id or "id")[:200]
    written = settings.url or "url"
    address = written.replace("{id}", id) if "{" in written else text_at(item, written)
    url = safe_link(address, base)
    if not url or not url.startswith(("http://", "https://")):
        return None
    published = text_at(item, settings.date or "date")
    text = text_at(item, settings.text)
    return ListedArticle(
        id=id,
        url=url,
        title=_line(text_at(item, settings.title or "title")),
        published=parse_date(published[:100]) if published else None,
        mark=text_at(item, settings.mark)[:100],
        content=clean_html(text, url) if looks_like_html(text) else text_as_html(text),
        author=_line(text_at(item, settings.author)),
    )


def _line(text: str) -> str:
    return plain(text if looks_like_html(text) else escape(text, quote=False))[:MAX_TITLE]


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as strict:
        try:
            return json.loads(body.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            raise ReadFailed(f"The list is not JSON: {strict}.") from strict
