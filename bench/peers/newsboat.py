"""newsboat (C++ and Rust, SQLite), by its own command that reloads all feeds and ends."""

from __future__ import annotations

import sqlite3
import subprocess

from peers import Command, Job, Outcome, debian_program, environment, run_to_its_end

NAME = "newsboat"


def poll(job: Job) -> Outcome:
    program = debian_program("newsboat", "newsboat")
    urls, settings, cache = job.folder / "urls", job.folder / "config", job.folder / "cache.db"
    urls.write_text("\n".join(job.urls) + "\n")
    settings.write_text("reload-threads 2\nrefresh-on-startup no\ncleanup-on-quit no\nmax-items 0\n")
    command: Command = [program, "-u", urls, "-C", settings, "-c", cache, "-x", "reload"]
    first = run_to_its_end(command, job, environment(job))
    unchanged = run_to_its_end(command, job, environment(job))
    with sqlite3.connect(cache) as connection:
        feeds, entries = connection.execute("SELECT count(DISTINCT feedurl), count(*) FROM rss_item").fetchone()
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[1]
    return Outcome(version, first, unchanged, feeds, entries)
