"""Consumers that have come to the end of the log."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

from headwater.events.log import Consumer, step
from headwater.store.db import Database
from support.posts import NOON

LEFT = """SELECT count(*) FROM event_outbox o WHERE NOT EXISTS (
    SELECT 1 FROM consumer_cursors c WHERE c.consumer = :name AND (c.xid, c.id) >= (o.xid, o.id))"""


def consume_all(db: Database, consumer: Consumer) -> None:
    """PostgreSQL shows an event once no older transaction is open in any database of the server: wait for that."""
    deadline = time.monotonic() + 60
    while db.write_now(step, consumer, NOON) or db.read_now(_left, consumer.name):
        assert time.monotonic() < deadline, "the consumer did not come to the end of the log"


def _left(conn: Connection, name: str) -> int:
    return conn.execute(text(LEFT), {"name": name}).scalar_one()
