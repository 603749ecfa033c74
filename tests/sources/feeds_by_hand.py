"""Small feeds for tests, and one way to read them."""

from __future__ import annotations

from datetime import UTC, datetime

from headwater.model import Page, Post
from headwater.sources.feeds import read_feed

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
URL = "https://a.example/blog/feed.xml"


def read(body: bytes | str, *, url: str = URL, content_type: str | None = None) -> Page:
    data = body.encode() if isinstance(body, str) else body
    return read_feed(data, url=url, content_type=content_type, received_at=NOON)


def rss(*items: str, channel: str = "", attributes: str = "") -> str:
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f'<rss version="2.0"{NAMESPACES}{attributes}><channel><title>A</title>{channel}{inside}</channel></rss>'


def atom(*entries: str, feed: str = "", attributes: str = "") -> str:
    inside = "".join(f"<entry>{entry}</entry>" for entry in entries)
    return f'<feed xmlns="http://www.w3.org/2005/Atom"{NAMESPACES}{attributes}>{feed}{inside}</feed>'


def only(page: Page) -> Post:
    assert len(page.posts) == 1, page.posts
    return page.posts[0]


def of_rss(item: str, channel: str = "") -> Post:
    return only(read(rss(item, channel=channel)))


def of_atom(entry: str, feed: str = "") -> Post:
    return only(read(atom(entry, feed=feed)))


NAMESPACES = (
    ' xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    ' xmlns:dcterms="http://purl.org/dc/terms/" xmlns:media="http://search.yahoo.com/mrss/"'
    ' xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"'
    ' xmlns:thr="http://purl.org/syndication/thread/1.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"'
    ' xmlns:a10="http://www.w3.org/2005/Atom" xmlns:georss="http://www.georss.org/georss"'
    ' xmlns:feedburner="http://rssnamespace.org/feedburner/ext/1.0" xmlns:wfw="http://wellformedweb.org/CommentAPI/"'
    ' xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#"'
)
