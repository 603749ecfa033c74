"""miniflux (Go, PostgreSQL), by its own command that refreshes all feeds and ends."""

from __future__ import annotations

import psycopg

from peers import Job, Outcome, environment, go_program, go_version, run_to_its_end
from peers.postgres import Database, fresh_database

NAME = "miniflux"
MODULE = "miniflux.app/v2"
VERSION = "v2.3.3"
WORKERS = 2  # of 2, 4 and 16 (its default) the one that costs PostgreSQL least, on two cores


def poll(job: Job) -> Outcome:
    program = go_program(MODULE, MODULE, VERSION)
    with fresh_database(job.folder) as database:
        env = environment(
            job,
            DATABASE_URL=database.url + "?sslmode=disable",
            RUN_MIGRATIONS="1",
            CREATE_ADMIN="1",
            ADMIN_USERNAME="bench",
            ADMIN_PASSWORD="benchmark",
            WORKER_POOL_SIZE=str(WORKERS),
            BATCH_SIZE=str(len(job.urls)),
            POLLING_LIMIT_PER_HOST="0",
            POLLING_PARSING_ERROR_LIMIT="0",
            FETCHER_ALLOW_PRIVATE_NETWORKS="1",
            LOG_LEVEL="error",
        )
        run_to_its_end([program, "-refresh-feeds"], job, env)  # makes the tables and the user
        _subscribe(database, job.urls)
        first = run_to_its_end([program, "-refresh-feeds"], job, env, database.server)
        _make_due(database)
        unchanged = run_to_its_end([program, "-refresh-feeds"], job, env, database.server)
        feeds, entries = _stored(database)
    return Outcome(go_version(program, MODULE), first, unchanged, feeds, entries, f"{WORKERS} workers")


def _subscribe(database: Database, urls: list[str]) -> None:
    with psycopg.connect(database.url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT user_id, id FROM categories LIMIT 1")
        user, category = cursor.fetchone() or (0, 0)
        cursor.executemany(
            "INSERT INTO feeds (user_id, category_id, title, feed_url, site_url) VALUES (%s, %s, %s, %s, %s)",
            [(user, category, f"feed {number}", url, url) for number, url in enumerate(urls)],
        )


def _make_due(database: Database) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("UPDATE feeds SET next_check_at = now() - interval '1 day'")


def _stored(database: Database) -> tuple[int, int]:
    with psycopg.connect(database.url) as connection:
        row = connection.execute("SELECT count(DISTINCT feed_id), count(*) FROM entries").fetchone()
    return (row[0], row[1]) if row else (0, 0)
