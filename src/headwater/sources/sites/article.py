"""Articles: their text and images. trafilatura finds the text; it is trimmed and written as clean HTML.

If trafilatura finds much less than the page has in paragraphs, the paragraphs of the page are the text.

trafilatura is imported with the first article, so a parser process that reads no articles does not pay for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from html import escape, unescape
from itertools import islice
from typing import Any, NamedTuple

from lxml import etree
from lxml.etree import _Element
from lxml.html import HtmlElement

from headwater.errors import ReadFailed
from headwater.model import Facts, Image, Item, Page, Post, Response
from headwater.sources.dates import plausible
from headwater.sources.sites.links import text_within
from headwater.sources.sites.metadata import Metadata, metadata_of
from headwater.sources.sites.prose import HEADINGS, Prose, blocks_of, prose_of
from headwater.sources.sites.settings import FORMAT
from headwater.sources.sites.trimming import Block, block_of, trimmed
from headwater.sources.web_page import NewsPage, blocked, news_page, refuse_challenge
from headwater.text import clean_html, plain, text_hash
from headwater.urls import identity, safe_link

MAX_IMAGES = 30
MAX_ALT = 500
MAX_QUOTED = 100
SMALLEST = 120  # pixels
SHORTEST = 60  # letters; less is a caption or a notice, not an article
_IMAGE_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-srcset", "srcset", "src")
_DECORATION = re.compile(
    r"(?:^|[/_.-])(?:logo|icon|avatar|gravatar|sprite|spacer|blank|pixel|badge|emoji|button|placeholder)s?(?:[/_.-]|\d|$)|\.svg(?:\?|$)",
    re.IGNORECASE,
)
_NOT_TEXT = ("aside", "nav", "footer", "header", "form")
_UNREAD = ("style", "svg", "template", "iframe", "object", "noscript", "canvas", "link", "meta", "select")
_INLINE = {"#b": "b", "#i": "i", "#u": "u", "#sub": "sub", "#sup": "sup", "#t": "code"}
_BLOCKS = {"p": "p", "quote": "blockquote", "table": "table", "row": "tr", "cell": "td", "item": "li", "del": "del"}
_LISTS = {"ol": "ol", "dl": "ul", "ul": "ul"}
_WORDS = re.compile(r"\w+")
_PARAGRAPH_END = re.compile(r"\s*\n\s*|<(?:/p|br\s*/?)>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# The text that the page provides for programs is used if it has all of the text that was found, and this much more.
_LONGER = 1.5
_ENOUGH_SHARED = 0.8
# If an article is shorter than this, and less than this share of its page, it may be the wrong part.
_LITTLE = 1_500
_SHARE_OF_PAGE = 0.1
_SHARE_OF_PROSE = 0.6
_NEARLY_SAME = 0.1
_SEVERAL = 3
_QUOTED_POST = "twitter-tweet"
_WRAPPERS = 3
_SPACES = 100  # letters


class Article(NamedTuple):
    html: str
    text: str
    images: tuple[Image, ...]


def article_in(page: NewsPage, metadata: Metadata) -> Article:
    """Returns the article on a page; its text is empty if none was found. Changes the page's tree."""
    images = _images(page, metadata.image)
    blocks = trimmed(_text_blocks(page), metadata.title, metadata.author)
    text = "\n".join(block.text for block in blocks)
    body = _paragraphs(metadata.body)
    if _says_more(body, text) or (len(blocks) < 2 < len(body) and _says_more(body, text, 0.9)):
        return Article("".join(f"<p>{escape(part)}</p>\n" for part in body), "\n".join(body), images)
    html = "".join(_html(blocks))
    return Article(clean_html(html, page.base), text, images)


