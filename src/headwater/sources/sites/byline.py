"""What a reader sees around the headline of an article: who wrote it, and when.

Used where a page does not declare its author or date to programs. Only the texts next to the headline are looked at,
so that the dates and names of other articles, of comments and of the page itself are not taken for this one's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from lxml.etree import XPath
from lxml.html import HtmlElement

from headwater.sources.dates import named_day, plausible

BEFORE = 10  # texts above the headline
AFTER = 60  # texts below it
MAX_LETTERS = 1_200  # below the headline
NEAR = 20  # texts in one box; a line has fewer
MAX_LINE = 120  # letters; a longer text is a sentence
MAX_NAME = 60
_UNSEEN = frozenset(
    {"script", "style", "noscript", "template", "svg", "form", "button", "select", "nav", "footer", "head", "iframe"}
)
_BY = re.compile(
    r"^\W*(?:(?:words|text|story|article|post|written|posted|published|authored|reported|review|created)\s+)?"
    r"by\b\s*:?\s*|^\W*(?:author|written|writer)s?\s*[:：]\s*|^\W*(?:von|par|por|di|door|av)\s+(?=[^\W\d_a-z])"
    r"|^\W*(?:作者|记者|文)\s*[:：/／]?\s*",
    re.IGNORECASE,
)
_JOINED = re.compile(r"^\W*(?:and|und|et|y|e|en|&)\W*$|^\s*,\s*$", re.IGNORECASE)
_NAME_END = re.compile(
    r"\s*(?:[|•·⋅∙・/–—(\[]|\s-\s|\s{3,}|\bon\s+\w+,?\s+\w+|\b(?:published|updated|posted|in)\b|\d).*$",
    re.IGNORECASE | re.DOTALL,
)
_NAME = re.compile(r"[^\W\d_][\w.'’` -]*(?:,? (?:Ph\.?D\.?|M\.?D\.?|Jr\.?|Sr\.?|CPA|RD|MBA|CFP®?))?", re.IGNORECASE)
_NO_NAME = re.compile(
    r"\b(?:about|share|follow|read|more|posts?|articles?|view|subscribe|sign|login|log|comments?|minutes?|mins?|updated"
    r"|published|reviewed|written|edited|by|home|blog|news|category|tags?|filed|under|search|menu|click|here|image|photo"
    r"|credit|getty|facebook|twitter|linkedin|email|e-mail|print|copy|link|authors?|contributors?|writers?|editors?|date"
    r"|ago|today|yesterday|read time|last|your|our|the author|advertisement|disclosure|profile|website|all)\b",
    re.IGNORECASE,
)
_TEAM = re.compile(r"\b(?:team|staff|editors|desk|newsroom|newsdesk|editorial|contributors?)\W*$", re.IGNORECASE)
_AUTHOR_BOX = re.compile(r"author|byline|creator|contributor|(?:^|[\s_-])(?:writer|by)(?:[\s_-]|$)", re.IGNORECASE)
_AUTHOR_LINK = re.compile(
    r"/(?:authors?|contributors?|producers?|writers?|journalists?|columnists?|staff|by)/", re.IGNORECASE
)
_PUBLISHED = re.compile(r"publi|posted|created|submitted|erschienen|veröffentlicht|发布|发表", re.IGNORECASE)
_CHANGED = re.compile(r"updat|modif|review|edited|revised|aktualisiert|mis à jour|actualizado|更新|修改", re.IGNORECASE)
_INLINE = frozenset({"b", "i", "em", "strong", "a", "span", "font", "time", "small", "abbr"})
# How a text around a date may start in lower case without being part of a sentence.
_STARTS = re.compile(r"\W*(?:on|by|at|posted|published|updated|last|am|pm|date|von|vom|le|il|el|\d|$)", re.IGNORECASE)
_CALENDAR = re.compile(
    r"^(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?$", re.IGNORECASE
)
_HEADINGS = ("h1", "h2", "h3")
_named: Any = XPath(
    './/*[contains(@class, "author") or contains(@class, "Author") or contains(@class, "byline")'
    ' or contains(@class, "Byline")]'
)


class PageText(NamedTuple):
    """A text of the page, and the element that it is in."""

    text: str
    element: HtmlElement


class Byline(NamedTuple):
    authors: list[str]
    published: datetime | None
    modified: datetime | None


def byline_of(tree: HtmlElement, title: str, received_at: datetime, *, with_authors: bool = True) -> Byline:
    """Returns what is written around the headline. Authors are only looked for if they are wanted."""
    texts = _around_headline(tree, _headline(tree, title))
    published, modified = _days(texts, received_at)
    authors = (_signed(texts) or _marked(texts) or _anywhere(tree)) if with_authors else []
    return Byline(authors, published, modified)


def _headline(tree: HtmlElement, title: str) -> HtmlElement | None:
    """Returns the heading with the title; the first `h1` if there is none."""
    wanted = " ".join(title.lower().split())
    first = None
    for node in tree.iter(*_HEADINGS):
        text = " ".join(node.text_content().lower().split())
        if text and wanted and (text == wanted or (len(wanted) > 15 and text.startswith(wanted))):
            return node
        if first is None and node.tag == "h1" and text:
            first = node
    return first


def _around_headline(tree: HtmlElement, headline: HtmlElement | None) -> list[PageText]:
    if headline is None:
        return []
    above: deque[PageText] = deque(maxlen=BEFORE)
    below: list[PageText] = []
    letters, found = 0, False
    for one in _texts(tree):
        if not found and (one.element is headline or headline in one.element.iterancestors(*_HEADINGS)):
            found = True
        if not found:
            above.append(one)
            continue
        letters += len(one.text)
        below.append(one)
        if len(below) == AFTER or letters > MAX_LETTERS:
            break
    # What is below the headline is nearer to it in meaning than what is above, which may be the page's own.
    return [*below, *above] if found else []


def _texts(element: HtmlElement) -> Iterator[PageText]:
    """Yields the texts that a reader sees, in order."""
    if element.tag in _UNSEEN or not isinstance(element.tag, str):
        return
    if element.text and not element.text.isspace():
        yield PageText(" ".join(element.text.split()), element)
    for child in element:
        yield from _texts(child)
        if child.tail and not child.tail.isspace():
            yield PageText(" ".join(child.tail.split()), element)


def _days(texts: Sequence[PageText], received_at: datetime) -> tuple[datetime | None, datetime | None]:
    """Returns the first day that is said to be of publication, or of nothing; and the first of a change."""
    published: datetime | None = None
    plain: datetime | None = None
    changed: datetime | None = None
    before = ""
    for text, element in texts:
        day = plausible(named_day(text), received_at) if len(text) <= MAX_LINE else None
        if day and _is_line(text, element):
            said = text if _says(text) else f"{before} {text}"
            if _PUBLISHED.search(said):
                published = published or day
            elif _CHANGED.search(said):
                changed = changed or day
            else:
                plain = plain or day
        before = text if len(text) < 40 else ""
    return published or plain, changed


def _says(text: str) -> bool:
    return bool(_CHANGED.search(text) or _PUBLISHED.search(text))


def _is_line(text: str, element: HtmlElement) -> bool:
    """Whether a text with a date is a line of its own, not part of a sentence."""
    if text[:1].islower() and not _STARTS.match(text):
        return False
    box = element
    while box.tag in _INLINE and box.getparent() is not None:
        box = box.getparent()
    return sum(len(one.text) for one in islice(_texts(box), NEAR)) <= 3 * MAX_LINE


def _signed(texts: Sequence[PageText]) -> list[str]:
    """Returns the names after “By”, in the same text or in those that follow it."""
    for position, (text, _) in enumerate(texts):
        found = _BY.match(text) if len(text) <= MAX_LINE else None
        if not found:
            continue
        rest = text[found.end() :]
        names = _names_in(rest)
        following = [one.text for one in texts[position + 1 : position + 8]]
        if not rest.strip() and following:
            names = _names_in(following.pop(0))
        while names and len(following) > 1 and _JOINED.match(following[0]):
            more = _names_in(following[1])
            if not more:
                break
            names += more
            following = following[2:]
        if names:
            return names
    return []


def _names_in(text: str) -> list[str]:
    line = _NAME_END.sub("", text).strip(" ,.;:")
    names = [part.strip(" ,.") for part in re.split(r",?\s+(?:and|&|und|et)\s+|,\s+(?=[^\W\d_a-z])", line)]
    return names if names and all(is_name(name) for name in names) else []


def is_name(text: str) -> bool:
    """Whether a short text can be the name of a person or of a team."""
    if not 2 <= len(text) <= MAX_NAME or not _NAME.fullmatch(text) or _CALENDAR.match(text):
        return False
    words = text.split()
    if len(words) > 5 or (_NO_NAME.search(text) and not _TEAM.search(text)):
        return False
    return (
        _TEAM.search(text) is not None or len(words) == 1 or sum(word[:1].isupper() for word in words) * 2 >= len(words)
    )


def _marked(texts: Sequence[PageText]) -> list[str]:
    """Returns the first name in an element that is called the author's, or in a link to an author's page."""
    for text, element in texts:
        if len(text) <= MAX_NAME and is_name(name := text.strip(" ,.|")) and _is_authors(element, name):
            return [name]
    return []


def _is_authors(element: HtmlElement, name: str) -> bool:
    """Whether an element is called the author's. A single word may be a label, unless the element is called a name."""
    if " " not in name and not re.search("name", element.get("class") or "", re.IGNORECASE):
        return False
    for depth, box in enumerate((element, *element.iterancestors())):
        if depth == 3 or box.tag in ("body", "article", "main", "h1"):
            return False
        if box.get("rel") == "author" or _AUTHOR_LINK.search(box.get("href") or ""):
            return True
        if _AUTHOR_BOX.search(f"{box.get('class') or ''} {box.get('id') or ''} {box.get('itemprop') or ''}"):
            return True
    return False


def _anywhere(tree: HtmlElement) -> list[str]:
    """Returns the first name on the page whose own element is called the author's."""
    for node in _named(tree)[:40]:
        text = " ".join(node.text_content()[:400].split())
        found = _BY.match(text)
        name = (text[found.end() :] if found else text).strip(" ,.|")
        if is_name(name) and " " in name:
            return [name]
    return []
