"""The links that an answer's Link header names (RFC 8288): how a server says where a feed's hub is."""

from __future__ import annotations

import re

_LINK = re.compile(r'<([^<>]*+)>((?:[^<>",]|"[^"]*+")*+)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*+)"|([^\s";]++))', re.IGNORECASE)


def links_in_header(header: str | None) -> dict[str, str]:
    """Addresses by what they are to the document (`hub`, `self`, …), as written; the first of each wins."""
    found: dict[str, str] = {}
    for address, parameters in _LINK.findall(header or ""):
        rel = _REL.search(parameters)
        for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
            found.setdefault(name, address.strip())
    return found
