"""A walk through a list: what to read, where the walk ends, and its checkpoint, which says how far it got.

Lists grow at the top, and an item that is bumped moves there. Whatever moved after a crawl has a mark that the crawl
did not see. So if a page has only items that were settled when the last complete crawl ended, there is nothing new
below it. Items that the present, unfinished crawl settled prove nothing: below them may be items that no crawl has
reached.

The decisions are pure. The store reads and writes the row of a checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from sqlalchemy import Connection

from headwater.errors import SourceFailure
from headwater.fetch.statuses import GONE
from headwater.model import Item, Page, Request, Source, StoredPost
from headwater.sources import KINDS
from headwater.store.visits import checkpoints
from headwater.store.visits.checkpoints import CheckpointRow, Statistics
from headwater.store.visits.items import KnownItem

MOST_LIST_PAGES = 20
MOST_LIST_PAGES_EVER = 10_000
MOST_PAGES_OF_ITEM = 2000
MOST_SEEN = 200
RUNNING, COMPLETED, ERROR = "running", "completed", "error"


def fresh(listed: Sequence[Item], known: Mapping[str, KnownItem], to_try_again: Sequence[KnownItem] = ()) -> list[Item]:
    """Returns the items to read: unknown ones, ones with another mark than before, and ones that failed before."""
    found: dict[str, Item] = {}
    for item in listed:
        before = known.get(item.id)
        if before is None or before.mark != item.mark:
            found.setdefault(item.id, item)
    return list(({item.id: item.as_named() for item in to_try_again} | found).values())


def is_known_ground(
    page: Page, known: Mapping[str, KnownItem], stored: Collection[str], completed_at: datetime | None
) -> bool:
    """Whether the list has nothing new from here on. `completed_at` is when the last complete crawl ended.

    `stored` has the posts of the page that were stored by then. Pinned items prove nothing: they are above the order.
    """
    ordered = [item for item in page.items if not item.pinned]
    if not ordered and not page.posts:
        # A page that is not the whole of it, such as an index, leads to the list.
        return not page.items and page.facts.whole
    if completed_at is None:
        return False
    items_are_old = all(_was_settled(item, known.get(item.id), completed_at) for item in ordered)
    return items_are_old and all(post.source_post_id in stored for post in page.posts)


def step(
    page: Page,
    known: Mapping[str, KnownItem],
    stored: Collection[str],
    completed_at: datetime | None,
    asked_for: Collection[tuple[str, bytes | None]],
) -> Request | None:
    """Returns the page of the list to read next; None if the walk ends here. A page that was read before ends it.

    A list that was asked only for what is newer than a watermark ends there by itself.
    """
    following = page.next
    if following is None:
        return None
    if page.facts.watermark is None and is_known_ground(page, known, stored, completed_at):
        return None
    return None if (following.url, following.body) in asked_for else following


def _was_settled(item: Item, before: KnownItem | None, completed_at: datetime) -> bool:
    return before is not None and before.is_settled and before.mark == item.mark and before.updated_at <= completed_at


def page_limit(source: Source) -> int:
    """Returns how many pages of the list one crawl may read: the source's `max_pages`, where 0 means all."""
    wanted = source.settings.get("max_pages", MOST_LIST_PAGES)
    return wanted if isinstance(wanted, int) and wanted > 0 else MOST_LIST_PAGES_EVER


def after_page(item: KnownItem, page: Page) -> KnownItem:
    """Returns an item after one of its pages was read: done, or waiting for the next page."""
    here, following = item.next_url, page.next.url if page.next else None
    if following == here or not page.posts or item.pages + 1 >= MOST_PAGES_OF_ITEM:
        following = None
    state = "waiting" if following else "done"
    return item._replace(state=state, resume_url=following or here, pages=item.pages + 1, attempts=0, error=None)


def after_failure(item: KnownItem, error: SourceFailure) -> KnownItem:
    """Returns an item after one of its pages failed. If a page in the middle is gone, it is read from the start."""
    if error.facts.get("http_status") in GONE and item.next_url != item.url:
        return item._replace(resume_url=None)
    return item._replace(state="failed", attempts=item.attempts + 1, error=error.detail)


