"""Updates the search index. Posts can be found a moment after they are stored; the crawl does not wait for it."""

from __future__ import annotations

from sqlalchemy import Connection

from headwater.events.catalogue import POST_CHANGED, POST_STORED
from headwater.events.delivery import Consumer
from headwater.store.log.outbox import LoggedEvent
from headwater.store.posts import search


def index_posts(conn: Connection, events: list[LoggedEvent]) -> None:
    search.index(conn, sorted({POST_STORED.read(event).post_id for event in events}))


CONSUMER = Consumer("search", frozenset({POST_STORED.name, POST_CHANGED.name}), index_posts, batch=2000, linger=4.0)
