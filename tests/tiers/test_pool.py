"""The pool and the tiers in the store and on the terminal, on both databases (A1, A7)."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text, update
from typer.testing import CliRunner

from headwater.cli.commands import program
from headwater.errors import BadDocument
from headwater.follow import add as following
from headwater.follow import pool as pooling
from headwater.follow.pool import BY_NAME, Candidate
from headwater.model import Reader
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.sources import leases, pool
from headwater.store.sources.pool import SourceRank
from headwater.store.tables import sources as sources_table
from support.posts import LEASE, NO_GAP, NOON, a_post, a_source, visited

LATER = NOON + timedelta(hours=1)
CANDIDATES = [
    Candidate("https://busy.example/feed", "high", ("news", "world")),
    Candidate("https://quiet.example/feed", "low", ("science",)),
]


def everything(conn: Connection) -> list[tuple[Any, ...]]:
    tables = ("sources", "subscriptions", "event_outbox")
    return [tuple(row) for name in tables for row in conn.execute(text(f"SELECT * FROM {name} ORDER BY 1, 2, 3"))]


def standing_of(conn: Connection, source_id: int) -> SourceRank:
    found = pool.rank_of(conn, source_id)
    assert found is not None
    return found


def set_average(conn: Connection, source_id: int, average: float) -> None:
    conn.execute(update(sources_table).where(sources_table.c.id == source_id).values(avg_valid_posts=average))


def test_the_starter_pool_has_200_different_communities_with_tier_and_categories() -> None:  # A1
    found = pooling.read(pooling.starter())
    assert len({one.address for one in found}) == len(found) == 200
    assert all(one.address.startswith("https://www.reddit.com/r/") and one.categories for one in found)
    assert set(Counter(one.tier for one in found)) == set(BY_NAME)
    assert len({category for one in found for category in one.categories}) >= 10


def test_the_starter_pool_is_imported_whole_and_importing_it_twice_changes_nothing(
    db: Database, owner: Reader
) -> None:  # A1
    candidates = pooling.read(pooling.starter())
    assert db.write_now(pooling.bring_in, owner, candidates, NOON) == (200, 0, {})
    before = db.read_now(everything)
    assert db.write_now(pooling.bring_in, owner, candidates, LATER) == (0, 200, {})
    assert db.read_now(everything) == before
    found = {one.address: one for one in db.read_now(pool.pooled)}
    for candidate in candidates:
        one = found[candidate.address]
        tier = BY_NAME[candidate.tier]
        assert (one.tier, one.interval_seconds) == (tier.name, tier.interval_seconds)
        assert (tuple(one.categories), one.active, one.pooled_at) == (candidate.categories, True, NOON)


def test_importing_again_does_not_follow_what_was_given_up(db: Database, owner: Reader) -> None:  # A1
    db.write_now(pooling.bring_in, owner, CANDIDATES, NOON)
    [busy, _] = db.read_now(pool.pooled)
    db.write_now(following.unfollow, owner, busy.source_id, NOON)
    assert db.write_now(pooling.bring_in, owner, CANDIDATES, LATER).already == 2
    assert busy.source_id not in db.read_now(sources.followed_ids, owner)


def test_an_address_that_cannot_be_used_does_not_stop_the_others(db: Database, owner: Reader) -> None:
    wrong = Candidate("ftp://files.example/", "low", ())
    done = db.write_now(pooling.bring_in, owner, [wrong, *CANDIDATES], NOON)
    assert (done.added, list(done.refused)) == (2, [wrong.address])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"name,tier\n", "first line"),
        (b"", "first line"),
        (b"source,tier,categories\nr/a,low\n", "Line 2 has 2 values"),
        (b"source,tier,categories\nr/a,low,x\nr/b,top,x\n", "Line 3: top is not a tier"),
        (b'source,tier,categories\n"r/a"b,low,x\n', "Line 2 is not CSV"),
        (b"\xff\xfe", "UTF-8"),
        (b'[{"name": "r/a", "tier": "low"}, {"tier": "low"}]', "missing required field `name`"),
        (b'[{"name": "r/a", "tier": "low"}, {"name": "r/b", "tier": "top"}]', "Entry 2: top is not a tier"),
        (b'[{"name": "r/a", "tier": "low", "is_active": "yes"}]', "Expected `bool`.*is_active"),
        (b'[{"name": "r/a", "tier": "low", "quality_score": 3}]', "quality_score"),
        (b'{"pool": []}', "communities"),
        (b"[" * 100_000, "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_read_says_where(document: bytes, words: str) -> None:
    with pytest.raises(BadDocument, match=words):
        pooling.read(document)


def test_each_visit_feeds_the_average_and_the_quality(db: Database, owner: Reader) -> None:  # A7
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        recent = [a_post(str(number), created_at=NOON - timedelta(hours=1)) for number in range(16)]
        old = [a_post("old", created_at=NOON - timedelta(days=3))]
        visited(conn, source_id, recent + old)
        assert (standing_of(conn, source_id).average, standing_of(conn, source_id).quality) == (16, 1)
        visited(conn, source_id, [], LATER, outcome="unchanged")
        assert standing_of(conn, source_id).average == 16, "the posts of the last day are the same"
        next_week = NOON + timedelta(days=7)
        visited(conn, source_id, [], next_week, outcome="unchanged")
        assert standing_of(conn, source_id).average == 14, "an eighth of the way to nothing"

    db.write_now(work)


def test_a_visit_that_failed_says_nothing_about_how_much_is_published(db: Database, owner: Reader) -> None:  # A7
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1")])
        failed = {"outcome": "failed", "status": "failing", "error": "Too slow.", "facts": None}
        visited(conn, source_id, [], NOON + timedelta(days=2), **failed)
        found = standing_of(conn, source_id)
        assert (found.average, found.quality) == (1, 0.875)
        visited(conn, source_id, [], NOON + timedelta(days=3), **failed, blames_source=False)
        assert standing_of(conn, source_id).quality == 0.875, "trouble of our own network is not the source's"

    db.write_now(work)


def test_the_average_does_not_depend_on_how_often_a_source_is_visited(db: Database, owner: Reader) -> None:  # A7
    """Else a tier would undo itself: whoever is visited more often has fewer new posts at each visit."""

    def work(conn: Connection) -> None:
        often, rarely = (a_source(conn, owner, f"https://{name}.example/feed") for name in ("often", "rarely"))
        for hour in range(1, 24 * 6 + 1):
            now = NOON + timedelta(hours=hour)
            published = [a_post(str(one), created_at=NOON + timedelta(hours=one)) for one in range(hour)]
            if hour % 2 == 0:
                visited(conn, often, published[-2:], now)
            if hour % 24 == 0:
                visited(conn, rarely, published[-24:], now)
        assert standing_of(conn, often).average == pytest.approx(24, abs=1)
        assert standing_of(conn, rarely).average == pytest.approx(24, abs=1)

    db.write_now(work)


def test_tiers_are_shown_then_applied_and_applying_twice_changes_nothing(db: Database, owner: Reader) -> None:  # A7
    def work(conn: Connection) -> None:
        busy, quiet, unknown = (a_source(conn, owner, f"https://{name}.example/feed") for name in "abc")
        set_average(conn, busy, 25)
        set_average(conn, quiet, 2)
        shown = {one.standing.source_id: one for one in pooling.assignments(conn)}
        assert [shown[one].changes for one in (busy, quiet, unknown)] == [True, True, False]
        assert standing_of(conn, busy).interval_seconds is None, "showing applies nothing"
        assert {one.standing.source_id for one in pooling.apply_tiers(conn)} == {busy, quiet}
        assert (standing_of(conn, busy).tier, standing_of(conn, busy).interval_seconds) == ("high", 7200)
        assert (standing_of(conn, quiet).tier, standing_of(conn, quiet).interval_seconds) == ("low", 86400)
        assert (standing_of(conn, unknown).tier, standing_of(conn, unknown).interval_seconds) == (None, None)
        assert pooling.apply_tiers(conn) == []
        [due] = leases.claim_named(conn, [busy], now=LATER, lease="x", lease_for=LEASE, gap=NO_GAP)
        assert due.interval_seconds == 7200

    db.write_now(work)


def test_a_pin_holds_until_it_is_taken_away(db: Database, owner: Reader) -> None:  # A7
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        set_average(conn, source_id, 1)
        pooling.pin_tier(conn, source_id, "high")
        assert (standing_of(conn, source_id).tier, standing_of(conn, source_id).interval_seconds) == ("high", 7200)
        assert pooling.apply_tiers(conn) == []
        pooling.pin_tier(conn, source_id, None)
        assert standing_of(conn, source_id).tier == "high", "until tiers are applied"
        pooling.apply_tiers(conn)
        assert standing_of(conn, source_id).tier == "low"

    db.write_now(work)


def test_a_community_is_read_as_its_tier_says_and_keeps_its_other_settings(db: Database, owner: Reader) -> None:  # A7
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        mine = update(sources_table).where(sources_table.c.id == source_id)
        conn.execute(mine.values(kind="reddit", settings={"comments": True}, avg_valid_posts=12))
        pooling.apply_tiers(conn)
        kept = conn.execute(select(sources_table.c.settings)).scalar_one()
        assert kept == {"comments": True, "sort": "top", "time_filter": "week", "limit": 80}

    db.write_now(work)


def test_quiet_sources_of_the_pool_are_visited_again_the_longest_unseen_first(
    db: Database, owner: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:  # A6
    monkeypatch.setattr(pool, "MOST_REVISITS", 2)
    night = NOON + timedelta(hours=12)

    def work(conn: Connection) -> None:
        unseen = {name: a_source(conn, owner, f"https://{name}.example/") for name in ("a", "b", "c")}
        others = {name: a_source(conn, owner, f"https://{name}.example/") for name in ("busy", "fresh", "down", "mine")}
        for place, source_id in enumerate(list(unseen.values()) + list(others.values())):
            tomorrow = {"next_check_at": NOON + timedelta(days=1)}
            visited(conn, source_id, [a_post("1")], NOON - timedelta(minutes=place), **tomorrow)
            pool.enter(conn, source_id, [], NOON)
        set_average(conn, others["busy"], 50)
        later = {"next_check_at": NOON + timedelta(days=1)}
        visited(conn, others["fresh"], [], NOON + timedelta(hours=5), outcome="unchanged", **later)
        waits = {"waits_for": "down.example asked for a pause", **later}
        visited(conn, others["down"], [], NOON, outcome="failed", status="failing", error="x", facts=None, **waits)
        conn.execute(update(sources_table).where(sources_table.c.id == others["mine"]).values(pooled_at=None))
        assert pool.revisit_quiet(conn, night) == 2
        assert leases.due_ids(conn, night) == [unseen["b"], unseen["c"]]
        assert pool.revisit_quiet(conn, night) == 1
        assert pool.revisit_quiet(conn, night) == 0

    db.write_now(work)


@pytest.mark.parametrize(
    ("hours", "result", "hits"),
    [
        (9, {"outcome": "empty", "status": "empty"}, 1),
        (9, {"outcome": "failed", "status": "failing", "error": "x", "facts": None}, 1),
        (9, {"outcome": "failed", "error": "x", "facts": None, "blames_source": False}, 0),
        (7, {"outcome": "failed", "status": "failing", "error": "x", "facts": None}, 0),
        (9, {"outcome": "unchanged"}, 0),
    ],
)
def test_a_quiet_source_that_is_visited_again_and_is_empty_or_fails_counts_an_empty_hit(
    db: Database, owner: Reader, hours: int, result: dict[str, Any], hits: int
) -> None:  # A6
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner, "https://quiet.example/")
        tomorrow = {"next_check_at": NOON + timedelta(days=1)}
        visited(conn, source_id, [a_post("1")], NOON, **tomorrow)
        pool.enter(conn, source_id, [], NOON)
        again = NOON + timedelta(hours=hours)
        assert pool.revisit_quiet(conn, again) == (hours > 8)
        visited(conn, source_id, [], again, **tomorrow, **result)
        assert conn.execute(select(sources_table.c.empty_hit)).scalar_one() == hits

    db.write_now(work)


def test_the_tiers_of_the_pool_are_applied_as_time_goes_by_and_others_are_left_alone(
    db: Database, owner: Reader
) -> None:  # A7
    def work(conn: Connection) -> None:
        in_pool, mine = a_source(conn, owner), a_source(conn, owner, "https://mine.example/")
        pool.enter(conn, in_pool, [], NOON)
        set_average(conn, in_pool, 30)
        set_average(conn, mine, 30)
        assert [one.standing.source_id for one in pooling.apply_pool_tiers(conn)] == [in_pool]
        assert pooling.apply_pool_tiers(conn) == []

    db.write_now(work)


def test_the_pool_and_the_tiers_on_the_terminal(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # A1, A7, A13
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    listed = tmp_path / "pool.csv"
    listed.write_text("source,tier,categories\nhttps://busy.example/feed,high,news\nhttps://b.example/,low,science\n")

    def run(*words: str) -> list[dict[str, Any]]:
        ran = CliRunner().invoke(program(), [*words, "--json"], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return [json.loads(line) for line in ran.output.splitlines()]

    assert run("pool", "import", str(listed)) == [{"added": 2, "already": 0, "refused": {}, "inactive": 0}]
    assert run("pool", "import", str(listed)) == [{"added": 0, "already": 2, "refused": {}, "inactive": 0}]
    assert [one["address"] for one in run("pool", "list", "--tier", "high")] == ["https://busy.example/feed"]
    assert [one["tier"] for one in run("pool", "list", "--category", "science")] == ["low"]
    assert run("crawl", "--tier", "medium") == []
    assert CliRunner().invoke(program(), ["crawl", "--tier", "top"]).exit_code != 0
    [pinned] = run("tiers", "pin", "b.example", "medium")
    assert pinned["pinned_tier"] == "medium"
    assert {one["computed_tier"]: one["changes"] for one in run("tiers", "show")} == {"high": False, "medium": False}
    assert run("tiers", "apply") == []
    said = CliRunner().invoke(program(), ["tiers"], catch_exceptions=False).output
    assert "medium (pinned)" in said
    assert "2 sources, 0 would change." in said


def test_the_pool_leaves_and_enters_as_a_json_file(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # A1, A15
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    listed, left = tmp_path / "community_expansion.json", tmp_path / "pool.json"
    found = [
        {"name": "https://b.example/feed", "tier": "low", "categories": [], "quality_score": None, "is_active": True},
        {"name": "r/webdev", "tier": "high", "categories": ["web", "code"], "quality_score": 0.8, "is_active": True},
        {"name": "r/gone", "tier": "low", "is_active": False},
    ]
    listed.write_text(json.dumps({"communities": found, "total": 3}))
    said = CliRunner().invoke(program(), ["pool", "import", str(listed)], catch_exceptions=False)
    assert said.output == (
        "2 added, 0 already in the pool, 0 refused. 1 are not active in the list and were left out.\n"
    )
    assert CliRunner().invoke(program(), ["pool", "export", str(left)], catch_exceptions=False).exit_code == 0
    assert json.loads(left.read_bytes()) == found[:2]
    assert CliRunner().invoke(program(), ["pool", "export"], catch_exceptions=False).stdout_bytes == left.read_bytes()
    again = CliRunner().invoke(program(), ["pool", "import", str(left)], catch_exceptions=False)
    assert again.output == "0 added, 2 already in the pool, 0 refused.\n"
    refused = CliRunner().invoke(program(), ["pool", "export", str(tmp_path)])
    assert refused.exit_code != 0
