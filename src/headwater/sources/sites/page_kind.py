"""Whether a page with links that look alike is a list of articles, or something else that has such links.

An article has long text that belongs to none of its links. A shop has prices beside them. A thread says that it is one,
or its links lead to threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

from headwater.sources.sites.links import ArticleLink, address_of, has_date, text_within
from headwater.sources.sites.metadata import declared_types
from headwater.sources.web_page import NewsPage

SHORTEST = 80  # letters; less is not a paragraph
LONG = 800  # letters of one box, which an excerpt does not have
MOST = 0.35  # of the text, in one box that belongs to no link
MOST_OWNED = 0.75  # of the text, in the box of one link; blogs show whole posts, and one is longer than the others
TEXT_PER_LINK = 400  # letters that belong to none; lists have less
DECLARED_TEXT_PER_LINK = 200  # letters, on a page that calls itself an article
BEHIND = 2  # elements between a link and its excerpt, if they have no box
MAX_BEHIND = 60  # elements between a linked headline and the end of its text, if they have no box
CARD = 5  # elements between a link and the box of its excerpt
MOST_IN_CARD = 3  # links; a box with more is the list itself
MAX_CARD = 1_500  # letters; with prices looked for
LEAST_OF_LINE = 0.6  # of a line's text, if it is a link and not a sentence
MANY = 0.4  # of the links
_HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
_CARD_ENDS = frozenset({"article", "li", "section", "main", "body", "tr"})
_THREADS = frozenset({"discussionforumposting", "qapage", "question"})
_PRODUCTS = frozenset({"product", "productgroup", "offercatalog"})
_THREAD_ADDRESS = re.compile(
    r"^https?://(?:forums?|community|discuss|boards?)\.|/(?:threads?|forums?|discussions|questions)/[^/]|/topics?/\d"
    r"|viewtopic|showthread|forumdisplay|/t/[^/]+/\d|[?&]topic=|thread-\d",
    re.IGNORECASE,
)
_PRODUCT_ADDRESS = re.compile(
    r"/(?:products?|prod|ip|dp|item|listing|collections|shop|store|buy)/[^/]|/p/[^/]*\d{5}", re.IGNORECASE
)
_NOTICE = re.compile(r"onetrust|cookie|consent|gdpr", re.IGNORECASE)
_PRODUCT_CARD = re.compile(
    r"(?:^|[\s_-])product(?:s?[_-](?:card|item|tile|grid|list|thumb|title|name|loop|block|summary)|\s|$)", re.IGNORECASE
)
_CART = re.compile(
    r"/(?:shopping-?)?(?:cart|basket|checkout|trolley|warenkorb|panier)(?:\.\w+)?/?(?:[?#]|$)", re.IGNORECASE
)
_PRICE = re.compile(
    r"(?:[$£€¥₹]|\b(?:USD|EUR|GBP|AUD|CAD|CHF|Rs\.?))\s?\d[\d.,]*+(?!\s?(?:[mbk]\b|bn|million|billion|trillion|thousand))"
    r"|\d[\d.,]*\s?(?:€|zł|kr\b|руб|₽|元|円)",
    re.IGNORECASE,
)
_BUY = re.compile(
    r"(?:add to (?:cart|bag|basket|trolley)|in den warenkorb|ajouter au panier|加入购物车)", re.IGNORECASE
)


def is_list(page: NewsPage, links: list[ArticleLink]) -> bool:
    """Whether the links that were found on a page are a list of articles."""
    urls = {link.url for link in links}
    anchors = [node for node in page.tree.iter("a") if address_of(node, page) in urls]
    return not (is_thread(page, urls) or is_shop(page, urls, anchors) or is_article(page, len(urls), anchors))


def is_thread(page: NewsPage, urls: set[str]) -> bool:
    """Whether a page is a thread of a forum, or a list of threads, which is a forum to follow and no news site."""
    types = declared_types(page.tree)
    if types & _THREADS or _THREAD_ADDRESS.search(page.url):
        return True
    if "comment" in types and len(page.tree.xpath('.//*[contains(@itemtype, "/Comment")]')) >= len(urls):
        return True
    return sum(bool(_THREAD_ADDRESS.search(url)) for url in urls) >= MANY * len(urls)


def is_shop(page: NewsPage, urls: set[str], anchors: list[HtmlElement]) -> bool:
    """Whether a page sells something: a product, or a collection of them."""
    kind = str(next(iter(page.tree.xpath('.//meta[@property="og:type"]/@content')), "")).lower()
    if kind.startswith(("product", "og:product")) or declared_types(page.tree) & _PRODUCTS:
        return True
    if sum(bool(_PRODUCT_ADDRESS.search(url)) for url in urls) >= MANY * len(urls):
        return True
    sold = {address_of(node, page) for node in anchors if _is_product_card(node) or _has_price(node)}
    if len(sold) >= MANY * len(urls) or len(_BUY.findall(page.tree.text_content())) >= max(2, MANY * len(urls)):
        return True
    return _has_cart(page) and not any(has_date(node, page) for node in anchors)


def _is_product_card(node: HtmlElement) -> bool:
    return any(_PRODUCT_CARD.search(box.get("class", "")) for box in _card(node))


def _has_cart(page: NewsPage) -> bool:
    return any(_CART.search(href) for href in page.tree.xpath(".//a/@href"))


def _has_price(node: HtmlElement) -> bool:
    for box in _card(node):
        text = text_within(box, MAX_CARD)
        if text is None:
            return False
        if _PRICE.search(text):
            return True
    return False


def is_article(page: NewsPage, links: int, anchors: list[HtmlElement]) -> bool:
    """Whether a page is an article that also links to others.

    The text of a list belongs to its links: it is in their boxes, or right behind them. If most of it belongs to one
    link, that link is in the article.
    """
    boxes = _cards(anchors)
    free: dict[HtmlElement, int] = {}
    owned: dict[HtmlElement, int] = {}
    for node in page.tree.iter("p"):
        length = len(" ".join(node.text_content().split()))
        if length > SHORTEST and not _is_notice(node):
            owner = _owner(node, boxes)
            weights, box = (free, node.getparent()) if owner is None else (owned, owner)
            weights[box] = weights.get(box, 0) + length
    whole = sum(free.values()) + sum(owned.values())
    most_free, most_owned = max(free.values(), default=0), max(owned.values(), default=0)
    if (most_free >= LONG and most_free >= MOST * whole) or (most_owned >= LONG and most_owned >= MOST_OWNED * whole):
        return True
    kind = str(next(iter(page.tree.xpath('.//meta[@property="og:type"]/@content')), "")).lower()
    unowned = sum(free.values())
    return unowned > TEXT_PER_LINK * links or (kind == "article" and unowned > DECLARED_TEXT_PER_LINK * links)


def _is_notice(node: HtmlElement) -> bool:
    """Whether a paragraph is part of a box that asks for consent, which may have more text than the page."""
    return any(_NOTICE.search(f"{box.get('class', '')} {box.get('id', '')}") for box in node.iterancestors("div"))


def _owner(node: HtmlElement, boxes: set[HtmlElement]) -> HtmlElement | None:
    """Returns the box of the link that a paragraph belongs to; None if it belongs to none."""
    around = [box for box in node.iterancestors() if box in boxes]
    if around:
        return around[-1]
    before = node.getprevious()
    for place in range(MAX_BEHIND):
        if before is None or (place < BEHIND and before in boxes):
            return before
        if before.tag in _HEADINGS:
            return before if before in boxes else None
        before = before.getprevious()
    return None


def _cards(anchors: list[HtmlElement]) -> set[HtmlElement]:
    """Returns the boxes of links with their excerpts: those that have links to few pages of the list in them."""
    found: dict[HtmlElement, set[str | None]] = {}
    for node in anchors:
        if not _is_inline(node):
            for box in _card(node):
                found.setdefault(box, set()).add(node.get("href"))
    return {box for box, links in found.items() if len(links) <= MOST_IN_CARD}


def _card(node: HtmlElement) -> Iterator[HtmlElement]:
    for depth, box in enumerate(node.iterancestors()):
        if depth == CARD or box.tag in ("main", "body"):
            return
        yield box
        if box.tag in _CARD_ENDS:
            return


def _is_inline(node: HtmlElement) -> bool:
    """Whether a link is part of a sentence, not the start of a line or most of it."""
    paragraph = next(node.iterancestors("p"), None)
    if paragraph is None or (node.getparent() is paragraph and not (paragraph.text or "").strip()):
        return False
    most = len(node.text_content()) / LEAST_OF_LINE
    return text_within(paragraph, int(most)) is None
