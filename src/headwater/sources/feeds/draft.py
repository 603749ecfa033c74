"""What a feed says, before the rules are applied: the one form that every reader fills and `posts` finishes."""

from __future__ import annotations

from typing import Any, NamedTuple

MAX_POSTS = 5_000


class Link(NamedTuple):
    rel: str
    href: str
    type: str | None = None
    length: str | None = None


class Words(NamedTuple):
    """A piece of text and how it is written: `text`, `html`, or `guess` where the format does not say.

    `base` and `lang` are set where its own element has them.
    """

    value: str
    form: str = "guess"
    base: str | None = None
    lang: str | None = None

    @property
    def says_something(self) -> bool:
        return bool(self.value) and not self.value.isspace()


NO_WORDS = Words("")


class Draft:
    """One entry, or the feed itself, as written in the document."""

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
        self.title: Words = NO_WORDS
        self.other_title: str = ""
        self.links: list[Link] = []
        self.content: Words = NO_WORDS
        self.summary: Words = NO_WORDS
        self.other_summary: Words = NO_WORDS
        self.description: Words = NO_WORDS
        self.media_description: Words = NO_WORDS
        # (rank, text): the lowest rank that can be read and believed wins.
        self.dates: list[tuple[int, str]] = []
        self.updates: list[tuple[int, str]] = []
        self.authors: list[tuple[int, str]] = []
        self.categories: list[str] = []
        self.enclosures: list[Link] = []
        self.comments: str | None = None
        self.reference: tuple[str, str] | None = None
        self.extra: dict[str, Any] = {}


class FeedDraft(NamedTuple):
    """A whole document: `base` is the address that relative links without an xml:base of their own start from."""

    format: str
    about: Draft
    entries: list[Draft]
    truncated: bool = False
