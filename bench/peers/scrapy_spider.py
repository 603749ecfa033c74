"""The spider that `peers.scrapy` runs, in an environment of its own: entries and validators go into SQLite."""

# mypy: ignore-errors
# Scrapy is not installed where the rest of the project is checked.

from __future__ import annotations

import sqlite3
from pathlib import Path

import scrapy


class Feeds(scrapy.Spider):
    name = "feeds"
    custom_settings = {
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "HTTPERROR_ALLOWED_CODES": [304],
        "RETRY_ENABLED": False,
    }

    def __init__(self, store: str, urls: str) -> None:
        super().__init__()
        self.urls = Path(urls).read_text().split()
        self.store = sqlite3.connect(store)
        self.store.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE IF NOT EXISTS feeds (url PRIMARY KEY, etag) WITHOUT ROWID;"
            "CREATE TABLE IF NOT EXISTS entries (feed, id, title, link, date, content, PRIMARY KEY (feed, id));"
        )

    async def start(self):
        etags = dict(self.store.execute("SELECT url, etag FROM feeds"))
        for url in self.urls:
            headers = {"If-None-Match": etags[url]} if etags.get(url) else {}
            yield scrapy.Request(url, headers=headers, callback=self.parse, dont_filter=True)

    def parse(self, response):
        if response.status == 304:
            return
        try:
            document = scrapy.Selector(text=response.text, type="xml")
        except (AttributeError, ValueError):
            return
        entries = document.xpath("//*[local-name()='item' or local-name()='entry']")
        self.store.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            [self.row(response.url, number, entry) for number, entry in enumerate(entries)],
        )
        etag = response.headers.get("ETag", b"").decode()
        self.store.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?)", (response.url, etag))
        self.store.commit()

    def row(self, url, number, entry):
        texts = {child.root.tag.rpartition("}")[2]: child for child in entry.xpath("*")}

        def text(*names):
            found = next((texts[name] for name in names if name in texts), None)
            return "".join(found.xpath(".//text()").getall()) if found is not None else None

        identity = text("guid", "id") or text("link") or str(number)
        return (url, identity, text("title"), text("link"), text("pubDate", "published", "updated", "date"),
                text("encoded", "content", "description", "summary"))  # fmt: skip
