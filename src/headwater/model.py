"""The words of the domain as types. Plain, immutable data: no I/O, no clock, almost no behaviour.

They are tuples because they cross process borders and are made by the ten thousand. A dataclass costs several times as
much.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple


class Source(NamedTuple):
    """Something that is watched: a feed, a community, a board, a site, an account."""

    id: int
    kind: str
    address: str
    title: str = ""
    settings: Mapping[str, Any] = {}


class SourceState(NamedTuple):
    """What the next visit of a source needs to know from earlier ones."""

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
    """An answer as it arrived: `body` is still compressed if `headers` say so (`fetch.body.unpacked` unpacks it).

    `url` is the address that answered, after redirects. `moved_to` is the new address, and is set only if every
    redirect was permanent. Header names are lower case.
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
    """An image that a post shows. `alt` is its description."""

    url: str
    alt: str = ""


class Reference(NamedTuple):
    """Points at another post. `kind` is repost, quote, reply or crosspost; `id` is the id or URL of the other post."""

    kind: str
    id: str


class Post(NamedTuple):
    """What a source published, as its page shows it now. Text is clean (`content` is safe HTML), links are absolute.

    `source_post_id` is its identity within the source. `created_at` is never None: if the source gives no date, or one
    that cannot be true, it is the time at which the page was received, and `dated` is False. `text_hash` changes
    exactly when the title or the text changes in a way that a reader would notice.
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
    thread: str | None = None  # by its name at the source, or by the id of the post that this one replies to
    opens_thread: bool = False


class Facts(NamedTuple):
    """What a page says about its source.

    `whole` is False if posts newer than the watermark may be missing from the page; then the watermark stays. `gap`
    says that the page does not reach back to the watermark. Unless a further page does, posts were missed. `note` is
    what a person should know about how the source is read.

    `watermark` is for sources whose ids are growing numbers: no new post will have an id up to this one. The next crawl
    begins at the highest watermark of this one's pages. `settings` are facts that the next visit need not find out
    again.
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
    """What a list names and another page contains: a thread of a board, an article of a site.

    `id` is its identity within the source. `mark` is how the list describes its present state, such as the number of
    replies or the time of the last one. If it differs from what was seen, there is something new to read. `url` is what
    to fetch; for an item that was read before, the page where reading ended. `pinned` items are above the list's sort
    order.
    """

    id: str
    url: str
    title: str = ""
    mark: str = ""
    created_at: datetime | None = None
    pinned: bool = False


class MarketDay(NamedTuple):
    """One day of the coin's market and chain. None is unknown. `height` is that of the last block of the day."""

    day: date
    price_usd: float | None
    difficulty: float | None
    height: int
    blocks: int
    fees_btc: float = 0.0
    hashrate_th: float | None = None


class ForecastDay(NamedTuple):
    """What is expected of one day, with ranges that should hold in four of five cases.

    `confidence` is the share of the latest 500 ranges of the price, for as many days ahead, that held.
    `difficulty_skill` says how much better the next difficulty is known than by expecting no change, measured at the
    same point of past epochs: 0 is as good as that, 1 would be exact.
    """

    day: date
    price_usd: float
    price_low: float
    price_high: float
    difficulty: float
    difficulty_low: float
    difficulty_high: float
    hashprice_usd_per_ph: float
    hashprice_low: float
    hashprice_high: float
    confidence: float | None
    difficulty_skill: float | None = None


class Page(NamedTuple):
    """What one answer says: posts, what to request next (None if this was the last page), facts about the source.

    `items` are what a list names without containing it. `comments` are stored like posts, but do not move the
    watermark. `days` are figures of the market.
    """

    posts: list[Post]
    next: Request | None
    facts: Facts
    items: tuple[Item, ...] = ()
    comments: list[Post] = []
    days: list[MarketDay] = []


class Credential(NamedTuple):
    """The name and password of a source, encrypted. `key` is derived from them: the same ones have the same key."""

    sealed: bytes
    key: str


