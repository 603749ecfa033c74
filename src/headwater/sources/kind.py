"""What a kind of source is. Each kind's module declares its own `KIND`; other packages never compare kind names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from headwater.model import Item, Page, Request, Response, Source, SourceState


class Kind(NamedTuple):
    """A kind of source: which request comes next, what an answer says, and what the engine may do with it.

    `label` and `plural` are what people call one source of this kind, and several.

    How it is crawled. `first` makes the first request of a visit; `read` says what an answer means. A `document` takes
    one request, and further ones only where an answer asks for them. A `list` is read page by page, and each page is
    stored before the next one is requested. If a list names items instead of containing posts, `read_item` reads the
    page of an item (its `next` is the item's next page), and `items` is what people call those items.

    How it is found. `address_of` turns what a person typed into the source's one address; None means that it is
    something else. `at_address` says that the source's address is the one that is fetched. Then the source can move,
    and a web page at the address can lead to it. `recognise` returns the settings with which the kind can read a page,
    or None. `check` raises BadInput for settings that the kind does not understand; a kind without it has no settings.

    What the engine can expect of it:

    - `access`: the name of the API it is asked through, which has a budget and perhaps a key
    - `tells_watermark`: its pages report the watermark (`Facts.watermark`), and a list ends there
    - `is_often_unchanged`: most answers repeat the last one; if few do, servers ignore our conditional requests
    - `can_be_pushed`: a hub may push it (WebSub)
    - `has_listings`: it has several listings (new, top, …); its tier chooses one, and warm-up caches one
    - `has_comments`: comments can be read along with its posts
    - `for_operators`: what it says counts for everybody, so only those who run the instance may follow it
    """

    name: str
    label: str
    plural: str
    first: Callable[[Source, SourceState], Request]
    read: Callable[[Source, SourceState, Response], Page]
    shape: Literal["document", "list"] = "document"
    items: str = ""
    read_item: Callable[[Source, Item, Response], Page] | None = None
    address_of: Callable[[str], str | None] | None = None
    at_address: bool = True
    recognise: Callable[[Source, Response], Mapping[str, Any] | None] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    access: str = ""
    tells_watermark: bool = False
    is_often_unchanged: bool = False
    can_be_pushed: bool = False
    has_listings: bool = False
    has_comments: bool = False
    for_operators: bool = False

    @property
    def is_list(self) -> bool:
        return self.shape == "list"
