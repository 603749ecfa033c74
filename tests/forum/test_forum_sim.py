"""The simulated forum, and that all of it can be read."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.error import HTTPError

import pytest

from headwater.model import Item, Page, Post, Request, Response, Source, SourceState
from headwater.sim.forum import serving
from headwater.sim.forum_world import ForumHabits, SimForum, SimForumPost, simulated
from headwater.sim.serving import Faults
from headwater.sources import forum
from headwater.text import plain

BOARDS = {"mining": ForumHabits(threads_per_day=30), "kuangji": ForumHabits(lang="zh", threads_per_day=30)}
WAYS = {"pages": ("/bbs/forum-{}-1.html", {}), "json": ("/talk/c/x/{}", {"profile": "discourse"})}


@pytest.fixture
def sim() -> Iterator[SimForum]:
    world = simulated(BOARDS, seed=3, lasts=timedelta(days=3))
    world.clock.advance(timedelta(days=1, hours=14))
    with serving(world) as served:
        yield served


def fetched(request: Request, now: datetime) -> Response:
    with urllib.request.urlopen(request.url) as answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(request.url, answer.status, headers, answer.read(), now)


def list_pages(sim: SimForum, source: Source) -> Iterator[Page]:
    request: Request | None = forum.first(source, SourceState())
    while request:
        page = forum.read(source, SourceState(), fetched(request, sim.clock.now()))
        yield page
        request = page.next


def thread_posts(sim: SimForum, source: Source, item: Item) -> Iterator[Post]:
    request: Request | None = Request(item.url)
    while request:
        page = forum.read_item(source, item, fetched(request, sim.clock.now()))
        yield from page.posts
        request = page.next


def there(sim: SimForum, board: str) -> dict[int, list[SimForumPost]]:
    now = sim.clock.now()
    return {thread.id: thread.posts_at(now) for thread in sim.listed(board, now)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("number", "board"), [(1, "mining"), (2, "kuangji")])
def test_every_post_of_a_board_is_read(sim: SimForum, way: str, number: int, board: str) -> None:  # B5
    path, settings = WAYS[way]
    source = Source(1, "forum", sim.url + path.format(number), settings=settings)
    items = {item.id: item for page in list_pages(sim, source) for item in page.items}
    read = {id: list(thread_posts(sim, source, item)) for id, item in items.items()}
    expected = there(sim, board)
    assert {int(id): len(posts) for id, posts in read.items()} == {id: len(posts) for id, posts in expected.items()}
    assert [int(id) for id, item in items.items() if item.pinned] == [
        t.id for t in sim.listed(board, sim.clock.now()) if t.pinned
    ]
    minute = timedelta(minutes=1)
    for id, posts in expected.items():
        for post, got in zip(posts, read[str(id)], strict=True):
            version = post.version_at(sim.clock.now())
            assert got.author == post.author
            assert " ".join(version.text.split()) in plain(got.content)
            assert post.created_at - minute < got.created_at <= post.created_at
            assert [image.url for image in got.images] == (
                [f"{sim.url}/pictures/{post.image}.png"] if post.image else []
            )


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_that_grew_has_another_mark_and_stands_at_the_top(sim: SimForum, way: str) -> None:
    path, settings = WAYS[way]
    source = Source(1, "forum", sim.url + path.format(1), settings=settings)
    before = {item.id: item.mark for page in list_pages(sim, source) for item in page.items}
    sizes = {id: [post.id for post in posts] for id, posts in there(sim, "mining").items()}
    sim.clock.advance(timedelta(hours=2))
    after = [item for page in list_pages(sim, source) for item in page.items]
    changed = {item.id for item in after if before.get(item.id) != item.mark}
    now = there(sim, "mining")
    grown = {str(id) for id, posts in now.items() if sizes.get(id) != [post.id for post in posts]}
    assert grown
    assert changed == grown
    last = [max(post.created_at for post in now[int(item.id)]) for item in after if not item.pinned]
    assert last == sorted(last, reverse=True)


def test_the_seed_decides_everything() -> None:
    def world(seed: int) -> SimForum:
        return simulated(BOARDS, seed=seed, lasts=timedelta(days=1))

    assert world(1).threads == world(1).threads
    assert world(1).threads != world(2).threads


def test_it_has_what_forums_have() -> None:
    world = simulated(BOARDS, seed=1, lasts=timedelta(days=5))
    posts = [post for thread in world.threads.values() for post in thread.posts]
    assert len({post.id for post in posts}) == len(posts)
    assert any(len(post.versions) > 1 for post in posts)
    assert any(post.deleted_at for post in posts)
    assert any(post.image for post in posts)
    assert any(post.answers for post in posts)
    assert any(len(thread.posts) > 25 for thread in world.threads.values())


def test_an_unchanged_page_is_not_sent_again(sim: SimForum) -> None:
    url = f"{sim.url}/bbs/forum-1-1.html"
    with urllib.request.urlopen(url) as answer:
        tag = answer.headers["ETag"]
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers={"If-None-Match": tag}))
    refused.value.close()
    assert refused.value.code == 304


def test_pictures_are_pngs(sim: SimForum) -> None:
    with urllib.request.urlopen(f"{sim.url}/pictures/7.png") as answer:
        assert answer.headers["Content-Type"] == "image/png"
        assert answer.read().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(
    "path", ["/nope", "/bbs/forum-9-1.html", "/bbs/thread-9-1-1.html", "/talk/t/9.json", "/talk/t/101.json?page=99"]
)
def test_what_is_not_there_is_said_not_to_be(sim: SimForum, path: str) -> None:
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(sim.url + path)
    refused.value.close()
    assert refused.value.code == 404


def test_faults_are_answers_too() -> None:
    world = simulated(BOARDS, seed=1, lasts=timedelta(hours=5), faults=Faults(unavailable=1.0))
    with serving(world) as served, pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(f"{served.url}/bbs/forum-1-1.html")
    refused.value.close()
    assert refused.value.code == 503
    assert [asked.status for asked in world.asked] == [503]


def test_both_ways_in_are_recognised_and_the_index_names_the_boards(sim: SimForum) -> None:
    for path, settings in (
        ("/bbs/forum-1-1.html", {"profile": "discuz"}),
        ("/talk/c/mining/1", {"profile": "discourse"}),
    ):
        source = Source(1, "forum", sim.url + path)
        assert forum.recognise(source, fetched(Request(source.address), sim.clock.now())) == settings
