"""Removes the DOCTYPE of a document, so that no DTD ever reaches an XML parser."""

from __future__ import annotations

import re

from headwater.errors import TooDeep

MAX_ENTITIES = 300
MAX_ENTITY_LENGTH = 1_000
MAX_GROWTH = 200_000

_DOCTYPE = re.compile(rb"\A(?:\s++|<\?(?>.*?\?>)|<!--(?>.*?-->))*+(<!DOCTYPE\b)", re.DOTALL | re.IGNORECASE)
_DOCTYPE_END = re.compile(
    rb"(?:[^\[\]<>\"']++|\"[^\"]*+\"|'[^']*+')*+(?:\[(?P<subset>(?:[^\]<\"']++|<!--(?>.*?-->)|<\?(?>.*?\?>)|<|\"[^\"]*+\"|'[^']*+')*+)\]\s*+)?>",
    re.DOTALL,
)
_ENTITY = re.compile(
    rb"<!ENTITY\s+(?P<parameter>%\s+)?(?P<name>[^\s%\"'<>&;]{1,100})\s+(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<external>SYSTEM|PUBLIC)\b)"
)
_REFERENCE = re.compile(rb"&([^\s#&;<>\"'%]{1,100});")
_REFERENCE_OUTSIDE_CDATA = re.compile(rb"<!\[CDATA\[(?>.*?\]\]>)|&([^\s#&;<>\"'%]{1,100});", re.DOTALL)
_PREDEFINED = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def without_doctype(body: bytes) -> bytes:
    """The document without its DOCTYPE, and with the plain entities that it declares replaced by their text.

    Raises TooDeep for entities that are made of others, are long, or make the document grow. Ignores external ones.
    """
    found = _DOCTYPE.match(body, 0, 65_536)
    if not found:
        return body
    start = found.start(1)
    end = _DOCTYPE_END.match(body, found.end(1))
    if not end:
        if b"<!ENTITY" in body[start : start + 65_536]:
            raise TooDeep("The document type declaration cannot be read and declares entities.")
        return body
    rest = body[end.end() :]
    entities = _plain_entities(end["subset"] or b"")
    return body[:start] + (_expanded(rest, entities) if entities else rest)


def _plain_entities(subset: bytes) -> dict[bytes, bytes]:
    if b"<!ENTITY" not in subset:
        return {}
    found: dict[bytes, bytes] = {}
    for count, entity in enumerate(_ENTITY.finditer(subset), 1):
        if count > MAX_ENTITIES:
            raise TooDeep(f"The document declares more than {MAX_ENTITIES} entities.")
        if entity["external"] or entity["parameter"]:
            continue
        value = entity["double"] if entity["double"] is not None else entity["single"]
        if len(value) > MAX_ENTITY_LENGTH:
            raise TooDeep(f"The document declares an entity of {len(value):,} bytes.")
        found.setdefault(entity["name"], value)
    for value in found.values():
        if any(name in found for name in _REFERENCE.findall(value) if name not in _PREDEFINED):
            raise TooDeep("The document declares entities in terms of each other.")
    return found


def _expanded(rest: bytes, entities: dict[bytes, bytes]) -> bytes:
    growth = 0

    def value_of(reference: re.Match[bytes]) -> bytes:
        nonlocal growth
        name = reference[1]
        if name is None or name in _PREDEFINED or name not in entities:
            return reference[0]
        growth += len(entities[name])
        if growth > MAX_GROWTH:
            raise TooDeep("The entities that the document declares make it grow too much.")
        return entities[name]

    return _REFERENCE_OUTSIDE_CDATA.sub(value_of, rest)
