"""A second check of clean HTML, with another parser than the one that cleaned it."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

TAGS = (
    "a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del"
    " details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p"
    " pre q rp rt ruby s samp section small strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul"
    " var wbr"
)
ATTRIBUTES = (
    "alt colspan datetime dir height href lang rel reversed rowspan scope span src start title type value width"
)
SCHEMES = ("http:", "https:", "mailto:", "magnet:", "ftp:", "gemini:", "tel:", "xmpp:", "irc:", "ircs:")


def unsafe_in(html: str) -> list[str]:
    """Returns what a browser would find in a fragment that must not be there, or that it breaks out of its place."""
    tags, attributes = frozenset(TAGS.split()), frozenset(ATTRIBUTES.split())
    page = LexborHTMLParser(f'<body><div id="in">{html}</div><p id="after"></p></body>')
    inside = page.css_first("#in")
    found: list[str] = []
    for node in inside.css("*") if inside else []:
        if node.id == "in":
            continue
        if node.tag not in tags:
            found.append(f"<{node.tag}>")
        for name, value in node.attributes.items():
            if name not in attributes:
                found.append(f"<{node.tag} {name}>")
            elif name in {"href", "src"} and not _as_browsed(value).startswith(SCHEMES):
                found.append(f"<{node.tag} {name}={value!r}>")
    after = page.css_first("#after")
    if inside is None or after is None or after.parent is None or after.parent.tag != "body":
        found.append("it breaks out of what it is put in")
    if any("\0" <= char < " " and char not in "\n\t" for char in html):
        found.append("a control character")
    return found


def _as_browsed(address: str | None) -> str:
    """Removes tabs and line breaks, which the URL standard ignores anywhere in an address."""
    return (address or "").translate(_IGNORED).strip().lower()


_IGNORED = dict.fromkeys(map(ord, "\t\n\r"))