@dataclass(frozen=True)
class Checkpoint:
    """How far the crawl of one list got. Immutable: each step returns a new one, which is saved with its page.

    `exists` says whether the store has one. `store/visits/items.py` knows which items were read.
    """

    row: CheckpointRow
    exists: bool = True

    @classmethod
    def load(cls, conn: Connection, source: Source, now: datetime) -> Checkpoint:
        """Returns the checkpoint of a source, or a blank one if there is none."""
        site, board = site_and_board(source.address)
        row = checkpoints.load(conn, site, board)
        if row is None:
            return cls(CheckpointRow(site, board, source.id, RUNNING, now, now, now), False)
        return cls(row, True)

    def save(self, conn: Connection, now: datetime) -> None:
        checkpoints.save(conn, self.row, now)

    def clear(self, conn: Connection) -> bool:
        """Deletes it. The next crawl walks the whole list again, and reads only what is not stored."""
        return checkpoints.delete(conn, self.row.site, self.row.board)

    @property
    def status(self) -> str:
        return self.row.status

    @property
    def is_unfinished(self) -> bool:
        return self.exists and self.status != COMPLETED

    @property
    def current_page(self) -> int:
        """The number of list pages that this crawl has read."""
        return self.row.current_page

    @property
    def page(self) -> Request | None:
        """The page of the list to ask for next; None if the list was read to its end."""
        return msgspec.convert(self.row.page_request, Request) if self.row.page_request else None

    @property
    def last_thread(self) -> tuple[str, str] | None:
        """The id and address of the item that was read last."""
        row = self.row
        return (row.last_thread_id, row.last_thread_url or "") if row.last_thread_id is not None else None

    @property
    def stats(self) -> dict[str, int]:
        return dict(self.row.stats)

    @property
    def seen_ids(self) -> set[str]:
        """The latest items that were read. Only a cache."""
        return set(self.row.seen_ids)

    @property
    def min_id(self) -> str | None:
        return self.row.min_id

    @property
    def max_id(self) -> str | None:
        return self.row.max_id

    def begun(self, first: Request, now: datetime) -> Checkpoint:
        """Begins a new crawl. Keeps the time at which the last complete one ended."""
        row = self.row._replace(started_at=now, current_page=0, stats={}, seen_ids=(), status=RUNNING, error=None)
        return Checkpoint(row, self.exists).going_on_at(first)

    def started_over(self, first: Request) -> Checkpoint:
        """Starts the same crawl again at the first page, because the page where it stood is gone."""
        return self._with(current_page=0).going_on_at(first)

    def going_on_at(self, page: Request | None) -> Checkpoint:
        return self._with(page_url=page.url if page else None, page_request=msgspec.to_builtins(page))

    def listed(self, ids: Sequence[str], further: Request | None) -> Checkpoint:
        """Counts a page of the list that was read, and keeps the lowest and highest id that it named."""
        row = self.row
        lowest = min([*ids, *([row.min_id] if row.min_id else [])], key=in_order, default=None)
        highest = max([*ids, *([row.max_id] if row.max_id else [])], key=in_order, default=None)
        stepped = self._with(current_page=row.current_page + 1, min_id=lowest, max_id=highest, status=RUNNING)
        return stepped.going_on_at(further)._plus(list_pages=1)

    def read(self, item: KnownItem) -> Checkpoint:
        """Counts a page of an item that was requested. `item` is what is known of it now."""
        step = self._with(status=RUNNING, last_thread_id=item.id, last_thread_url=item.url)._plus(item_pages=1)
        if item.state == "waiting":
            return step
        seen = [*(one for one in self.row.seen_ids if one != item.id), item.id][-MOST_SEEN:]
        return step._with(seen_ids=seen)._plus(**{item.state: 1})

    def counted(self, stored: Iterable[StoredPost]) -> Checkpoint:
        posts = list(stored)
        changes = Counter(post.change for post in posts)
        images = sum(len(post.post.images) for post in posts if post.change == "new")
        return self._plus(new=changes["new"], updated=changes["edited"] + changes["touched"], images=images)

    def mark_completed(self, now: datetime, **final_stats: int) -> Checkpoint:
        done = self._with(status=COMPLETED, error=None, completed_at=now, stats={**self.row.stats, **final_stats})
        return done.going_on_at(None)

    def mark_error(self, message: str) -> Checkpoint:
        return self._with(status=ERROR, error=message)

    def _with(self, **changes: Any) -> Checkpoint:
        return Checkpoint(self.row._replace(**{"error": None, **changes}), self.exists)

    def _plus(self, **more: int) -> Checkpoint:
        stats = {**self.row.stats}
        for name, count in more.items():
            if count:
                stats[name] = stats.get(name, 0) + count
        return Checkpoint(self.row._replace(stats=stats), self.exists)


def site_and_board(address: str) -> tuple[str, str]:
    """Returns the site of a list, and which list of the site it is."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}", parts.path + (f"?{parts.query}" if parts.query else "")


def items_read(found: Statistics) -> dict[str, int]:
    """Returns how many items were read, by what people call them: threads, articles."""
    return {kind.items: found.total(kind.name) for kind in KINDS.values() if kind.items}


def in_order(id: str) -> tuple[int, int, str]:
    """Sorts ids that are numbers as numbers, before all others."""
    number = id.isascii() and id.isdigit()
    return (0, int(id), "") if number and len(id) < 100 else (1, 0, id)