def _text_blocks(page: NewsPage) -> list[Block]:
    """Returns the blocks of the text.

    The fast way nearly always finds them; if it found little on a long page, or much less than the page has in
    paragraphs, look again.
    """
    _drop_unread(page.tree)
    _keep_quoted_posts(page.tree)
    prose = prose_of(page.tree)
    blocks = _extracted(page.tree, fast=True, favor_recall=True)
    length = _length(blocks)
    if length < _LITTLE and length < _SHARE_OF_PAGE * len(page.tree.text_content()):
        blocks = _extracted(page.tree, fast=False, favor_recall=False) or blocks
    if _length(blocks) < _SHARE_OF_PROSE * prose.letters:
        return max(blocks, blocks_of(prose), key=_length)
    fewest = _SEVERAL + 2 * len(_headings(blocks))
    has_headings = sum(1 for _ in islice(page.tree.iter(*HEADINGS), fewest)) == fewest
    return _with_headings(blocks, prose, fewest) if has_headings else blocks


def _with_headings(blocks: list[Block], prose: Prose, fewest: int) -> list[Block]:
    """Returns the paragraphs of the page instead, if they say the same and have so many headings between them."""
    others = blocks_of(prose)
    headings = _headings(others)
    length = _length(others) - _length(headings)
    is_same = abs(length - _length(blocks)) <= _NEARLY_SAME * _length(blocks)
    has_table = any(block.element.tag == "table" for block in blocks)
    return others if len(headings) >= fewest and is_same and not has_table else blocks


def _headings(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if block.element.tag == "head"]


