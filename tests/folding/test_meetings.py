"""Two stories that turn out to be one become one in the store, with a record, and can be taken apart again (C2, C5)."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from sqlalchemy import Connection, func, select

from api.running import Running
from dedup.test_stories_meeting import ALL, COPPER, DAM, OTHERS
from folding.flood import fold, publish
from headwater.store.tables import event_outbox, story_decisions, story_members
from support import forked
from support.posts import a_post

PAPERS = len(ALL)
FIRST, MOVED = 0, len(DAM)  # places of the posts that the two stories begin with
APART = len(DAM) + len(COPPER)

KILLED_BEFORE_COMMIT = """
import os, signal, sys
from headwater import wire
from headwater.settings import load

parts = wire.open_parts(load())

def fold(conn):
    decided = parts.folding.fold(conn, [int(post) for post in sys.argv[1:]], parts.now())
    print(len(decided), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

parts.db.write_now(fold)
"""


def stories_of(headwater: Running, ids: list[int]) -> set[int]:
    def read(conn: Connection) -> set[int]:
        chosen = select(story_members.c.story_id).where(story_members.c.post_id.in_(ids))
        return {row.story_id for row in conn.execute(chosen)}

    return headwater.parts.db.read_now(read)


def meetings(headwater: Running) -> int:
    counted = select(func.count()).where(story_decisions.c.action == "met")
    found: int = headwater.parts.db.read_now(lambda conn: conn.execute(counted).scalar_one())
    return found


def two_stories(headwater: Running) -> list[int]:
    """Two stories among other posts, and the posts by which they will meet, which are not folded."""
    agency = headwater.source("https://agency.example/feed")
    earlier = headwater.parts.now() - timedelta(hours=2)
    fold(headwater, headwater.publish(agency, *(a_post(one, one, content="", created_at=earlier) for one in OTHERS)))
    ids = publish(headwater, *ALL)
    fold(headwater, ids[:APART])
    assert stories_of(headwater, ids[:APART]) == {ids[FIRST], ids[MOVED]}
    return ids


def told_and_met(headwater: Running) -> list[int]:
    ids = two_stories(headwater)
    fold(headwater, ids[APART:])
    return ids


# C2
def test_two_stories_become_one_with_a_record_and_an_event_for_each_post_that_moved(on_both: Running) -> None:
    ids = told_and_met(on_both)
    assert stories_of(on_both, ids) == {ids[FIRST]}
    client = on_both.program()
    group = client.get(f"/api/deduplicate/groups/{ids[FIRST]}").json()
    assert group["members"][0]["post_id"] == ids[FIRST]  # what was shown first stays
    assert client.get(f"/api/deduplicate/groups/{ids[MOVED]}").json()["group_id"] == group["group_id"]
    [met] = [one for one in group["history"] if one["action"] == "met"]
    assert (met["post_id"], met["why"].startswith("several posts could be in either")) == (ids[MOVED], True)
    page = on_both.browser().get(f"/stories/{ids[FIRST]}").text
    assert f"The story of post {ids[MOVED]} became part of this one" in page

    def moved_events(conn: Connection) -> set[int]:
        rows = conn.execute(select(event_outbox.c.payload).where(event_outbox.c.kind == "story.joined"))
        return {row.payload["post_id"] for row in rows if row.payload["story_id"] == ids[FIRST]}

    assert set(ids[MOVED:APART]) <= on_both.parts.db.read_now(moved_events)


# C5
@pytest.mark.parametrize("everybody", [False, True])
def test_what_came_into_a_story_together_can_be_taken_out_together(on_both: Running, everybody: bool) -> None:
    ids = told_and_met(on_both)
    client = on_both.program()
    apart = client.post(f"/api/deduplicate/posts/{ids[MOVED]}/apart{'?everybody=true' if everybody else ''}")
    left = apart.json()["post_ids"]
    assert set(ids[MOVED:APART]) <= set(left)
    assert not set(left) & set(ids[FIRST:MOVED])
    entries = [{one["post_id"] for one in story["members"]} for story in client.get("/api/stream").json()["items"]]
    assert not any(ids[FIRST] in entry and ids[MOVED] in entry for entry in entries)
    if everybody:  # and they do not meet again
        fold(on_both, ids)
        assert ids[MOVED] not in stories_of(on_both, ids[FIRST:MOVED])


# C5: nothing is read that nobody saw
def test_a_story_that_took_in_unread_posts_is_not_read(on_both: Running) -> None:
    ids = two_stories(on_both)
    client = on_both.program()
    [first] = [story for story in client.get("/api/stream").json()["items"] if story["story_id"] == str(ids[FIRST])]
    read = client.patch(f"/api/posts/{ids[FIRST]}", {"read": True, "as_of": first["as_of"]})
    assert read.status == 200
    fold(on_both, ids[APART:])
    [story] = [one for one in client.get("/api/stream").json()["items"] if one["story_id"] == str(ids[FIRST])]
    assert story["state"] != "read"


# H79
def test_stories_meet_after_the_process_that_made_them_one_was_killed(on_both: Running) -> None:
    ids = two_stories(on_both)
    environ = {**os.environ, "HEADWATER_DATABASE_URL": on_both.parts.settings.store_url()}
    killed = forked.run("-c", KILLED_BEFORE_COMMIT, *map(str, ids[APART:]), env=environ)
    assert (killed.returncode, killed.stdout.strip()) == (-9, str(PAPERS - APART))
    assert (stories_of(on_both, ids), meetings(on_both)) == ({ids[FIRST], ids[MOVED]}, 0)
    fold(on_both, ids[APART:])
    assert (stories_of(on_both, ids), meetings(on_both)) == ({ids[FIRST]}, 1)


def test_stories_meet_after_a_transaction_that_made_them_one_was_rolled_back(on_both: Running) -> None:
    ids = two_stories(on_both)

    def failing(conn: Connection) -> None:
        on_both.parts.folding.fold(conn, ids[APART:], on_both.parts.now())
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        on_both.parts.db.write_now(failing)
    assert meetings(on_both) == 0
    fold(on_both, ids[APART:])
    assert (stories_of(on_both, ids), meetings(on_both)) == ({ids[FIRST]}, 1)
    fold(on_both, ids)
    assert meetings(on_both) == 1  # they are one already
