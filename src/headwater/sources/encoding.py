"""The charset of a document: by byte order mark, HTTP header, XML declaration, and finally by the bytes themselves."""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z0-9._:-]{2,40})\s*[\"']")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)

# What a label means on the Web, where Python takes it to mean something else.
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
# The charsets that the Web uses. UTF-7 is not among them: it hides markup from anybody who looks at the bytes.
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
SAMPLE = 100_000  # bytes that are looked at to guess a charset
# Per charset: the most common letters of its language, and the least share they have of a text's letters beyond ASCII.
# A text that is decoded with the wrong charset has them only by chance.
_KANA = "のにはをたがでてとしれさあいうるなもからりきこそくまつよすんけねえわみやめだどッンスルトラクリアイータ、。"
_LANGUAGES = (
    ("cp932", _KANA, 0.3),
    ("euc_jp", _KANA, 0.3),
    ("cp949", "이다는을가의에고한를하은지도서기로사라자인정리수대어시부아나그스들해일전만과여", 0.25),
    ("gb18030", "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会，。", 0.15),
    ("big5hkscs", "的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年得就那要下以生會，。", 0.15),
    ("cp1251", "оеаинтсрвл", 0.45),
    ("koi8-r", "оеаинтсрвл", 0.45),
    ("cp866", "оеаинтсрвл", 0.45),
    ("cp1253", "αοιετσνηυρ", 0.45),
    ("cp1255", "יוהלאמרבתש", 0.45),
    ("cp1256", "الينمورتبه", 0.45),
    ("cp874", "านรอกเงมยลท่วาด้ส", 0.45),
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


def _stray_byte(error: UnicodeError) -> tuple[str, int]:
    # A byte that is not UTF-8 in a document that is: somebody pasted it from Windows.
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("headwater-stray-byte", _stray_byte)


def named(label: str | None) -> str | None:
    """Returns the codec that a charset label means; None if we do not read it. UTF-7 is one we do not read."""
    if not label:
        return None
    try:
        name = codecs.lookup(label.replace("x-sjis", "shift_jis")).name
    except LookupError:
        return None
    name = _MEANT.get(name, name)
    return name if name in _READ else None


def as_utf8(body: bytes, content_type: str | None) -> bytes:
    """Returns the document in UTF-8, without a byte order mark.

    Bytes that are UTF-8, or claim to be, stay as they are.
    """
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
    # Text in a single-byte charset is almost never valid UTF-8 by chance. Text in a two-byte charset can be.
    if not any(label in _MULTIBYTE for label in labels) and is_utf8(body):
        return body
    for label in labels:
        if label and not label.startswith(("utf-16", "utf-32")):
            try:
                return _without_declaration(body.decode(label)).encode("utf-8", "replace")
            except UnicodeDecodeError:
                continue
    if is_utf8(body):
        return body
    label = next((label for label in labels if label in _MULTIBYTE), "cp1252")
    return _converted(body, label)


def repaired_utf8(body: bytes) -> bytes:
    """Returns valid UTF-8, made from a document with some stray bytes or from one in another charset."""
    if is_utf8(body):
        return body
    # If most of it is good UTF-8, the rest was pasted from Windows. Otherwise none of it was UTF-8.
    right = len(_SEQUENCE.findall(body))
    wrong = len(_HIGH_BYTE.findall(_SEQUENCE.sub(b"", body)))
    if right * 2 >= wrong:
        return body.decode("utf-8", "headwater-stray-byte").encode("utf-8", "replace")
    return _converted(body, _guessed(body))


def undo_double_encoding(text: str) -> str:
    """Returns the text as it was before its UTF-8 was taken for Latin-1 or Windows-1252 and encoded again."""
    if text.isascii() or not ("Ã" in text or "Â" in text or "â" in text):
        return text
    for codec in ("latin-1", "cp1252"):
        try:
            return text.encode(codec).decode("utf-8")
        except UnicodeError:
            continue
    return text


def is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _converted(body: bytes, codec: str) -> bytes:
    return _without_declaration(body.decode(codec, "replace")).encode("utf-8", "replace")


def _without_declaration(text: str) -> str:
    return _DECLARATION.sub("", text, count=1)


def _guessed(body: bytes) -> str:
    """Returns the charset in which text that is not UTF-8 has the common letters of a language; else Windows-1252."""
    sample = _start(body)
    if b"\x1b$" in sample:
        return "iso2022_jp"
    runs = _HIGH_RUN.findall(sample)
    # Accented letters occur alone among others; letters of another script occur together.
    if sum(map(len, runs)) < 2 * len(runs):
        return "cp1252"
    best, best_score = "cp1252", 1.0
    for codec, letters, at_least in _LANGUAGES:
        beyond = _BEYOND_ASCII.findall(sample.decode(codec, "replace"))
        if beyond.count("\ufffd") * 50 > len(beyond):
            continue
        score = sum(map(set(letters).__contains__, beyond)) / max(1, len(beyond)) / at_least
        if score > best_score:
            best, best_score = codec, score
    return best


def _start(body: bytes) -> bytes:
    """Returns the first part of a document, up to the end of a line so that no character is cut in two."""
    if len(body) <= SAMPLE:
        return body
    end = body.rfind(b"\n", 0, SAMPLE)
    return body[: end if end > 0 else SAMPLE]
