"""Runs each write to accounts in processes that are killed, at one statement after the other. For test_account_kill.py.

    python killed.py DATABASE_URL

The program is imported once and forked for each statement. For each write it prints how many kills it took until the
write was through, at which of them the store had changed, and what the write had changed in the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, event

from headwater import wire
from headwater.accounts import access_tokens, tokens
from headwater.app import account, people, stories
from headwater.model import Decision, Reader
from headwater.store import stories as story_store
from headwater.store.db import Database
from headwater.store.people import accounts
from support.posts import NOON, a_post, a_source, visited
from support.statements import watched
from tenants.two_tenants import contents

NOW = NOON + timedelta(hours=1)
PASSWORD = "correct horse battery"
MOST = 80  # statements of one write


class Made(NamedTuple):
    """What the writes are about."""

    owner: Reader
    other: Reader
    invitation: str
    token_id: int
    refresh_token: str
    story_id: int
    session_id: int


def make(conn: Connection) -> Made:
    owner = accounts.make_owner(conn, NOON)
    user_id = accounts.add_user(conn, owner.tenant_id, name="other", role="member", email="other@example.org", now=NOON)
    other = Reader(owner.tenant_id, user_id, "other", "member")
    people.set_email(conn, owner, owner.user_id, "owner@example.org")
    for _ in range(3):
        tokens.issue(conn, owner, "session", "browser", NOON)
    invited = people.invite(conn, owner, "bob@example.org", "member", "", NOON)
    token = account.create_token(conn, owner, "program", NOON).token
    first, second = (one.id for one in visited(conn, a_source(conn, owner), [a_post("1"), a_post("2")]).posts)
    decided = [Decision(first, first, first, "first", 1.0, ""), Decision(second, first, first, "exact", 1.0, "")]
    story_store.save(conn, decided, NOON)
    refresh = access_tokens.start_family(conn, token, frozenset({"posts:read"}), NOON)
    session = account.every_session(conn, owner, NOON)[0].id
    return Made(owner, other, invited.link.partition("token=")[2], token.id, refresh, first, session)


Write = Callable[[Database, Made], Awaitable[Any]]
WRITES: dict[str, Write] = {
    "an invitation is accepted": lambda db, made: people.accept(db, made.invitation, "Bob", PASSWORD, NOW),
    "a password is set, and the other sessions end": lambda db, made: account.change_password(
        db, made.owner, None, PASSWORD, keep=made.session_id
    ),
    "a token is made": lambda db, made: db.write(account.create_token, made.owner, "new", NOW),
    "a refresh token is exchanged": lambda db, made: db.write(
        access_tokens.refresh, made.refresh_token, made.token_id, NOW
    ),
    "a token is revoked, with its refresh tokens": lambda db, made: db.write(
        account.revoke_token, made.owner, made.token_id
    ),
    "a story is undone for a tenant": lambda db, made: db.write(stories.undo, made.owner, made.story_id, NOW),
    "somebody gets another role": lambda db, made: db.write(people.give_role, made.owner, made.other.user_id, "viewer"),
    "somebody is removed": lambda db, made: db.write(people.remove, made.owner, made.other.user_id),
}


def is_killed(url: str, made: Made, write: Write, statement: int) -> bool:
    """Runs a write in a process that is killed before this statement; the last one is the commit."""
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, -signal.SIGKILL), code
        return code != 0
    try:
        write_and_die(url, made, write, statement)
        os._exit(0)
    finally:
        os._exit(1)


def write_and_die(url: str, made: Made, write: Write, statement: int) -> None:
    seen = 0

    def count(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    db = Database(url)
    event.listen(db.engine, "commit", count)
    with watched(db, count), people.acting(made.owner, "test", lambda: NOW), wire.new_runner() as runner:
        runner.run(_awaited(write(db, made)))


async def _awaited(work: Awaitable[Any]) -> None:
    await work


def rows(db: Database) -> dict[str, list[str]]:
    """What is in the store. No connection stays open: a child must not use it."""
    found = db.read_now(contents)
    db.engine.dispose()
    return {table: sorted(map(repr, kept)) for table, kept in found.items()}


def tried(db: Database, url: str, made: Made, write: Write) -> dict[str, Any]:
    before, kills, between = rows(db), 0, []
    while kills < MOST and is_killed(url, made, write, kills + 1):
        kills += 1
        if rows(db) != before:
            between.append(kills)
    after = rows(db)
    return {"kills": kills, "between": between, "changed": [table for table in after if after[table] != before[table]]}


def main(url: str) -> None:
    with closing(Database(url)) as db:
        made = db.write_now(make)
        for name, write in WRITES.items():
            print(json.dumps({"write": name, **tried(db, url, made, write)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
