"""The reader library (Python, SQLite), without its search index."""

from __future__ import annotations

import sqlite3

from peers import Job, Outcome, environment, python_with, run_to_its_end, version_of

NAME = "reader"

SUBSCRIBE = """
import sys
from reader import make_reader
reader = make_reader(sys.argv[1])
for url in open(sys.argv[2]):
    reader.add_feed(url.strip())
"""
UPDATE = """
import sys
from reader import make_reader
make_reader(sys.argv[1]).update_feeds(workers=4, scheduled=False)
"""


def poll(job: Job) -> Outcome:
    python = python_with("reader", "sgmllib3k")  # which its own feedparser imports without asking for it
    store, urls = job.folder / "reader.db", job.folder / "urls"
    urls.write_text("\n".join(job.urls))
    run_to_its_end([python, "-c", SUBSCRIBE, store, urls], job, environment(job))
    first = run_to_its_end([python, "-c", UPDATE, store], job, environment(job))
    unchanged = run_to_its_end([python, "-c", UPDATE, store], job, environment(job))
    with sqlite3.connect(store) as connection:
        feeds, entries = connection.execute("SELECT count(DISTINCT feed), count(*) FROM entries").fetchone()
    return Outcome(version_of(python, "reader"), first, unchanged, feeds, entries, "no search")
