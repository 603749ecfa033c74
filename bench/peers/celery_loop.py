"""What people write today: one Celery task for each feed, with feedparser, and a statement for each entry.

celery -A peers.celery_loop worker     reads LOOP_BROKER and LOOP_DATABASE
"""

from __future__ import annotations

import os
import urllib.request
from functools import cache
from typing import Any

import feedparser
import psycopg
from celery import Celery

TABLES = """
    CREATE TABLE loop_articles (feed TEXT, guid TEXT, title TEXT, body TEXT, UNIQUE (feed, guid));
    CREATE TABLE loop_visits (feed TEXT)
"""
app = Celery("loop", broker=os.environ.get("LOOP_BROKER"))
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_ignore_result=True)


@cache
def connection() -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["LOOP_DATABASE"], autocommit=True)


def _refresh(url: str) -> None:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found = feedparser.parse(answer.read())
    conn = connection()
    with conn.transaction():
        for entry in found.entries:
            said = entry.get("summary", "") or "".join(part.value for part in entry.get("content", ()))
            row = (url, entry.get("id") or entry.get("link"), entry.get("title"), said)
            conn.execute("INSERT INTO loop_articles VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", row)
        conn.execute("INSERT INTO loop_visits VALUES (%s)", (url,))


refresh = app.task(name="refresh")(_refresh)
