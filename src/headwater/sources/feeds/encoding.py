"""Which characters a document's bytes stand for: by byte order mark, HTTP header, XML declaration, and the bytes."""

from __future__ import annotations

import codecs
import re

from headwater.sources.feeds.charset import guessed

_DECLARED = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z0-9._:-]{2,40})\s*[\"']")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)

# What a label means on the Web, where it differs from what Python takes it for.
_MEANT = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
# Charsets of text that the Web uses. UTF-7 is not among them: it hides markup from whoever looks at the bytes.
_SINGLE_BYTE = frozenset(
    [f"cp{number}" for number in (437, 850, 866, 874, *range(1250, 1259))]
    + [f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)]
    + ["koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"]
)
_MULTIBYTE = frozenset({"gb18030", "cp949", "cp932", "big5hkscs", "euc_jp", "iso2022_jp", "johab"})
_WIDE = frozenset({"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"})
_READ = _SINGLE_BYTE | _MULTIBYTE | _WIDE | {"utf-8"}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BARE_WIDE = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
    (b"{\0", "utf-16-le"),
    (b"\0{", "utf-16-be"),
)


def _stray_byte(error: UnicodeError) -> tuple[str, int]:
    # A byte that is not UTF-8 in a document that is: it was pasted from Windows.
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("headwater-stray-byte", _stray_byte)


def named(label: str | None) -> str | None:
    """The codec that a charset label means, if it is one for text that we read. UTF-7 is not."""
    if not label:
        return None
    try:
        name = codecs.lookup(label.replace("x-sjis", "shift_jis")).name
    except LookupError:
        return None
    name = _MEANT.get(name, name)
    return name if name in _READ else None


def as_utf8(body: bytes, content_type: str | None) -> bytes:
    """The document in UTF-8, without byte order mark. Bytes that are UTF-8, or claim to be, come back as they are."""
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :] if codec == "utf-8" else _converted(body[len(mark) :], codec)
    for start, codec in _BARE_WIDE:
        if body.startswith(start):
            return _converted(body, codec)
    found = _CHARSET.search(content_type) if content_type else None
    by_header = named(found[1]) if found else None
    declared = _DECLARED.match(body)
    by_document = named(declared[1].decode("ascii")) if declared else None
    if by_document == "utf-8" or (by_document is None and by_header in {None, "utf-8"}):
        return body
    return _by_label(body, by_header, by_document)


def _by_label(body: bytes, by_header: str | None, by_document: str | None) -> bytes:
    if by_header in {None, "utf-8"} or by_header not in _MULTIBYTE:
        labels = [by_document, by_header]
    else:
        labels = [by_header, by_document]
    # Text in a single-byte charset is practically never valid UTF-8 by chance; two-byte charsets can be.
    if not any(label in _MULTIBYTE for label in labels) and _is_utf8(body):
        return body
    for label in labels:
        if label and not label.startswith(("utf-16", "utf-32")):
            try:
                return _without_declaration(body.decode(label)).encode("utf-8", "replace")
            except UnicodeDecodeError:
                continue
    if _is_utf8(body):
        return body
    label = next((label for label in labels if label in _MULTIBYTE), "cp1252")
    return _converted(body, label)


def repaired_utf8(body: bytes) -> bytes:
    """UTF-8 in which no byte is wrong: that of a document with some stray bytes, or of one in another charset."""
    if _is_utf8(body):
        return body
    # Where most of it is good UTF-8, the rest was pasted from Windows; else none of it was UTF-8.
    right = len(_SEQUENCE.findall(body))
    wrong = len(_HIGH_BYTE.findall(_SEQUENCE.sub(b"", body)))
    if right * 2 >= wrong:
        return body.decode("utf-8", "headwater-stray-byte").encode("utf-8", "replace")
    return _converted(body, guessed(body))


def unmixed(text: str) -> str:
    """The text, or what it was before somebody took its UTF-8 for Latin-1 or Windows-1252 and encoded it again."""
    if text.isascii() or not ("Ã" in text or "Â" in text or "â" in text):
        return text
    for codec in ("latin-1", "cp1252"):
        try:
            return text.encode(codec).decode("utf-8")
        except UnicodeError:
            continue
    return text


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _converted(body: bytes, codec: str) -> bytes:
    return _without_declaration(body.decode(codec, "replace")).encode("utf-8", "replace")


def _without_declaration(text: str) -> str:
    return _DECLARATION.sub("", text, count=1)
