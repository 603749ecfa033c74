"""The words of the domain as types. Plain, immutable data: no I/O, no clock, no behaviour beyond small questions.

Tuples, because they cross process borders and are made by the ten thousand; a dataclass costs several times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Source(NamedTuple):
    """Something watched: a feed, a community, a board, a site, an account."""

    id: int
    kind: str
    address: str
    title: str = ""
    settings: Mapping[str, Any] = {}


class SourceState(NamedTuple):
    """What the last visits of a source left behind for the next one."""

    etag: str | None = None
    last_modified: str | None = None
    body_hash: bytes | None = None
    last_seen_post_id: str | None = None
    last_seen_created_at: datetime | None = None
    validated_at: datetime | None = None


class Request(NamedTuple):
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes | None = None


class Response(NamedTuple):
    """An answer as it arrived: `body` is still compressed where `headers` say so (`fetch.body.unpacked` undoes that).

    `url` is the address that answered, after redirects; `moved_to` is where the asked address lives now, set only if
    every redirect from it was permanent. Header names are lower case.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime
    moved_to: str | None = None


class Enclosure(NamedTuple):
    url: str
    type: str | None = None
    length: int | None = None


class Image(NamedTuple):
    """A picture that a post shows; `alt` is what it says about it in words."""

    url: str
    alt: str = ""


class Reference(NamedTuple):
    """That a post points at another: `kind` is repost, quote, reply or crosspost; `id` is the other's id or URL."""

    kind: str
    id: str


class Post(NamedTuple):
    """What a source published, as its page says it now. Text is clean (`content` is safe HTML), links are absolute.

    `source_post_id` is its identity within the source. `created_at` is never None: where the source gives no date, or
    one that cannot be true, it is the time the page was received and `dated` is False.
    `text_hash` changes exactly when title or text change in a way a reader would notice.
    """

    source_post_id: str
    url: str | None
    title: str
    content: str
    author: str | None
    created_at: datetime
    text_hash: bytes
    dated: bool = True
    updated_at: datetime | None = None
    lang: str | None = None
    score: int | None = None
    num_comments: int | None = None
    reference: Reference | None = None
    enclosures: tuple[Enclosure, ...] = ()
    extra: Mapping[str, Any] = {}
    images: tuple[Image, ...] = ()


class Facts(NamedTuple):
    """What a page says about its source.

    `whole` is False where posts newer than the watermark may be missing from it: then the watermark stays. `gap` says
    that it does not reach back to the watermark: unless a further page does, posts have gone by unseen. `note` is what
    a person should know about how the source is read.

    `watermark` is, where ids are numbers that grow, the one up to which nothing more is to come; the highest of a
    crawl's pages is where the next begins. `settings` is what was found out and need not be found out again.
    """

    format: str = ""
    title: str = ""
    link: str | None = None
    language: str | None = None
    ttl_seconds: int | None = None
    hub: str | None = None
    self_url: str | None = None
    truncated: bool = False
    whole: bool = True
    gap: bool = False
    note: str = ""
    watermark: str | None = None
    settings: Mapping[str, Any] = {}


class Item(NamedTuple):
    """What a list names and another page tells: a thread of a board, an article of a site.

    `id` is its identity within the source. `mark` is how the list describes its present state, such as the number of
    replies or the time of the last one: where it differs from what was seen, there is something new to read.
    `url` is what to fetch; of one that was read before, the page where reading ended. `pinned` ones stand above the
    list's order.
    """

    id: str
    url: str
    title: str = ""
    mark: str = ""
    created_at: datetime | None = None
    pinned: bool = False


class Page(NamedTuple):
    """What one answer says: posts, what to request next (None: this was all), facts about the source.

    `items` are what a list names but does not tell.
    `comments` are stored as posts are, but say nothing about how far the listing was read.
    """

    posts: list[Post]
    next: Request | None
    facts: Facts
    items: tuple[Item, ...] = ()
    comments: list[Post] = []


class DueSource(NamedTuple):
    """A source whose visit was granted to us: until `lease_until`, to whoever shows `lease`, not before `start_at`.

    `push_trust` is how many times rarer it is polled because a hub pushes it (1: none does, or it missed too much).
    """

    source: Source
    state: SourceState
    lease: str
    lease_until: datetime
    start_at: datetime
    host: str
    interval_seconds: int | None
    consecutive_failures: int
    status: str
    push_trust: int = 1
    credential: bytes | None = None
    note: str = ""


class Becoming(NamedTuple):
    """The kind that reads what is at a source's address, and with which settings."""

    kind: str
    settings: Mapping[str, Any]


class Visit(NamedTuple):
    """One crawl of one source, as it is written down: what came, what the source is like now, when to come again.

    `outcome` is ok, unchanged, empty, failed or deferred (it had to wait before it began, and counts as nothing).
    `status` is the source's from now on: ok, empty, failing, blocked or retired. `comments` move no watermark.
    `counted` are posts that were stored during the visit, page by page, by their change. `unfinished` says that the
    crawl of a list goes on with the next visit. `becomes` is the kind of source that it turned out to be.
    """

    source_id: int
    lease: str
    started_at: datetime
    seconds: float
    outcome: str
    status: str
    next_check_at: datetime
    state: SourceState
    posts: list[Post] = []
    facts: Facts | None = None
    http_status: int | None = None
    bytes: int = 0
    error_code: str | None = None
    error: str | None = None
    blames_source: bool = True
    moved_to: str | None = None
    host: str = ""
    pause_host_until: datetime | None = None
    waits_for: str | None = None
    counted: Mapping[str, int] = {}
    unfinished: bool = False
    becomes: Becoming | None = None
    comments: list[Post] = []


class StoredPost(NamedTuple):
    """A post after it was written: `change` is new, edited, touched (score or comments) or same."""

    id: int
    change: str
    version: int
    post: Post


class SavedVisit(NamedTuple):
    """What a visit changed in the store. `accepted` is False where the lease was lost and nothing was written."""

    visit: Visit
    address: str
    accepted: bool
    previous_status: str
    posts: list[StoredPost]
    watermark_updated: bool

    def count(self, change: str) -> int:
        return self.visit.counted.get(change, 0) + sum(1 for post in self.posts if post.change == change)


class Event(NamedTuple):
    """A fact that commits together with the state it tells of. `data` is what it says, as JSON.

    Order holds among events with one `key`. Two events with one `idempotency_key` are the same fact.
    """

    kind: str
    version: int
    key: str
    data: str
    idempotency_key: str
    tenant_id: int | None = None
    user_id: int | None = None


class PostText(NamedTuple):
    """A post as folding reads it: what it says, in plain text, when, and what it points at."""

    id: int
    source_id: int
    title: str
    text: str
    url: str | None
    created_at: datetime
    reference: Reference | None = None


class Decision(NamedTuple):
    """Which story a post belongs to, and why.

    A story and a group of repeats are named after the post they began with. `rule` is first (it begins its story),
    exact or similar (a repeat of a post of `repeat_id`), or story (the same event in other words).
    """

    post_id: int
    story_id: int
    repeat_id: int
    rule: str
    score: float
    why: str


class Reader(NamedTuple):
    """Who asks: a user of a tenant."""

    tenant_id: int
    user_id: int
    name: str
    role: str
