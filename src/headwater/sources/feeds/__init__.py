"""Reads feeds: RSS, RDF, Atom and JSON Feed.

    bytes -> UTF-8 -> no DTD -> lxml -> raw feed -> rules -> Page
                                 | not well-formed
                                 +-> repair -> lxml
                                        | still not
                                        +-> feedparser (loose)

Whichever parser reads it, `posts` applies the same rules.
"""

from __future__ import annotations

from datetime import datetime

from lxml import etree

from headwater.errors import EmptyAnswer, NotAFeed, TooDeep
from headwater.model import Page
from headwater.sources.encoding import as_utf8
from headwater.sources.feeds.json import read_json
from headwater.sources.feeds.posts import RawFeed, page_from
from headwater.sources.feeds.repair import (
    entries_begun,
    has_unclosed_text,
    holds_feed,
    read_loose,
    trimmed,
    with_characters_repaired,
    with_structure_repaired,
    with_text_escaped,
    without_doctype,
)
from headwater.sources.feeds.xml import read_tree
from headwater.sources.web_page import is_html, page_instead

# The loose parser takes seconds for a megabyte. Anything larger has to be well-formed.
MAX_LOOSE = 4_000_000


def read_feed(
    body: bytes, *, url: str, content_type: str | None, received_at: datetime, language: str | None = None
) -> Page:
    """Returns the posts and facts in a document that came from `url`. Raises a ReadFailed if it is not a feed.

    `language` is what the headers say, for documents that do not say it themselves.
    """
    feed = parse_feed(body, content_type)
    if feed.channel.lang is None:
        feed.channel.lang = language
    return page_from(feed, url=url, received_at=received_at)


def parse_feed(body: bytes, content_type: str | None) -> RawFeed:
    """Returns everything that a document says, before the rules are applied."""
    body = as_utf8(body, content_type).strip(b" \t\r\n\0")
    if not body:
        raise EmptyAnswer("The server sent an empty answer.")
    if body[:1] in {b"{", b"["}:
        return read_json(body)
    if is_html(body):
        return _feed_in_page(body)
    body = without_doctype(body)
    try:
        # Junk after the end is by far the most common fault, and cheap to see.
        return _parse_xml(body if body.endswith(b">") else trimmed(body))
    except etree.XMLSyntaxError as error:
        _refuse_excess(error)
    return _repaired(body)


def _feed_in_page(body: bytes) -> RawFeed:
    """Returns the feed that is wrapped in a web page, as a few are. Raises a ReadFailed for any other page."""
    if holds_feed(body):
        try:
            return _parse_xml(trimmed(body))
        except (etree.XMLSyntaxError, NotAFeed):
            pass
    raise page_instead(body)


def _repaired(body: bytes) -> RawFeed:
    """Repairs a document step by step until it can be read. If it never can, salvages what is there."""
    cut_off = False
    reason = ""
    for repair in (with_characters_repaired, with_structure_repaired, with_text_escaped):
        body, ended_early = repair(body)
        cut_off = cut_off or ended_early
        try:
            feed = _parse_xml(body)
            break
        except etree.XMLSyntaxError as error:
            _refuse_excess(error)
            reason = error.msg
    else:
        if len(body) > MAX_LOOSE:
            raise NotAFeed(f"The document is not well-formed: {reason}.")
        feed = read_loose(body, reason)
        cut_off = cut_off or len(feed.entries) < entries_begun(body) or has_unclosed_text(body)
    return feed._replace(truncated=feed.truncated or cut_off)


def _parse_xml(body: bytes) -> RawFeed:
    # One parser per document: a hostile one leaves nothing behind for the next.
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    root = etree.fromstring(body, parser)
    return read_tree(root, scoped=b"xml:" in body)


def _refuse_excess(error: etree.XMLSyntaxError) -> None:
    message = str(error.msg)
    if "Excessive depth" in message or "huge" in message.lower() or "Maximum" in message:
        raise TooDeep(f"The document exceeds what a feed needs: {message}.") from error
