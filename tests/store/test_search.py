"""Search: every script, all words, only what one may see, and the text as it is now."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from headwater.consumers.search import CONSUMER
from headwater.errors import BadInput
from headwater.follow.add import unfollow
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.posts import search
from support.log import consume_all
from support.posts import NOON, a_post, a_source, visited

POSTS = [
    a_post("1", "Bitcoin mining difficulty rises", content="<p>The network's <b>hash</b>&nbsp;rate is up.</p>"),
    a_post("2", "比特币价格上涨", content="<p>矿工收入增加</p>"),
    a_post("3", "Café prices in Zürich", content="<p>Espresso &amp; cake</p>"),
    a_post("4", "ビットコインの価格", content="<a href='https://news.example/secretword'>リンク</a>"),
    a_post("5", "Цены на нефть", content="ok"),
]


def index_all(db: Database) -> None:
    consume_all(db, CONSUMER)


def found(conn: Connection, owner: Reader, words: str) -> list[str]:
    ids = [one.id for one in search.find(conn, owner, words)]
    titles = {row[0]: row[1] for row in conn.exec_driver_sql("SELECT id, source_post_id FROM posts").all()}
    return [titles[id] for id in ids]


@pytest.fixture
def filled(db: Database, owner: Reader) -> Database:
    db.write_now(lambda conn: visited(conn, a_source(conn, owner), POSTS))
    index_all(db)
    return db


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("bitcoin", ["1"]),
        ("HASH rate", ["1"]),
        ("bitcoin espresso", []),
        ("比特币", ["2"]),
        ("价格", ["2"]),
        ("币", ["2"]),
        ("涨", ["2"]),
        ("矿", ["2"]),
        ("収入", []),
        ("コイン", ["4"]),
        ("café", ["3"]),
        ("esp*", ["3"]),
        ("цены", ["5"]),
        ("secretword", []),
        ("cake' OR 1=1 --", []),
        ('cake"', ["3"]),
        ("b:1 | c", []),
    ],
)
def test_all_words_have_to_be_there_in_any_script(filled: Database, owner: Reader, words: str, ids: list[str]) -> None:
    assert filled.read_now(found, owner, words) == ids


@pytest.mark.parametrize("words", ["", "  ", "!?", "_", " ".join("abcdefghijklmnopqrstuvwxyz")])
def test_a_question_without_words_or_with_too_many_is_bad_input(filled: Database, owner: Reader, words: str) -> None:
    with pytest.raises(BadInput):
        filled.read_now(search.find, owner, words)


def test_an_edited_post_is_found_by_its_present_words_only(filled: Database, owner: Reader) -> None:
    source_id = filled.write_now(a_source, owner)
    for hour, title in enumerate(("Ether", "Dogecoin", "Litecoin"), 1):
        filled.write_now(visited, source_id, [a_post("1", title)], NOON + timedelta(hours=hour))
        if title != "Dogecoin":
            index_all(filled)
    for words, ids in (("mining", []), ("ether", []), ("dogecoin", []), ("litecoin", ["1"])):
        assert filled.read_now(found, owner, words) == ids, words


def test_newer_posts_come_first_and_pages_follow_each_other(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    db.write_now(visited, source_id, [a_post(str(number), f"Same word {number}") for number in range(10)])
    index_all(db)
    first = db.read_now(search.find, owner, "same word", limit=4)
    second = db.read_now(search.find, owner, "same word", limit=40, after=first[-1])
    assert first + second == sorted(first + second, reverse=True)
    assert len(first + second) == 10


@pytest.mark.parametrize("many", [3, 1000])
@pytest.mark.parametrize("at_once", [2, 500])
def test_what_was_published_last_comes_first_whenever_it_was_stored(
    db: Database, owner: Reader, monkeypatch: pytest.MonkeyPatch, many: int, at_once: int
) -> None:
    monkeypatch.setattr(search, "FEWEST_STORED", many)
    monkeypatch.setattr(search, "AT_ONCE", at_once)
    monkeypatch.setattr(search, "MOST_STEPS", 3)
    chance = random.Random(many)
    hours = list(range(60))
    chance.shuffle(hours)  # among them archives: stored late and published long ago
    source_id = db.write_now(a_source, owner)
    posts = [
        a_post(str(hour), "Same word" if hour % 3 else "Other", created_at=NOON - timedelta(hours=hour))
        for hour in hours
    ]
    for start in range(0, 60, 6):
        db.write_now(visited, source_id, posts[start : start + 6], NOON + timedelta(hours=start))
    index_all(db)
    everything = db.read_now(search.find, owner, "same word", limit=100)
    assert [one.created_at for one in everything] == sorted((one.created_at for one in everything), reverse=True)
    assert len(everything) == 40
    pages = []
    while page := db.read_now(search.find, owner, "same word", limit=7, after=pages[-1] if pages else None):
        pages += page
    assert pages == everything


def test_neither_step_of_a_search_sorts_or_scans_all_posts(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    asked = {"query": '"x"', "tenant_id": 1, "user_id": 1, "created_at": NOON, "id": 1}
    plans = db.read_now(
        lambda conn: [
            search._last_stored.plan(conn, **asked, limit=1),
            search._stored_earlier.plan(conn, **asked, since=NOON, stored_before=1, limit=1),
            search._those_matching.plan(conn, **asked, ids=[1]),
        ]
    )
    db.close()
    steps = [str(step[-1]) for plan in plans for step in plan]
    assert not [step for step in steps if "TEMP B-TREE" in step or step.split()[:2] == ["SCAN", "p"]], steps
    assert any("ix_posts_stream" in step for step in steps)


def test_only_what_one_follows_is_found(filled: Database, owner: Reader) -> None:
    filled.write_now(lambda conn: unfollow(conn, owner, a_source(conn, owner), NOON))
    assert filled.read_now(search.find, owner, "bitcoin") == []


def test_indexing_the_same_events_again_changes_nothing(filled: Database, owner: Reader) -> None:
    filled.write_now(lambda conn: conn.exec_driver_sql("UPDATE consumer_cursors SET id = 0, xid = 0"))
    index_all(filled)
    assert filled.read_now(found, owner, "bitcoin") == ["1"]


def test_brackets_and_entities_in_a_title_are_text_and_in_the_content_are_not() -> None:
    words = search.searchable("if a < b", '<p title="x">then &lt;c&gt; &amp; d</p> e > f').split()
    assert words == ["if", "a", "<", "b", "then", "c", "d", "e", ">", "f"]


@pytest.mark.parametrize("sign", ["\u0e01", "\u0ec0", "\u3042", "\u30f3", "\u3400", "\u4e00", "\u9fa5", "\U00020000"])
def test_signs_are_paired_among_words_of_every_other_script(sign: str) -> None:
    others = "Zoë – “Жизнь” Ωραία 😀 한글"
    assert search.searchable(f"{others} {sign}{sign}", "").split() == [*others.split(), sign * 2, sign]
    assert search.searchable(others, "") == f"{others} "
