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
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.posts import search
from support.log import consume_all
from support.posts import NOON, a_post, a_source, visited
from support.services import as_owner

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


# Words, by the post that has all of them; "" is none.
FOUND = {
    "1": ["bitcoin", "HASH rate"],
    "2": ["比特币", "价格", "币", "涨", "矿"],
    "3": ["café", "esp*", 'cake"'],
    "4": ["コイン"],
    "5": ["цены"],
    "": ["bitcoin espresso", "収入", "secretword", "cake' OR 1=1 --", "b:1 | c"],
}


@pytest.mark.parametrize(("words", "id"), [(words, id) for id, found in FOUND.items() for words in found])
def test_all_words_have_to_be_there_in_any_script(filled: Database, owner: Reader, words: str, id: str) -> None:
    assert filled.read_now(found, owner, words) == ([id] if id else [])


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


@pytest.mark.parametrize("limit", [1, 2, 7, 40, 100])
def test_what_was_published_last_comes_first_whenever_it_was_stored(db: Database, owner: Reader, limit: int) -> None:
    chance = random.Random(limit)
    times = [NOON - timedelta(hours=hour) for hour in range(50)]
    times += [NOON - timedelta(days=25_000, microseconds=chance.randrange(3)) for _ in range(10)]  # before 1970
    chance.shuffle(times)  # among them archives: stored late and published long ago
    source_id = db.write_now(a_source, owner)
    posts = [
        a_post(str(number), "Same word" if number % 3 else "Other", created_at=time)
        for number, time in enumerate(times)
    ]
    for start in range(0, 60, 6):
        db.write_now(visited, source_id, posts[start : start + 6], NOON + timedelta(hours=start))
        index_all(db)
    everything = [one for one in posts if one.title == "Same word"]
    pages: list[search.Match] = []
    while page := db.read_now(search.find, owner, "same word", limit=limit, after=pages[-1] if pages else None):
        pages += page
    assert pages == sorted(pages, key=lambda one: (one.created_at, one.id), reverse=True)
    assert sorted(one.created_at for one in pages) == sorted(one.created_at for one in everything)
    assert len({one.id for one in pages}) == len(pages)


def test_a_search_neither_sorts_nor_scans_all_posts(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    asked = {"query": '"x"', "tenant_id": 1, "user_id": 1, "created_at": NOON, "id": 1}
    plan = db.read_now(lambda conn: search._newest.plan(conn, **asked, lowest=1, highest=2, limit=1))
    db.close()
    steps = [str(step[-1]) for step in plan]
    assert not [step for step in steps if "TEMP B-TREE" in step or step.split()[:2] == ["SCAN", "p"]], steps


def test_posts_of_an_older_version_are_found_in_their_order_after_an_upgrade_and_back(
    db: Database, owner: Reader
) -> None:
    days = (3, 1, 2, 25_000, 400)
    posts = [a_post(str(day), "Same word", created_at=NOON - timedelta(days=day)) for day in days]
    db.write_now(lambda conn: visited(conn, a_source(conn, owner), posts))
    index_all(db)
    with as_owner(db) as owning:
        migrate.downgrade(owning, "0027")
    if db.is_sqlite:
        words = "SELECT rowid FROM post_words WHERE post_words MATCH 'same' ORDER BY rowid"
        assert db.read_now(lambda conn: conn.exec_driver_sql(words).scalars().all()) == [1, 2, 3, 4, 5]
    else:
        words = "SELECT count(*) FROM post_words WHERE strpos(words::text, '#') > 0"
        assert db.read_now(lambda conn: conn.exec_driver_sql(words).scalar_one()) == 0
    with as_owner(db) as owning:
        migrate.upgrade(owning)
    assert db.read_now(found, owner, "same word") == ["1", "2", "3", "400", "25000"]
    edited = a_post("2", "Other", created_at=posts[2].created_at)
    db.write_now(lambda conn: visited(conn, a_source(conn, owner), [edited]))
    index_all(db)
    assert db.read_now(found, owner, "same word") == ["1", "3", "400", "25000"]


def test_as_much_is_searched_next_as_should_have_what_is_missing() -> None:
    assert search.next_window(1000, found=10, limit=50) == 5000
    assert search.next_window(1000, found=0, limit=50) == 16_000
    assert search.next_window(1000, found=1, limit=50) == 16_000
    assert search.next_window(1000, found=49, limit=50) == 1000


def test_no_words_of_a_person_ask_for_a_span_of_time() -> None:
    for word in search.span_words(NOON):
        assert word not in search.question(word, "postgresql")


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
