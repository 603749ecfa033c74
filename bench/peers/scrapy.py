"""Scrapy (Python, Twisted) with a spider that does the least one can call polling: no cleaning, no search."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from peers import Command, Job, Outcome, environment, python_with, run_to_its_end, version_of

NAME = "scrapy"
SPIDER = Path(__file__).with_name("scrapy_spider.py")


def poll(job: Job) -> Outcome:
    python = python_with("scrapy")
    store, urls = job.folder / "scrapy.db", job.folder / "urls"
    urls.write_text("\n".join(job.urls))
    command: Command = [python, "-m", "scrapy", "runspider", SPIDER, "-a", f"store={store}", "-a", f"urls={urls}"]
    first = run_to_its_end(command, job, environment(job))
    unchanged = run_to_its_end(command, job, environment(job))
    with sqlite3.connect(store) as connection:
        feeds, entries = connection.execute("SELECT count(DISTINCT feed), count(*) FROM entries").fetchone()
    return Outcome(version_of(python, "scrapy"), first, unchanged, feeds, entries, "no cleaning, no search")
