"""The decisions of a walk: lists that grow, are bumped and are interrupted at any moment lose nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.crawl.visit import walk
from headwater.crawl.visit.walk import in_order, site_and_board
from headwater.errors import ReadFailed, StatusRefused
from headwater.model import Facts, Item, Page, Post, Request, Source
from headwater.store.visits.items import KnownItem
from support.posts import NOON


def item(id: str = "1", **given: object) -> KnownItem:
    fresh = KnownItem(id, f"/t/{id}", "", "1", None, "waiting", 0, None, 0, 0, None, NOON, NOON)
    return fresh._replace(**given)


def page(*items: Item, posts: list[Post] | None = None, following: str | None = "/next") -> Page:
    return Page(posts or [], Request(following) if following else None, Facts(), items)


class Simulated:
    """A board, its crawl and its store, one step at a time; every step is a page that was stored."""

    def __init__(self, page_size: int, pinned: int) -> None:
        self.page_size = page_size
        self.order: list[str] = []  # the newest first
        self.posts: dict[str, int] = {}
        self.pinned = {f"pin{number}" for number in range(pinned)}
        self.now = NOON
        self.known: dict[str, KnownItem] = {}
        self.read: dict[str, int] = {}
        self.completed_at: datetime | None = None
        self.started_at = NOON
        self.page: int | None = None  # None: no crawl is under way
        self.at_end = False
        for name in sorted(self.pinned):
            self.grow(name)

    def grow(self, name: str) -> None:
        self.posts[name] = 1
        self.order.insert(0, name)

    def bump(self, place: int) -> None:
        if self.order:
            name = self.order[place % len(self.order)]
            self.posts[name] += 1
            self.order.remove(name)
            self.order.insert(0, name)

    def step(self) -> bool:
        """The next page, of an item that waits or of the list; True: this completed a crawl."""
        self.now += timedelta(seconds=1)
        waiting = [one for one in self.known.values() if one.state == "waiting"]
        if waiting:
            one = waiting[0]
            self.read[one.id] = self.posts[one.id]
            self.known[one.id] = one._replace(state="done", updated_at=self.now)
            return False
        if self.at_end:
            self.completed_at, self.at_end, self.page = self.now, False, None
            return True
        if self.page is None:
            self.page, self.started_at = 1, self.now
        self._list(self.page)
        return False

    def _list(self, number: int) -> None:
        ordered = [name for name in self.order if name not in self.pinned]
        start = (number - 1) * self.page_size
        names = [*(sorted(self.pinned) if number == 1 else []), *ordered[start : start + self.page_size]]
        more = str(number + 1) if len(ordered) > start + self.page_size else None
        listed = page(
            *(Item(name, f"/t/{name}", mark=str(self.posts[name]), pinned=name in self.pinned) for name in names),
            following=more,
        )
        following = walk.step(listed, dict(self.known), (), self.completed_at, ())
        for one in walk.fresh(listed.items, self.known):
            before = self.known.get(one.id) or item(one.id)
            self.known[one.id] = before._replace(mark=one.mark, state="waiting", updated_at=self.now)
        self.page, self.at_end = number + 1, following is None

    def complete(self) -> None:
        while not self.step():
            pass

    def start_over(self) -> None:
        if self.page is not None and not self.at_end:
            self.page = 1

    def clear(self) -> None:
        self.completed_at, self.page, self.at_end = None, None, False


changes = st.one_of(
    st.tuples(st.just("grow"), st.integers(1, 6)),
    st.tuples(st.just("bump"), st.integers(0, 30)),
    st.tuples(st.just("step"), st.integers(1, 6)),
    st.tuples(st.just("complete"), st.just(0)),
    st.tuples(st.just("start_over"), st.just(0)),
    st.tuples(st.just("clear"), st.just(0)),
)


def live_through(board: Simulated, story: list[tuple[str, int]]) -> None:
    for what, number in story:
        if what == "grow":
            for _ in range(number):
                board.grow(f"thread{len(board.posts)}")
        elif what == "bump":
            board.bump(number)
        elif what == "step":
            for _ in range(number):
                board.step()
        elif what == "complete":
            board.complete()
        elif what == "start_over":
            board.start_over()
        else:
            board.clear()


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 12), st.lists(changes, min_size=15, max_size=40))
def test_lists_that_grow_are_bumped_and_interrupted_never_lose_an_item(
    page_size: int, pinned: int, at_first: int, story: list[tuple[str, int]]
) -> None:
    board = Simulated(page_size, pinned)
    live_through(board, [("grow", at_first), ("complete", 0), *story])
    if board.page is not None:  # what is under way is finished first; it may have passed what moved up meanwhile
        board.complete()
    board.complete()
    assert board.read == board.posts


def test_what_an_unfinished_crawl_found_is_not_the_end_of_the_list() -> None:
    listed = page(Item("1", "/t/1", mark="1"))
    settled = {"1": item(state="done", updated_at=NOON)}
    assert not walk.is_known_ground(listed, settled, (), None)
    assert not walk.is_known_ground(listed, settled, (), NOON - timedelta(seconds=1))
    assert walk.is_known_ground(listed, settled, (), NOON)


def test_a_page_of_pinned_items_alone_says_nothing_and_a_page_of_nothing_is_the_end() -> None:
    pinned = page(Item("1", "/t/1", mark="1", pinned=True))
    assert not walk.is_known_ground(pinned, {"1": item(state="done")}, (), NOON)
    assert walk.is_known_ground(page(), {}, (), None)


def test_what_failed_is_tried_again_as_the_list_names_it_now_or_as_it_did() -> None:
    failed = [item(id, state="failed", attempts=1, resume_url=f"/t/{id}?page=2") for id in ("1", "2")]
    bumped = Item("1", "/t/1-renamed", mark="2")
    assert walk.fresh([bumped], {"1": failed[0]}, failed) == [bumped, Item("2", "/t/2", mark="1")]
    assert walk.fresh([Item("2", "/t/2", mark="1")], {"2": failed[1]}) == []


def test_an_item_that_a_page_names_twice_is_read_once() -> None:
    assert walk.fresh([Item("1", "/a"), Item("1", "/b")], {}) == [Item("1", "/a")]


def test_an_item_without_an_end_is_left_after_many_pages() -> None:
    post = Post("1", None, "", "", None, NOON, b"")
    endless = item(pages=walk.MOST_PAGES_OF_ITEM - 1, resume_url="/t/1?page=2000")
    assert walk.after_page(endless, page(posts=[post])).state == "done"
    assert walk.after_page(item(), page(posts=[post])).state == "waiting"
    assert walk.after_page(item(), page(posts=[post], following="/t/1")).state == "done"  # it leads to itself
    assert walk.after_page(item(), page()).state == "done"  # nothing on it


def test_a_failure_is_noted_and_a_page_that_is_gone_is_not_where_to_go_on() -> None:
    gone = StatusRefused("There is nothing at this address.", http_status=404)
    assert walk.after_failure(item(resume_url="/t/1?page=3"), gone) == item()
    failed = walk.after_failure(item(attempts=1), ReadFailed("no text"))
    assert (failed.state, failed.attempts, failed.error) == ("failed", 2, "no text")


def test_the_page_limit_is_what_the_source_says() -> None:
    assert walk.page_limit(Source(1, "board", "", settings={"max_pages": 3})) == 3
    assert walk.page_limit(Source(1, "board", "")) == walk.MOST_LIST_PAGES
    assert walk.page_limit(Source(1, "board", "", settings={"max_pages": 0})) == walk.MOST_LIST_PAGES_EVER


def test_ids_compare_as_numbers_where_they_are_numbers() -> None:  # B3
    assert sorted(["100", "b", "99", "a", "9"], key=in_order) == ["9", "99", "100", "a", "b"]
    assert max(["9" * 5000, "1"], key=in_order) == "9" * 5000


def test_site_and_board_are_the_two_halves_of_an_address() -> None:
    assert site_and_board("https://forum.example/c/12?sort=new") == ("https://forum.example", "/c/12?sort=new")
