"""The benchmark of isolation: both ways find the same, and the policies do not keep queries from their indexes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

import tenant_cost as tenants
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.people import deliveries
from headwater.store.posts import search, stream
from headwater.store.sources import leases
from headwater.store.sql import Prepared
from headwater.store.stories import folded
from support.services import service_url

TENANTS, POSTS = 20, 50_000
# Tables that grow with posts, tenants or events. None of them is read as a whole for one page.
LARGE = (
    "posts", "hot_posts", "subscriptions", "post_states", "post_words", "story_members", "event_outbox",
    "webhook_deliveries",
)  # fmt: skip


@pytest.fixture(scope="module")
def filled() -> Iterator[str]:
    with tenants.database(service_url("postgres")) as url:
        tenants.fill(url, TENANTS, POSTS)
        yield url


@pytest.mark.parametrize("name", tenants.WORK)
def test_both_ways_find_the_same(filled: str, name: str) -> None:
    with tenants.ways(filled) as both:
        spent = tenants.measure(both, tenants.WORK[name], TENANTS, calls=3)
        assert tenants.WORK[name](both[0].db, tenants.reader_of(3), "w1"), "there is nothing to find"
    assert {way: len(times) for way, times in spent.calls.items()} == {"with": 3, "without": 3}


def plan(conn: Connection, _reader: Reader, statement: Prepared[Any], given: dict[str, Any]) -> str:
    return "\n".join(line for (line,) in statement.plan(conn, **given))


OWN = {"tenant_id": 3, "user_id": 3, "limit": 40, "threshold": 0.0}
AFTER = {"created_at": tenants.NOW, "post_id": 2**62, "id": 2**62}
QUERIES: dict[str, tuple[Prepared[Any], dict[str, Any]]] = {
    "stream page": (stream.page_statement("hot_posts"), OWN),
    "older page": (stream.page_statement("posts", after=True), {**OWN, **AFTER}),
    "folded page": (stream.page_statement("hot_posts", fold="stories"), OWN),
    "older folded page": (stream.page_statement("posts", fold="stories", after=True), {**OWN, **AFTER}),
    "unread page": (stream.page_statement("hot_posts", unread=True, fold="stories"), OWN),
    "page of a folder": (stream.page_statement("hot_posts", folder=True, fold="repeats"), {**OWN, "folder": "x"}),
    "what stories are shown as": (folded._heads("stories", False, False), {**OWN, "ids": [1, 2], "most": 9}),
    "news of stories": (folded._newest("stories", news=True), {**OWN, "ids": [1, 2], "most": 9}),
    "one source": (stream.page_statement("posts", source=True), {**OWN, "source_id": 22}),
    "starred": (stream.page_statement("posts", starred=True), OWN),
    "search": (
        search._newest,
        {**OWN, **AFTER, "query": "'w19000'", "spans": " | ".join(f"'{w}'" for w in search.span_words(tenants.NOW))},
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_policies_use_indexes(filled: str, name: str) -> None:  # E10
    statement, given = QUERIES[name]
    with tenants.ways(filled) as (bound, _):
        found = bound.db.read_now(plan, tenants.reader_of(3), statement, given)
    assert "InitPlan" in found  # the policy is evaluated once, not for every row
    assert re.findall(rf"Seq Scan on ({'|'.join(LARGE)})\b", found) == [], found


def test_the_claim_of_webhooks_uses_its_indexes(filled: str) -> None:
    with tenants.ways(filled) as (bound, _):
        given = {"ids": list(range(1, 20)), "most": 20}
        found = bound.db.read_now(lambda conn: "\n".join(line for (line,) in deliveries._waiting.plan(conn, **given)))
    assert "InitPlan" in found
    assert "Seq Scan on webhook_deliveries" not in found, found


def test_a_claim_uses_its_index(filled: str) -> None:
    def explained(conn: Connection, db: Database) -> str:
        now = tenants.NOW
        return "\n".join(line for (line,) in leases._select_due.plan(conn, now, now, now, 20))

    with tenants.ways(filled) as (bound, _):
        found = bound.db.read_now(explained, bound.db)
    assert "Seq Scan on sources" not in found, found