class DueSource(NamedTuple):
    """A source that this process has leased until `lease_until`. The visit starts at `start_at`, not before.

    `lease` is the token of the lease. `push_trust` is the factor by which polling is slowed down because a hub pushes
    the source; it is 1 if no hub does, or if the hub missed too much. `chosen_seconds` is the shortest interval that a
    reader chose, and `chosen_by_all` says that every reader chose one. `is_asked` says that a person asked for this
    visit: it goes before the others.
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
    chosen_seconds: int | None = None
    chosen_by_all: bool = False
    is_asked: bool = False


class Becoming(NamedTuple):
    """The kind that can read what is at a source's address, and the settings with which it does."""

    kind: str
    settings: Mapping[str, Any]


class Visit(NamedTuple):
    """One crawl of one source, as it is recorded: what came, the new state of the source, when to come again.

    `outcome` is ok, unchanged, empty, failed or deferred (it had to wait before it began, and is not counted).
    `status` is the new status of the source: ok, empty, failing, blocked or retired. `comments` do not move the
    watermark. `counted` has the numbers of posts that were stored page by page during the visit, by their change.
    `unfinished` says that the crawl of a list goes on with the next visit. `becomes` is the kind of source that it
    turned out to be. `not_before` is the earliest next visit that the source's own wishes and the back-off allow.
    `retry_at` is set where asking again soon may help. A task, which somebody waits for, is then tried again.
    `traceparent` names the visit in all that it causes.
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
    not_before: datetime | None = None
    retry_at: datetime | None = None
    days: list[MarketDay] = []
    traceparent: str | None = None


class StoredPost(NamedTuple):
    """A post after it was stored. `change` is new, edited, touched (score or comments) or same."""

    id: int
    change: str
    version: int
    post: Post


class SavedVisit(NamedTuple):
    """What a visit changed in the store. `accepted` is False if the lease was lost and nothing was written.

    `task_id` is the task that somebody asked for and that this visit finished, `pending_task_id` one that a later
    visit finishes.
    """

    visit: Visit
    address: str
    accepted: bool
    previous_status: str
    posts: list[StoredPost]
    watermark_updated: bool
    task_id: str | None = None
    pending_task_id: str | None = None

    def count(self, change: str) -> int:
        return self.visit.counted.get(change, 0) + sum(1 for post in self.posts if post.change == change)

    def brought(self) -> dict[str, int | bool]:
        """Returns what the visit brought, as it is stored and reported."""
        facts = self.visit.facts
        return {
            "new": self.count("new"),
            "updated": self.count("edited") + self.count("touched"),
            "duplicates": self.count("same"),
            "watermark_updated": self.watermark_updated,
            "truncated": facts is not None and facts.truncated,
            "gap": facts is not None and facts.gap,
        }


class Event(NamedTuple):
    """A fact that is committed together with the change it describes. `data` is its content as JSON.

    Events with one `key` stay in order. Two events with one `idempotency_key` are the same fact. `traceparent` is the
    trace that it is part of; None: that of the present request or visit, if any.
    """

    kind: str
    version: int
    key: str
    data: str
    idempotency_key: str
    tenant_id: int | None = None
    user_id: int | None = None
    domain: str = ""  # the topic, where it is not the first part of the kind
    traceparent: str | None = None


class PostText(NamedTuple):
    """A post as folding reads it: its plain text, its time, and the post that it points at."""

    id: int
    source_id: int
    title: str
    text: str
    url: str | None
    created_at: datetime
    reference: Reference | None = None


class Decision(NamedTuple):
    """Which story a post belongs to, and why.

    The id of a story, and of a group of repeats, is the id of its first post. `rule` is first (the post begins its
    story), exact or similar (it repeats a post of `repeat_id`), or story (it tells the same event in other words).
    """

    post_id: int
    story_id: int
    repeat_id: int
    rule: str
    score: float
    why: str


class Reader(NamedTuple):
    """The person who asks: a user of a tenant.

    `role` is owner, operator, member or viewer. `scopes` are those of the token that is used; None: everything that the
    role allows. `runs_instance` says that the tenant's owners and operators run the whole instance. `plan` is that of
    the tenant; None: the default one. What a reader may do is decided in `accounts/scopes.py`.
    """

    tenant_id: int
    user_id: int
    name: str
    role: str
    scopes: frozenset[str] | None = None
    runs_instance: bool = False
    plan: str | None = None

    @property
    def key(self) -> dict[str, int]:
        """The columns that say whose a row is."""
        return {"tenant_id": self.tenant_id, "user_id": self.user_id}
