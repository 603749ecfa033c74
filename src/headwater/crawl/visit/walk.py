"""The decisions of a walk through a list: what to read, where the walk ends, what the page of an item means. Pure.

Lists grow at the top, and an item that is bumped moves there. Whatever moved after a crawl has a mark that the crawl
did not see. So if a page has only items that were settled when the last complete crawl ended, there is nothing new
below it. Items that the present, unfinished crawl settled prove nothing: below them may be items that no crawl has
reached.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from headwater.errors import SourceFailure
from headwater.fetch.statuses import GONE
from headwater.model import Item, Page, Request, Source
from headwater.store.visits.items import KnownItem

MOST_LIST_PAGES = 20
MOST_LIST_PAGES_EVER = 10_000
MOST_PAGES_OF_ITEM = 2000


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
