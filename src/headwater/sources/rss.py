"""Feeds: RSS, RDF, Atom and JSON Feed. `headwater.sources.feeds` reads them."""

from __future__ import annotations

import re

from headwater.model import Page, Request, Response, Source, SourceState
from headwater.sources.kind import Kind
from headwater.urls import safe_link

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9,"
    " application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.6, */*;q=0.1"
)
_LINK = re.compile(r'<([^<>]*+)>((?:[^<>",]|"[^"]*+")*+)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*+)"|([^\s";]++))', re.IGNORECASE)


def first(source: Source, state: SourceState) -> Request:
    return Request(source.address, (("Accept", ACCEPT),))


def read(source: Source, state: SourceState, response: Response) -> Page:
    from headwater.sources.feeds import read_feed  # the parsers are loaded only where documents are parsed

    page = read_feed(
        response.body,
        url=response.url,
        content_type=response.headers.get("content-type"),
        received_at=response.received_at,
        language=response.headers.get("content-language"),
    )
    links = _links_in_header(response.headers.get("link"))
    return _pushed_by(page, links, response.url) if "hub" in links else page


def _links_in_header(header: str | None) -> dict[str, str]:
    """Returns the addresses in a Link header (RFC 8288), as written, by their relation (`hub`, `self`, …).

    If a relation occurs twice, the first one counts.
    """
    found: dict[str, str] = {}
    for address, parameters in _LINK.findall(header or ""):
        rel = _REL.search(parameters)
        for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
            found.setdefault(name, address.strip())
    return found


def _pushed_by(page: Page, links: dict[str, str], url: str) -> Page:
    """Returns the page with the hub, and the address by which the hub knows the feed, from the header.

    In WebSub the header overrides the document.
    """
    hub, itself = safe_link(links["hub"], url), safe_link(links.get("self"), url)
    facts = page.facts
    return page._replace(facts=facts._replace(hub=hub or facts.hub, self_url=itself or facts.self_url))


KIND = Kind("rss", "feed", "feeds", first, read, is_often_unchanged=True, can_be_pushed=True)
