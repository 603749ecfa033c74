"""`headwater backup` and `restore`: the whole store in one file, across databases, or nothing (F12)."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, insert, select, text

from headwater import wire
from headwater.app import backup, instance, posts, webhooks
from headwater.errors import AlreadyThere, BadInput
from headwater.model import Image
from headwater.settings import load
from headwater.store.backup import Columns, Reading, kept_tables
from headwater.store.db import Database
from headwater.store.fleet import telemetry
from headwater.store.images import files, queue
from headwater.store.people import accounts
from headwater.store.posts.stream import Filter, Marks
from headwater.store.tables import consumer_inbox, event_outbox, images, metadata, webhook_deliveries
from headwater.wire import Parts
from support import forked
from support.posts import NOON, a_post, a_source, visited
from support.services import as_app_role, make_app_role, service_url

KINDS = {name: dict(columns) for name, columns in kept_tables()}


@pytest.fixture(params=["sqlite", "postgres"])
def other_environ(request: pytest.FixtureRequest, tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """The settings of a second store, which is empty, on each database in turn."""
    url = f"sqlite:///{tmp_path / 'other.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    return {**environ, "HEADWATER_DATABASE_URL": url, "HEADWATER_DATA_DIR": str(tmp_path / "other")}


@contextmanager
def opened(environ: dict[str, str]) -> Iterator[Parts]:
    parts = wire.open_parts(load(environ))
    try:
        yield parts
    finally:
        parts.close()


def back_up(parts: Parts, file: Path, **options: Any) -> backup.Manifest:
    key = next(iter(wire.present_keys(parts)), None)
    given = {"images": wire.image_folder(parts.settings), "key_id": key, "now": NOON, **options}
    return backup.write(parts.db, file, **given)


def restore(parts: Parts, file: Path, **options: Any) -> None:
    with backup.opened(file) as archive:
        given = {"images": wire.image_folder(parts.settings), "key_ids": wire.present_keys(parts), **options}
        backup.restore(parts.db, archive, **given)
    wire.prepare_store(parts)


def all_rows(db: Database) -> dict[str, list[Any]]:
    """Every row, as a backup has it. What depends on the database is left out."""

    def read(conn: Connection) -> dict[str, list[Any]]:
        reading = Reading(conn)
        found = {
            columns.table: [_comparable(columns, row) for row in reading.rows(columns)] for columns in kept_tables()
        }
        return {table: sorted(rows, key=repr) for table, rows in found.items()}

    return db.snapshot_now(read)


def _comparable(columns: Columns, row: list[Any]) -> dict[str, Any]:
    found = dict(zip([name for name, _ in columns.columns], row, strict=True))
    if columns.table == "event_dlq":
        del found["partition"]
    if columns.table == "users":
        del found["changed"]  # a restore changes what is theirs
    for name, kind in columns.columns:
        if kind == "json" and found[name] is not None:
            found[name] = json.loads(found[name])  # PostgreSQL writes it in its own way
    return found


def fill_every_table(conn: Connection) -> None:
    """Two rows in each table; in the second one, everything that may be missing is."""
    telemetry.make_months(conn, NOON, NOON + timedelta(days=400))
    for table in metadata.sorted_tables:
        if table.name in KINDS:
            for number in (101, 102):
                values = {
                    column.name: _value(column, KINDS[table.name][column.name], number)
                    for column in table.columns
                    if column.computed is None and not (number == 102 and column.nullable)
                }
                conn.execute(insert(table).values(values))


def _value(column: sa.Column[Any], kind: str, number: int) -> Any:
    if column.name == "partition":
        return 0
    words = f'{number} {column.name} "“漢🌊\\\n'
    return {
        "moment": NOON + timedelta(days=number, microseconds=number),
        "json": {"a": [number, 1.5, 'é"', None, True]},
        "bytes": bytes(range(number)),
        "bool": number == 101,
        "int": number,
        "float": number + 0.1,
        "decimal": Decimal(number) / 3,
        "text": words[: getattr(column.type, "length", None)],
    }[kind]


def test_every_column_of_every_table_survives_between_all_databases(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:  # F12
    parts.db.write_now(fill_every_table)
    before = all_rows(parts.db)
    assert all(len(rows) >= 2 for rows in before.values())
    back_up(parts, tmp_path / "all.backup")
    with opened(other_environ) as other:
        restore(other, tmp_path / "all.backup", any_key=True)
        assert all_rows(other.db) == before
        back_up(other, tmp_path / "again.backup")


def test_ids_that_were_given_out_are_not_given_out_again(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:
    owner = instance.owner(parts.db)
    parts.db.write_now(a_source, owner, "https://news.example/a")
    gone = parts.db.write_now(a_source, owner, "https://news.example/b")
    parts.db.write_now(lambda conn: conn.execute(text(f"DELETE FROM sources WHERE id = {gone}")))
    back_up(parts, tmp_path / "b.backup")
    with opened(other_environ) as other:
        restore(other, tmp_path / "b.backup")
        assert other.db.write_now(a_source, owner, "https://news.example/c") > gone


def test_a_restored_store_goes_on_where_the_first_one_was(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:
    """Consumers handle what was not handled, and nothing twice; search, secrets, marks and images are there."""
    owner = instance.owner(parts.db)
    parts.db.write_now(webhooks.add, owner, "https://hooks.example/in", [], parts.seal, NOON)
    parts.db.write_now(instance.store_x_token, parts.seal("the token"), NOON)
    source = parts.db.write_now(a_source, owner)
    picture = files.path_of(files.hash_of(b"picture"), "png")
    files.save(wire.image_folder(parts.settings), picture, b"picture")
    shown = a_post("1", "Lithium is found", images=(Image("https://news.example/1.png", "a picture"),))
    first = parts.db.write_now(visited, source, [shown, a_post("2", "Quiet rivers")])
    parts.db.write_now(
        lambda conn: conn.execute(
            images.update().values(state="saved", path=picture, size=7, content_hash=files.hash_of(b"picture"))
        )
    )
    asyncio.run(wire.catch_up(parts))
    parts.db.write_now(visited, source, [a_post("3", "Cobalt is lost")], NOON + timedelta(hours=1))
    parts.db.write_now(posts.mark, owner, [first.posts[0].id], NOON, Marks(starred=True))
    back_up(parts, tmp_path / "b.backup")
    key = Path(other_environ["HEADWATER_DATA_DIR"])
    key.mkdir()
    (key / "secret.key").write_bytes((parts.settings.data_dir / "secret.key").read_bytes())
    with opened(other_environ) as other:
        restore(other, tmp_path / "b.backup")
        handled = other.db.read_now(_handled)
        asyncio.run(wire.catch_up(other))
        after = other.db.read_now(_handled)
        assert handled < after
        events = other.db.read_now(lambda conn: set(conn.scalars(select(event_outbox.c.event_id))))
        assert {event for consumer, event in after if consumer == "webhooks"} == events
        assert other.db.read_now(_deliveries) == len(events)
        found = {post.title: post for post in other.db.read_now(posts.page, owner, posts.Filter(), limit=10)}
        assert found.keys() == {"Lithium is found", "Quiet rivers", "Cobalt is lost"}
        assert found["Lithium is found"].starred
        for word in ("lithium", "cobalt"):
            assert len(other.db.read_now(posts.find_words, owner, word, limit=5)) == 1
        assert asyncio.run(instance.stored_x_token(other.db, other.unseal)) == "the token"
        assert files.load(wire.image_folder(other.settings), picture) == b"picture"
        other.db.write_now(visited, source, [a_post("4", "Nickel")], NOON + timedelta(hours=2))
        asyncio.run(wire.catch_up(other))
        assert len(other.db.read_now(posts.find_words, owner, "nickel", limit=5)) == 1


def _handled(conn: Connection) -> set[tuple[str, str]]:
    return set(conn.execute(select(consumer_inbox.c.consumer, consumer_inbox.c.event_id)))


def _deliveries(conn: Connection) -> int:
    ids = list(conn.scalars(select(webhook_deliveries.c.event_id)))
    assert len(ids) == len(set(ids))
    return len(ids)


def test_a_backup_is_of_one_moment_while_others_write(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:
    owner = instance.owner(parts.db)
    source, stop, number = parts.db.write_now(a_source, owner), threading.Event(), 0

    def write() -> None:
        nonlocal number
        while not stop.is_set():
            number += 1
            found = [a_post(f"{number}-{place}") for place in range(20)]
            parts.db.write_now(visited, source, found, NOON + timedelta(hours=number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while number < 3:
            pass
        back_up(parts, tmp_path / "b.backup")
    finally:
        stop.set()
        writer.join()
    with opened(other_environ) as other:
        restore(other, tmp_path / "b.backup")
        rows = all_rows(other.db)
        assert rows["posts"]
        assert len(rows["posts"]) % 20 == 0  # no visit is there in part
        assert len(rows["posts"]) == sum(one["kind"] == "post.stored" for one in rows["event_outbox"])


def test_without_images_they_are_downloaded_again(parts: Parts, other_environ: dict[str, str], tmp_path: Path) -> None:
    owner = instance.owner(parts.db)
    source = parts.db.write_now(a_source, owner)
    parts.db.write_now(visited, source, [a_post("1", images=(Image("https://news.example/1.png", ""),))])
    parts.db.write_now(
        lambda conn: conn.execute(
            images.update().values(state="saved", path="ab/" + "c" * 62 + ".png", size=7, next_try_at=None)
        )
    )
    assert back_up(parts, tmp_path / "b.backup", images=None).images is None
    with opened({**other_environ, "HEADWATER_IMAGES": "on"}) as other:
        restore(other, tmp_path / "b.backup")
        assert asyncio.run(wire.heal_images(other)) == 1
        assert other.db.read_now(queue.due, other.now(), 5) != []


def test_another_key_is_refused_unless_passwords_may_be_lost(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:
    owner = instance.owner(parts.db)
    parts.db.write_now(instance.store_x_token, parts.seal("the token"), NOON)
    made = back_up(parts, tmp_path / "b.backup")
    key = (parts.settings.data_dir / "secret.key").read_bytes()
    assert made.key.secrets == 1
    assert key not in (tmp_path / "b.backup").read_bytes()
    with opened(other_environ) as other:
        with pytest.raises(BadInput, match=f"encrypted with the key {made.key.id}, and there is no key here"):
            restore(other, tmp_path / "b.backup")
        assert not (other.settings.data_dir / "secret.key").exists()
        restore(other, tmp_path / "b.backup", any_key=True)
        assert other.db.read_now(accounts.owner) == owner


def test_a_store_with_anything_in_it_is_not_restored_into(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path
) -> None:
    back_up(parts, tmp_path / "b.backup")
    with opened(other_environ) as other:
        owner = wire.prepare_store(other)
        restore(other, tmp_path / "b.backup")  # only the schema and its owner
        other.db.write_now(a_source, owner)
        before = all_rows(other.db)
        with pytest.raises(AlreadyThere, match="not empty"):
            restore(other, tmp_path / "b.backup")
        assert all_rows(other.db) == before


def test_a_backup_of_an_older_schema_is_upgraded(
    parts: Parts, other_environ: dict[str, str], tmp_path: Path, older: Callable[[Path], Path]
) -> None:
    owner = instance.owner(parts.db)
    source = parts.db.write_now(a_source, owner)
    parts.db.write_now(visited, source, [a_post("1", "Lithium")])
    back_up(parts, tmp_path / "b.backup")
    with opened(other_environ) as other:
        restore(other, older(tmp_path / "b.backup"))
        instance.check_schema(other.db)
        assert len(other.db.read_now(posts.find_words, owner, "lithium", limit=5)) == 1


def test_a_restore_by_the_owner_of_the_tables_lets_the_application_use_them(
    environ: dict[str, str], parts: Parts, postgres_url: str, tmp_path: Path
) -> None:
    """Two roles on PostgreSQL: the application's reads for the backup, and may use what its owner restores."""
    owner = parts.db.read_now(accounts.owner)
    assert owner is not None
    source_id = parts.db.write_now(a_source, owner)
    parts.db.write_now(lambda conn: visited(conn, source_id, [a_post("one")], NOON))
    back_up(parts, tmp_path / "all.backup")
    make_app_role(service_url("postgres"))
    two_roles = {
        **environ,
        "HEADWATER_DATABASE_URL": as_app_role(postgres_url),
        "HEADWATER_MIGRATION_DATABASE_URL": postgres_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "other"),
    }
    done = forked.run("-m", "headwater", "restore", str(tmp_path / "all.backup"), env={**os.environ, **two_roles})
    assert done.returncode == 0, done.stderr
    with opened(two_roles) as other:
        restored, kept = all_rows(other.db), all_rows(parts.db)
        [recorded] = [row for row in restored.pop("audit_log") if row not in kept["audit_log"]]
        assert recorded["action"] == "backup.restore"
        assert restored == {table: rows for table, rows in kept.items() if table != "audit_log"}
        assert other.db.read_now(instance.isolation)[0] == []
        other.db.write_now(lambda conn: visited(conn, source_id, [a_post("two")], NOON))
        assert len(other.db.read_now(posts.page, owner, Filter(), limit=10)) == 2
