"""Web pages: parsed into a tree, and recognised where they arrive instead of what was requested.

- `is_html`, `blocked` and `page_instead` recognise an ordinary page, a bot check, a login form
- `forum_page` parses a page for CSS selectors, by which forum profiles say where things are
- `news_page` parses a page for lxml, once for everything that reads it: its list, its article, its metadata
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, NamedTuple

from lxml import etree
from lxml.html import HtmlComment, HtmlElement
from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.errors import Blocked, EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.model import Response
from headwater.sources.encoding import as_utf8, is_utf8, repaired_utf8
from headwater.text import nests_deeply
from headwater.urls import joined

_PAGE = re.compile(
    rb"(?:\s|\xef\xbb\xbf|<\?xml[^>]*+>|<!--(?>.*?-->))*+<(?:!doctype\s+html|html|head|body)\b",
    re.DOTALL | re.IGNORECASE,
)
# These are only on pages that test the visitor: markup of the services that make such pages, and their titles.
_BOT_CHECK = re.compile(
    rb"cf-chl-|cf_chl_|challenge-platform|cf-browser-verification|g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api"
    rb"|px-captcha|perimeterx|_incapsula_resource|captcha-delivery\.com|datadome|within\.website/x/cmd/anubis"
    rb"|sucuri_cloudproxy|ddos protection by|unusual traffic from|enable javascript and cookies to continue"
    rb"|awswafcookiedomainlist|aws-waf-token|/_sec/cp_challenge|id=[\"']?captcha|class=[\"'][^\"'<>]*captcha"
    rb"|<title>\s*(?:just a moment|attention required|access denied|please wait|checking your browser|security check"
    rb"|are you (?:a )?(?:robot|human)|robot check|verify(?:ing)? you are human|making sure you|ddos-guard"
    rb"|403 forbidden|one moment, please|pardon our interruption|bot verification|request rejected|human verification)",
    re.IGNORECASE,
)
# These are nowhere else, not even on a page that also has a captcha in its login form: what such a page has is no text.
_CHALLENGE = re.compile(
    rb"id=[\"']?anubis_challenge|_cf_chl_opt\b|cf-browser-verification|/_sec/cp_challenge"
    rb"|<title>\s*(?:just a moment\.*|making sure you(?:'|&#39;|&#x27;|\xe2\x80\x99)re not a bot!?"
    rb"|attention required! \| cloudflare|one moment, please\.*|verify(?:ing)? you are human\.*|ddos-guard"
    rb"|pardon our interruption\.*|human verification|robot check|are you a robot\??)\s*</title>",
    re.IGNORECASE,
)
_LOGIN = re.compile(rb"<input[^<>]+type\s*=\s*[\"']?password", re.IGNORECASE)
_SEARCHED = 262_144  # bytes
_META_CHARSET_NEAR_TOP = re.compile(rb"<meta[^<>]{1,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
# A tag with a thousand attributes: the parser compares each one with all before it.
_ENDLESS_TAG = re.compile(
    r"<[a-zA-Z][^\s<>\"'=]*+(?:\s++[^\s<>\"'=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']++))?){1000}"
)
MAX_ELEMENTS = 200_000
_META_CHARSET = re.compile(rb"<meta[^<>]+?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
# Characters that XML does not allow, literally or as a reference. The extractor gives up on a page with one of them.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r")
_NUMBERED_CONTROL = re.compile(
    rb"&#(?:0{0,9}(?:[0-8]|1[124-9]|2\d|3[01]|6553[45])(?!\d)"
    rb"|[xX]0{0,9}(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
_count: Any = etree.XPath("count(//*)")
_SEARCHED_FOR_CHARSET = 16_384  # bytes
# lxml chooses a class in Python for every element that is touched. One class for all is chosen in C.
_ONE_CLASS = etree.ElementDefaultClassLookup(element=HtmlElement, comment=HtmlComment)


def is_html(body: bytes) -> bool:
    return _PAGE.match(body, 0, 65_536) is not None


def is_bot_check(page: bytes) -> bool:
    return _BOT_CHECK.search(page, 0, _SEARCHED) is not None


def refuse_challenge(page: bytes, wanted: str) -> None:
    """Raises Blocked if the page only tests the visitor. Its explanations look like a text of the site."""
    if _CHALLENGE.search(page, 0, _SEARCHED):
        raise Blocked(f"The server answered with a bot check instead of {wanted}.")


def has_login_form(page: bytes) -> bool:
    return _LOGIN.search(page, 0, _SEARCHED) is not None


def page_instead(page: bytes, wanted: str = "the feed") -> ReadFailed:
    """Returns the failure to report when a web page arrived and something else was wanted."""
    return blocked(page, wanted) or NotAFeed("The address is a web page, not a feed.")


def blocked(page: bytes, wanted: str) -> Blocked | None:
    """Returns the failure to report if a page keeps programs out; None if it does not."""
    if is_bot_check(page):
        return Blocked(f"The server answered with a bot check instead of {wanted}.")
    if has_login_form(page):
        return Blocked(f"The server answered with a login page instead of {wanted}.")
    return None


class ForumPage(NamedTuple):
    """`base` is where relative links start."""

    root: LexborNode
    url: str
    base: str
    received_at: datetime
    html: str


class NewsPage(NamedTuple):
    """`base` is where relative links start; `source` is what the page was parsed from, in UTF-8."""

    tree: HtmlElement
    url: str
    base: str
    source: bytes


def forum_page(response: Response) -> ForumPage:
    """Parses a page. Raises a ReadFailed if there is nothing on it, or if it would keep the parser busy."""
    html = _forum_text(response.body, response.headers.get("content-type"))
    if not html.strip(" \t\r\n\0\ufeff"):
        raise EmptyAnswer("The server sent an empty answer.")
    if nests_deeply(html) or _ENDLESS_TAG.search(html):
        raise TooDeep("The page is nested more deeply than a forum needs.")
    root = LexborHTMLParser(html).root
    if root is None:
        raise EmptyAnswer("The server sent a page with nothing on it.")
    first = root.css_first("base[href]")
    base = joined(response.url, first.attributes.get("href") if first else None) or response.url
    return ForumPage(root, response.url, base, response.received_at, html)


def _forum_text(body: bytes, content_type: str | None) -> str:
    """Returns the page's text. If the header does not name a charset, the page may."""
    declared = _META_CHARSET_NEAR_TOP.search(body, 0, 4_096)
    if declared and "charset" not in (content_type or "").lower():
        content_type = f"text/html; charset={declared[1].decode('ascii')}"
    return repaired_utf8(as_utf8(body, content_type)).decode("utf-8", "replace")


