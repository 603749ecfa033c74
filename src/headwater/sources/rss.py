"""Feeds: RSS, RDF, Atom and JSON Feed. The request for one, and what its answer says.

    bytes -> UTF-8 -> no DTD -> lxml -> draft -> rules -> Page
                                 | not well-formed
                                 +-> repair -> lxml
                                        | still not
                                        +-> feedparser (loose)

Whoever reads it, `feeds.posts` applies the same rules.
"""

from __future__ import annotations

from datetime import datetime

from lxml import etree

from headwater.errors import EmptyAnswer, NotAFeed, TooDeep
from headwater.model import Page, Request, Response, Source, SourceState
from headwater.sources.feeds.draft import FeedDraft
from headwater.sources.feeds.encoding import as_utf8
from headwater.sources.feeds.json import read_json
from headwater.sources.feeds.link_header import links_in_header
from headwater.sources.feeds.loose import read_loose
from headwater.sources.feeds.posts import page_of
from headwater.sources.feeds.prolog import without_doctype
from headwater.sources.feeds.repair import (
    entries_begun,
    has_unended_text,
    holds_feed,
    trimmed,
    with_characters_repaired,
    with_structure_repaired,
    with_text_escaped,
)
from headwater.sources.feeds.walls import instead_of_a_feed, is_page
from headwater.sources.feeds.xml import read_tree
from headwater.urls import safe_link

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9,"
    " application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.6, */*;q=0.1"
)
# The loose reader takes seconds for a megabyte; what is larger has to be well-formed.
MAX_LOOSE = 4_000_000


def first(source: Source, state: SourceState) -> Request:
    return Request(source.address, (("Accept", ACCEPT),))


def read(source: Source, state: SourceState, response: Response) -> Page:
    page = read_feed(
        response.body,
        url=response.url,
        content_type=response.headers.get("content-type"),
        received_at=response.received_at,
        language=response.headers.get("content-language"),
    )
    links = links_in_header(response.headers.get("link"))
    return _pushed_by(page, links, response.url) if "hub" in links else page


def _pushed_by(page: Page, links: dict[str, str], url: str) -> Page:
    """WebSub believes the header before the document, in its hub and in the address that the hub knows the feed by."""
    hub, itself = safe_link(links["hub"], url), safe_link(links.get("self"), url)
    facts = page.facts
    return page._replace(facts=facts._replace(hub=hub or facts.hub, self_url=itself or facts.self_url))


def read_feed(
    body: bytes, *, url: str, content_type: str | None, received_at: datetime, language: str | None = None
) -> Page:
    """What a document says that was received from `url`. Raises a ReadFailed where it is not a feed.

    `language` is what the answer's headers say, for documents that do not say it themselves.
    """
    draft = draft_of(body, content_type)
    if draft.about.lang is None:
        draft.about.lang = language
    return page_of(draft, url=url, received_at=received_at)


def draft_of(body: bytes, content_type: str | None) -> FeedDraft:
    body = as_utf8(body, content_type).strip(b" \t\r\n\0")
    if not body:
        raise EmptyAnswer("The server answered, but with nothing.")
    if body[:1] in {b"{", b"["}:
        return read_json(body)
    if is_page(body):
        return _feed_in_page(body)
    body = without_doctype(body)
    try:
        # Junk after the end is by far the commonest fault; seeing it costs nothing.
        return _tree(body if body.endswith(b">") else trimmed(body))
    except etree.XMLSyntaxError as error:
        _refuse_excess(error)
    return _repaired(body)


def _feed_in_page(body: bytes) -> FeedDraft:
    """A few feeds come wrapped in a page; any other page is not one."""
    if holds_feed(body):
        try:
            return _tree(trimmed(body))
        except (etree.XMLSyntaxError, NotAFeed):
            pass
    raise instead_of_a_feed(body)


def _repaired(body: bytes) -> FeedDraft:
    """Repair more and more of a document until it can be read; salvage what is left of one that never can."""
    cut_off = False
    reason = ""
    for repair in (with_characters_repaired, with_structure_repaired, with_text_escaped):
        body, ended_early = repair(body)
        cut_off = cut_off or ended_early
        try:
            draft = _tree(body)
            break
        except etree.XMLSyntaxError as error:
            _refuse_excess(error)
            reason = error.msg
    else:
        if len(body) > MAX_LOOSE:
            raise NotAFeed(f"The document is not well-formed: {reason}.")
        draft = read_loose(body, reason)
        cut_off = cut_off or len(draft.entries) < entries_begun(body) or has_unended_text(body)
    return draft._replace(truncated=draft.truncated or cut_off)


def _tree(body: bytes) -> FeedDraft:
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
        raise TooDeep(f"The document goes beyond what a feed can need: {message}.") from error
