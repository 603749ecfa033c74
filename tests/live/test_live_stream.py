"""`/api/live`: everybody is told what is theirs, once, in order, and can come back where they left (F2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from api.running import Client, Running, running
from headwater.accounts import tokens
from headwater.api import events as api
from headwater.events import live as events_live
from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.follow.add import follow, unfollow
from headwater.model import Reader
from headwater.store.log import outbox
from headwater.store.tables import tenants, users
from headwater.wire import utc_now
from live.listening import Told, listening, settle, titles
from support.posts import a_post
from support.processes import wait_until


def posts(*names: str) -> list[Any]:
    return [a_post(name, name) for name in names]


def another_reader(headwater: Running, name: str = "stranger") -> tuple[Reader, Client]:
    """Somebody of another tenant, and a client with a token of theirs."""

    def make(conn: Connection) -> Reader:
        now = headwater.parts.now()
        tenant = conn.execute(insert(tenants).values(name=name, created_at=now).returning(tenants.c.id)).scalar_one()
        values = {"tenant_id": tenant, "name": name, "role": "member", "created_at": now}
        return Reader(tenant, conn.execute(insert(users).values(**values).returning(users.c.id)).scalar_one(), name, "")

    reader = headwater.parts.db.write_now(make)
    secret = headwater.parts.db.write_now(tokens.issue, reader, "api", "test", headwater.parts.now())
    return reader, Client(headwater.port, {"Authorization": f"Bearer {secret}"})


def test_a_new_post_is_told_as_a_cloud_event(on_both: Running) -> None:
    source_id = on_both.source()
    with listening(on_both.program()) as ear:
        assert ear.headers["content-type"].startswith("text/event-stream")
        assert ear.headers["cache-control"] == "no-store"
        on_both.publish(source_id, a_post("1", "Rivers rise"))
        [told] = ear.hear()
    assert told.event == "post.stored"
    assert told.data["specversion"] == "1.0"
    assert told.data["type"] == "post.stored"
    assert told.data["data"]["title"] == "Rivers rise"


def test_several_listeners_hear_the_same_in_the_order_of_the_log(on_both: Running) -> None:
    source_id, names = on_both.source(), [str(number) for number in range(40)]
    client = on_both.program()
    with listening(client) as one, listening(client) as two, listening(on_both.browser()) as three:
        for start in range(0, 40, 10):
            on_both.publish(source_id, *posts(*names[start : start + 10]))
        for ear in (one, two, three):
            assert titles(ear.hear(40)) == names


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(on_both: Running) -> None:
    source_id, client = on_both.source(), on_both.program()
    heard: list[Told] = []
    last = ""
    for round_ in range(4):
        with listening(client, ready=not last, **({"Last_Event_ID": last} if last else {})) as ear:
            on_both.publish(source_id, *posts(f"{round_}a", f"{round_}b"))
            heard += ear.hear(2 if round_ == 0 else 3)
            last = ear.last_id
        on_both.publish(source_id, *posts(f"{round_}c"))
    with listening(client, f"/api/live?kinds=post.stored&last_event_id={last}", ready=False) as ear:
        heard += ear.hear(1)
    assert titles(heard) == [f"{round_}{part}" for round_ in range(4) for part in "abc"]
    assert len({told.data["id"] for told in heard}) == len(heard)


def test_who_heard_nothing_yet_can_come_back_as_well(on_both: Running) -> None:
    source_id, client = on_both.source(), on_both.program()
    with listening(client) as ear:
        last = ear.last_id
    on_both.publish(source_id, *posts("meanwhile"))
    with listening(client, ready=False, Last_Event_ID=last) as ear:
        assert titles(ear.hear()) == ["meanwhile"]


def test_more_than_a_batch_is_caught_up_with_exactly(on_both: Running) -> None:
    source_id, client = on_both.source(), on_both.program()
    with listening(client) as ear:
        last = ear.last_id
    count = events_live.BATCH + 20
    on_both.publish(source_id, *posts(*map(str, range(count))))
    with listening(client, ready=False, Last_Event_ID=last) as ear:
        on_both.publish(source_id, *posts("the last"))
        assert titles(ear.hear(count + 1)) == [*map(str, range(count)), "the last"]


def test_a_reader_hears_only_of_sources_they_follow_and_of_themselves(on_both: Running) -> None:
    # H68
    stranger, theirs = another_reader(on_both)
    mine, db, now = on_both.source("https://mine.example/"), on_both.parts.db, on_both.parts.now()
    other = db.write_now(follow, stranger, "https://other.example/", now).source_id
    settle(on_both)
    with (
        listening(on_both.program(), "/api/live") as my_ear,
        listening(theirs, "/api/live?kinds=subscription.added,post.stored") as their_ear,
    ):
        db.write_now(follow, stranger, "https://third.example/", now)
        on_both.publish(mine, *posts("mine"))
        on_both.publish(other, *posts("theirs"))
        assert titles(my_ear.hear()) == ["mine"]
        subscribed, stored = their_ear.hear(2)
        assert (subscribed.event, stored.event) == ("subscription.added", "post.stored")
        assert subscribed.data["data"]["address"] == "https://third.example/"
        assert titles([stored]) == ["theirs"]
        last = my_ear.last_id
    on_both.publish(other, *posts("theirs too"))
    on_both.publish(mine, *posts("mine too"))
    with listening(on_both.program(), ready=False, Last_Event_ID=last) as ear:
        assert titles(ear.hear()) == ["mine too"]


def test_following_and_leaving_take_effect_at_once(on_both: Running) -> None:
    stranger, _ = another_reader(on_both)
    db, now = on_both.parts.db, on_both.parts.now()
    source_id = db.write_now(follow, stranger, "https://news.example/", now).source_id
    mine = on_both.source("https://mine.example/")
    with listening(on_both.program()) as ear:
        on_both.publish(source_id, *posts("not followed yet"))
        on_both.publish(mine, *posts("mine"))
        assert titles(ear.hear()) == ["mine"]
        db.write_now(follow, on_both.owner, "https://news.example/", now)
        on_both.publish(source_id, *posts("followed"))
        assert titles(ear.hear()) == ["followed"]
        db.write_now(unfollow, on_both.owner, source_id, now)
        on_both.publish(source_id, *posts("left"))
        on_both.publish(mine, *posts("mine again"))
        assert titles(ear.hear()) == ["mine again"]


def test_kinds_choose_and_unknown_ones_are_refused(on_both: Running) -> None:
    source_id, client = on_both.source(), on_both.program()
    with listening(client, "/api/live?kinds=source.failed,%20source.recovered") as ear:
        on_both.publish(source_id, *posts("1"))
        on_both.publish(source_id, status="failing", outcome="failed", error="gone", error_code="timed_out", facts=None)
        [told] = ear.hear()
        assert (told.event, told.data["data"]["error"]) == ("source.failed", "gone")
    answer = client.get("/api/live?kinds=post.stored,post.eaten")
    assert answer.status == 422
    assert "post.eaten" in answer.json()["detail"]


@pytest.mark.parametrize("id", ["x", "1", "1-2", "1-2-", "-1-2-3", "1-2-3-4", "f" * 50, "1-2-ffffffffffffffff", "é"])
def test_an_id_that_is_none_of_ours_is_refused(on_both: Running, id: str) -> None:
    sent = id.encode().decode("latin-1")
    answer = on_both.program().get("/api/live", Last_Event_ID=sent)
    assert (answer.status, answer.json()["code"]) == (422, "bad_cursor")


def test_an_id_from_before_what_is_kept_or_from_another_log_says_reset(store_url: str) -> None:
    clock = [utc_now()]
    with running(store_url, now=lambda: clock[0]) as headwater:
        source_id, client = headwater.source(), headwater.program()
        with listening(client) as ear:
            old = ear.last_id
        headwater.publish(source_id, *posts("lost"))
        settle(headwater)
        clock[0] += timedelta(days=8)
        with listening(client, ready=False, Last_Event_ID=old) as ear:
            [told] = ear.hear()
            assert told.event == "reset"
            headwater.publish(source_id, *posts("new"))
            assert titles(ear.hear()) == ["new"]
        xid, id, at = ear.last_id.split("-")
        beyond = f"{int(xid, 16) + 10**9:x}-{int(id, 16) + 10**9:x}-{at}"
        with listening(client, ready=False, Last_Event_ID=beyond) as ear:
            assert [told.event for told in ear.hear()] == ["reset"]


def test_two_servers_on_one_database_tell_the_same(store_url: str) -> None:
    with running(store_url) as one, running(store_url) as two:
        source_id = one.source()
        token = {"Authorization": f"Bearer {one.token()}"}
        with listening(Client(one.port, token)) as here, listening(Client(two.port, token)) as there:
            one.publish(source_id, *posts("a"))
            two.publish(source_id, *posts("b"))
            assert titles(here.hear(2)) == titles(there.hear(2)) == ["a", "b"]
            last = here.last_id
        two.publish(source_id, *posts("c"))
        with listening(Client(two.port, token), ready=False, Last_Event_ID=last) as moved:
            assert titles(moved.hear()) == ["c"]


def test_an_event_that_commits_late_is_told(postgres_url: str) -> None:
    # H82
    with running(postgres_url) as headwater:
        source_id = headwater.source()
        late = SOURCE_RETIRED(SourceFacts(source_id=source_id, address="late"), once="late")
        kinds = "/api/live?kinds=source.retired,post.stored"
        with listening(headwater.program(), kinds) as ear, headwater.parts.db.engine.connect() as slow:
            with slow.begin():
                outbox.append(slow, [late], utc_now())
                headwater.publish(source_id, *posts("early"))
            assert [told.event for told in ear.hear(2)] == ["source.retired", "post.stored"]


def test_whoever_reads_too_slowly_is_let_go_and_the_others_hear_everything(
    on_both: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_live, "MAX_WAITING_BYTES", 20_000)
    source_id, client = on_both.source(), on_both.program()
    count, at_once = 1600, 200
    heard: list[Told] = []
    with listening(client, small_buffer=True) as slow, listening(client) as quick:
        for start in range(0, count, at_once):
            part = [a_post(str(number), "t" * 5000) for number in range(start, start + at_once)]
            on_both.publish(source_id, *part)
            heard += quick.hear(at_once)
        got = [block for block in slow.blocks() if "data" in block]  # ends, because it was let go
        last = slow.last_id
    assert numbers(heard) == list(range(count))
    assert 0 < len(got) < count
    with listening(client, ready=False, Last_Event_ID=last) as back:
        assert numbers(back.hear(count - len(got))) == list(range(len(got), count))


def numbers(told: list[Told]) -> list[int]:
    return [int(one.data["data"]["source_post_id"]) for one in told]


def test_a_quiet_stream_shows_that_it_lives_and_ends_when_its_token_is_revoked(
    on_both: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # H66
    monkeypatch.setattr(api, "KEEP_ALIVE_SECONDS", 0.05)
    secret = on_both.token()
    with listening(Client(on_both.port, {"Authorization": f"Bearer {secret}"})) as ear:
        next(ear.blocks())
        assert ear.comments
        on_both.parts.db.write_now(tokens.revoke, "api", secret, on_both.parts.now())
        assert all("data" not in block for block in ear.blocks())


def test_each_user_has_so_many_connections_and_gets_them_back(
    on_both: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MOST_OF_A_READER", 2)
    client = on_both.program()
    with listening(client), listening(client):
        answer = client.get("/api/live")
        assert (answer.status, answer.headers["retry-after"]) == (429, "30")
        _, another = another_reader(on_both)
        with listening(another):
            assert "headwater_live_connections 3.0" in client.get("/metrics").text
            monkeypatch.setattr(api, "MOST_IN_ALL", 3)
            assert another_reader(on_both, "third")[1].get("/api/live").status == 503
    wait_until(lambda: "headwater_live_connections 0.0" in client.get("/metrics").text)


def test_nobody_listens_without_credentials(on_both: Running) -> None:
    assert on_both.stranger.get("/api/live").status == 401
