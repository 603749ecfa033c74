"""What a feed says, before the rules are applied. Every parser fills this form, and `posts` makes posts of it."""

from __future__ import annotations

from typing import Any, NamedTuple

MAX_POSTS = 5_000


class RawLink(NamedTuple):
    rel: str
    href: str
    type: str | None = None
    length: str | None = None


class RawText(NamedTuple):
    """A piece of text and how it is written: `text`, `html`, or `guess` if the format does not say.

    `base` and `lang` are set if its own element has them.
    """

    value: str
    form: str = "guess"
    base: str | None = None
    lang: str | None = None

    @property
    def is_blank(self) -> bool:
        return not self.value or self.value.isspace()


NO_TEXT = RawText("")


class RawEntry:
    """One entry, or the channel itself, as written in the document."""

    __slots__ = (
        "authors",
        "base",
        "categories",
        "comments",
        "content",
        "dates",
        "description",
        "enclosures",
        "extra",
        "id",
        "lang",
        "links",
        "media_description",
        "other_summary",
        "other_title",
        "reference",
        "summary",
        "title",
        "updates",
    )

    def __init__(self, base: str | None = None, lang: str | None = None) -> None:
        self.base = base
        self.lang = lang
        self.id: str = ""
        self.title: RawText = NO_TEXT
        self.other_title: str = ""
        self.links: list[RawLink] = []
        self.content: RawText = NO_TEXT
        self.summary: RawText = NO_TEXT
        self.other_summary: RawText = NO_TEXT
        self.description: RawText = NO_TEXT
        self.media_description: RawText = NO_TEXT
        # (rank, text): the lowest rank that can be read and believed wins.
        self.dates: list[tuple[int, str]] = []
        self.updates: list[tuple[int, str]] = []
        self.authors: list[tuple[int, str]] = []
        self.categories: list[str] = []
        self.enclosures: list[RawLink] = []
        self.comments: str | None = None
        self.reference: tuple[str, str] | None = None
        self.extra: dict[str, Any] = {}


class RawFeed(NamedTuple):
    """A whole document: what it says about itself, and its entries."""

    format: str
    channel: RawEntry
    entries: list[RawEntry]
    truncated: bool = False
