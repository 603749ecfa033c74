"""Elements of an XML tree, written as HTML: for content that is in a feed unescaped."""

from __future__ import annotations

from html import escape
from urllib.parse import urljoin

from lxml import etree

XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_LINKS = frozenset({"href", "src", "cite"})


def inner_html(element: etree._Element, base: str | None) -> str:
    """The content of an element, whose base is `base`. Links with an xml:base of their own become absolute."""
    if not len(element):
        return escape(element.text or "", quote=False)
    out: list[str] = [escape(element.text or "", quote=False)]
    for child in element:
        _write(child, base, base, out)
    return "".join(out)


def _write(element: etree._Element, base: str | None, outer: str | None, out: list[str]) -> None:
    if isinstance(element.tag, str):
        tag = element.tag.rpartition("}")[2].lower()
        own = element.get(XML_BASE)
        base = joined(base, own) if own else base
        out.append(f"<{tag}{_attributes(element, base, base != outer)}>")
        out.append(escape(element.text or "", quote=False))
        for child in element:
            _write(child, base, outer, out)
        if tag not in _VOID:
            out.append(f"</{tag}>")
    out.append(escape(element.tail or "", quote=False))


def _attributes(element: etree._Element, base: str | None, moved: bool) -> str:
    written = ""
    for key, text in element.items():
        name, value = str(key), str(text)
        if name == XML_LANG:
            name = "lang"
        elif name.startswith("{"):
            continue
        elif moved and name in _LINKS:
            value = joined(base, value) or value
        written += f' {name}="{escape(value)}"'
    return written


def joined(base: str | None, link: str | None) -> str | None:
    """A link resolved against a base; the base itself if they do not fit together."""
    if not link:
        return base
    try:
        return urljoin(base or "", link.strip())
    except ValueError:
        return base