def news_page(response: Response) -> NewsPage:
    """Parses a page. Raises a ReadFailed if there is none."""
    source = _news_source(response.body, response.headers.get("content-type"))
    if not source.strip():
        raise EmptyAnswer("The server sent an empty answer.")
    tree = _tree(source)
    declared = tree.find(".//base[@href]")
    base = joined(response.url, declared.get("href") if declared is not None else None) or response.url
    return NewsPage(tree, response.url, base if base.startswith(("http://", "https://")) else response.url, source)


def _news_source(body: bytes, content_type: str | None) -> bytes:
    """Returns the bytes as UTF-8: by the header, then by what the page declares, then by the bytes themselves."""
    text = as_utf8(body, content_type)
    if not is_utf8(text) and (declared := _META_CHARSET.search(body[:_SEARCHED_FOR_CHARSET])):
        text = as_utf8(body, f"charset={declared[1].decode('ascii')}")
    return _without_controls(repaired_utf8(text))


def _without_controls(text: bytes) -> bytes:
    text = text.replace(b"\f", b" ").translate(None, _CONTROLS)
    if b"\xef\xbf" in text:
        text = text.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    return _NUMBERED_CONTROL.sub(b"", text) if b"&#" in text else text


def _tree(source: bytes) -> HtmlElement:
    # One parser per page: a hostile one leaves nothing behind for the next.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    parser.set_element_class_lookup(_ONE_CLASS)
    try:
        tree = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as error:
        message = str(error.msg)
        if "depth" in message.lower() or "huge" in message.lower():
            raise TooDeep(f"The page is nested more deeply than a page needs: {message}.") from error
        raise ReadFailed("The answer is not a readable web page.") from error
    if tree is None:
        raise ReadFailed("The answer is not a readable web page.")
    if _count(tree) > MAX_ELEMENTS:
        raise TooDeep(f"The page has more than {MAX_ELEMENTS:,} elements.")
    return tree