def _length(blocks: list[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _extracted(tree: HtmlElement, *, fast: bool, favor_recall: bool) -> list[Block]:
    from trafilatura import bare_extraction

    # It logs every page on which it finds little; we report that ourselves.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    document: Any = bare_extraction(
        tree,
        fast=fast,
        favor_recall=favor_recall,
        include_comments=False,
        include_formatting=True,
        include_links=True,
        output_format="html",
    )
    return [block_of(element) for element in _top(document.body)] if document is not None else []


def _drop_unread(tree: HtmlElement) -> None:
    """Removes what no reader sees, because trafilatura copies the tree several times."""
    etree.strip_elements(tree, *_UNREAD, with_tail=False)
    for script in list(tree.iter("script")):
        if "ld+json" not in (script.get("type") or ""):
            script.drop_tree()


def _keep_quoted_posts(tree: HtmlElement) -> None:
    """Removes the names of boxes that have nothing but a quoted post: what is called social is taken for buttons."""
    quotes = (quote for quote in tree.iter("blockquote") if _QUOTED_POST in (quote.get("class") or ""))
    for quote in list(islice(quotes, MAX_QUOTED)):
        letters = len(quote.text_content())
        for box in (quote, *islice(quote.iterancestors("div", "figure", "p", "section"), _WRAPPERS)):
            if text_within(box, letters + _SPACES) is None:
                break
            box.attrib.pop("class", None)
            box.attrib.pop("id", None)


def _top(body: _Element) -> Iterator[_Element]:
    """Yields the blocks of a text, without the boxes around them."""
    for child in body:
        if child.tag in ("body", "div", "main", "article", "section"):
            if (child.text or "").strip():
                yield _loose(child)
            else:
                yield from _top(child)
        else:
            yield child


def _loose(box: _Element) -> _Element:
    box.tag = "p"
    return box


def _says_more(body: list[str], text: str, times: float = _LONGER) -> bool:
    """Whether the text for programs has all of the text that was found, and is so many times as long."""
    whole = "\n".join(body)
    if len(whole) < max(times * len(text), 500):
        return False
    words = set(_WORDS.findall(text.lower()))
    return len(words & set(_WORDS.findall(whole.lower()))) >= _ENOUGH_SHARED * len(words)


def _paragraphs(body: str) -> list[str]:
    parts = (_TAG.sub(" ", part) for part in _PARAGRAPH_END.split(unescape(body)))
    return [line for part in parts if (line := " ".join(unescape(part).split()))]


def _html(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _element(block.element)
        yield "\n"


def _element(element: _Element) -> Iterator[str]:
    """Yields an element in the extractor's own vocabulary, as HTML."""
    opening, closing = _tags(element)
    yield opening
    yield escape(element.text or "", quote=False)
    for child in element:
        yield from _element(child)
        yield escape(child.tail or "", quote=False)
    yield closing


def _tags(element: _Element) -> tuple[str, str]:
    rend = element.get("rend") or ""
    match element.tag:
        case "ref":
            return f'<a href="{escape(element.get("target") or "")}">', "</a>"
        case "lb":
            return "<br>", ""
        case "head":
            name = rend if rend in ("h2", "h3", "h4", "h5", "h6") else "h2"
        case "list":
            name = _LISTS.get(rend, "ul")
        case "hi":
            name = _INLINE.get(rend, "")
        case "code":
            name = "pre" if "\n" in "".join(map(str, element.itertext())) else "code"
        case str(tag):
            name = _BLOCKS.get(tag, "")
        case _:
            name = ""
    return (f"<{name}>", f"</{name}>") if name else ("", "")


def _images(page: NewsPage, named: str | None) -> tuple[Image, ...]:
    """Returns each image once: first the one that the metadata names, then those in the text, in page order."""
    found: dict[str, Image] = {}
    if named:
        found[identity(named)] = Image(named)
    for image in _in_text(_text_box(page.tree), page.base):
        known = found.setdefault(identity(image.url), image)
        if not known.alt and image.alt:
            found[identity(image.url)] = image
        if len(found) == MAX_IMAGES:
            break
    return tuple(found.values())


def _text_box(tree: HtmlElement) -> HtmlElement | None:
    """Returns the element that contains the article: the one whose own paragraphs have the most text."""
    weights: dict[HtmlElement, int] = {}
    for paragraph in tree.iter("p"):
        box = paragraph.getparent()
        if box is not None:
            weights[box] = weights.get(box, 0) + len(paragraph.text_content())
    best = max(weights, key=weights.__getitem__, default=None)
    around = next(best.iterancestors("article", "main"), None) if best is not None else None
    return around if around is not None else best


def _in_text(box: HtmlElement | None, base: str) -> Iterator[Image]:
    if box is None:
        return
    for node in box.iter("img"):
        if _is_small(node) or next(node.iterancestors(*_NOT_TEXT), None) is not None:
            continue
        link = next((link for name in _IMAGE_SOURCES if (link := _link(node.get(name), base))), None)
        if link and not _DECORATION.search(link):
            yield Image(link, plain(node.get("alt") or "")[:MAX_ALT])


def _link(value: str | None, base: str) -> str | None:
    """Returns the first address in a `src` or `srcset`.

    Images that load later often have a placeholder as their `src`.
    """
    first = (value or "").strip().partition(" ")[0].rstrip(",")
    link = safe_link(first, base) if first and not first.startswith("data:") else None
    return link if link and link.startswith(("http://", "https://")) else None


def _is_small(node: HtmlElement) -> bool:
    sizes = [size.removesuffix("px") for name in ("width", "height") if (size := (node.get(name) or "").strip())]
    return any(size.isascii() and size.isdigit() and int(size[:6]) < SMALLEST for size in sizes)


def read_article(item: Item, response: Response) -> Page:
    """Returns the article of an item. Its id is the item's; the page only decides its address."""
    refuse_challenge(response.body, "the article")
    page = news_page(response)
    metadata = metadata_of(page, response.received_at)
    article = article_in(page, metadata)
    if len(article.text) < SHORTEST:
        raise blocked(page.source, "the article") or ReadFailed("No article text was found on the page.")
    title = metadata.title or item.title
    published = metadata.published or plausible(item.created_at, response.received_at)
    post = Post(
        source_post_id=item.id,
        url=metadata.url,
        title=title,
        content=article.html,
        author=metadata.author,
        created_at=published or response.received_at,
        text_hash=text_hash(title, article.html),
        dated=published is not None,
        updated_at=metadata.modified,
        lang=metadata.language,
        images=article.images,
    )
    return Page([post], None, Facts(format=FORMAT))
