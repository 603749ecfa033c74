"""What counts of a text: its words in one spelling, apart from what others put around it (labels, tags, links).

`normal(text)` and `normal_post(title, text)` are where everything in this folder begins. Words are lower case; each
Chinese or Japanese sign is a word of its own; numbers stay whole. Nothing here knows of other posts.

Two steps: `trimmed_post` cuts with a few patterns at both ends, `spelled` finds the words. The fast index does the
second step itself (`spelling.py`), by the same character classes.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import normalize

from headwater.dedup.words import LABELS, PUBLISHER_ENDINGS, PUBLISHER_WORDS


class Normal(NamedTuple):
    """A text as it is compared.

    `core` is its words with one space between them. The first `head` of them are the title's, if there is more than a
    title; the last `tail` of them are tags or stand behind a dash, and may be missing elsewhere. `labels` (BREAKING,
    快讯, a publisher's name) are not in it and mean nothing. `mentions` are whom it speaks to. `cut` says that the
    text ends in dots: it goes on elsewhere; `torn` that they follow a letter: the last word may go on as well.
    """

    core: str
    head: int = 0
    tail: int = 0
    labels: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    cut: bool = False
    torn: bool = False

    @property
    def words(self) -> list[str]:
        return self.core.split()


class Trimmed(NamedTuple):
    """A text in lower case whose ends are known, but not yet its words."""

    head: str
    body: str
    tail: str
    labels: tuple[str, ...]
    mentions: tuple[str, ...]
    cut: bool
    torn: bool


# Scripts that are written without spaces: Han, Hiragana, Katakana.
CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Marks that Python does not count as letters and without which words of these scripts would be others.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd"
    "\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56"
    "\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd"
    "\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u1dc0-\u1dff"
)
CURRENCY = "$€£¥₿"
LETTERS = rf"(?:[^\W\d_{CJK}]|[{_MARKS}])"
_WORD = re.compile(
    rf"(?:(?<!\S)-)?[{CURRENCY}]?\d+(?:[.,:/]\d+)*(?:%|(?:[^\W_{CJK}]+|[{_MARKS}]+)*)"
    rf"|(?:[^\W\d_{CJK}]+|[{_MARKS}]+)(?:[^\W_{CJK}]+|[{_MARKS}]+)*"
    rf"|[{CJK}]"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))")

_LINK = re.compile(r"https?:[!-~]*")
_BARE_LINK = re.compile(r"(?:www\.|\bpic\.twitter\.com/|\bt\.co/|\bt\.cn/)[!-~]*")
_EMOTE = re.compile(rf"\[(?=[^\[\]]*[{CJK}])[^\[\]\s\d]{{1,8}}\]")
_WHOLE_TOPIC = re.compile(rf"[\W_]*#([^#]*[{CJK}][^#]*)#[\W_]*")

_RELAY = re.compile(
    r"[\W_]{0,8}(?:(?:转发微博|轉發微博|转发|轉發|repost)[\s:。.,!]*)?"
    r"(?:(?:rt|mt|repost)\s+@\w+\s*[:\s]\s*|//\s*@[^:\s]{1,30}\s*:\s*|回复\s*@[^:\s]{1,30}\s*:\s*)"
)
_MENTIONS = re.compile(r"[^\w@]{0,8}@\w+(?:[\s,:]+\.?@\w+)*[\s,:]+")
_NAME = re.compile(r"@\w+")
# A label stands in brackets, between number signs, or before a colon, a bar, a dash or an exclamation mark.
_LABEL = re.compile(
    r"[^\w【\[(#]{0,12}(?:[【\[(#]\s*([^\W_][^【】\[\]()#:]{0,24}?)\s*[】\])#]"
    r"|([^\W_]+(?: [^\W_]+){0,2})\s*(?=[:|!–—-]))"
    r"[\s:|!–—-]*"
)
_TAGS = re.compile(r"(?:[\s,.]*#[^\s#]+#?)+[^\w#]*$")
_SOURCE = re.compile(
    r"\s*(?:\((?:来源|來源|图源|source|via|from)\s*:?\s*([^()]{1,30})\)"
    r"|(?:\b(?:via|h/t)\s+@|来源:|\bsource:\s*)(\S{2,24}))[\s.。]*$"
)
_IN_BRACKETS = re.compile(r"\s*\(([^()]{2,30})\)[\s.。]*$")
_SUFFIX = re.compile(r"(?:\s[-–—|·•]+\s+|\s*[|_]\s*)([^|_–—·•:\d,;?!\"]{2,32})$")
_DASH = re.compile("[–—·•]")
_CUT = re.compile(r"(\w?)\s*[\[(]?\.\.+[\])]?\s*(?:\(?(?:read|learn|see)?\s*more\)?)?\W*$")
_MOST_ROUNDS = 4
# Nobody writes more; what is longer is told by its beginning.
MOST_CHARACTERS = 200_000


def normal(text: str) -> Normal:
    """The text as it is compared. Its core is empty if there is nothing to compare: only links or emoji."""
    return normal_post(text, "")


def normal_post(title: str, text: str) -> Normal:
    """Title and text as one. A title that only repeats the beginning of the text is left out."""
    post = trimmed_post(title, text)
    parts = [spelled(part) for part in (post.head, post.body, post.tail)]
    head, _, tail = (part.count(" ") + 1 if part else 0 for part in parts)
    core = " ".join(filter(None, parts))
    return Normal(core, head, tail, post.labels, post.mentions, post.cut, post.torn)


def spelled(text: str) -> str:
    """The words of a trimmed text with one space between them."""
    core = " ".join(_WORD.findall(text))
    return _THOUSANDS.sub("", core) if "," in core else core


def trimmed_post(title: str, text: str) -> Trimmed:
    """A post in lower case, with what stands around it set aside."""
    if not text:
        return _trimmed(title)
    if not title:
        return _trimmed(text)
    body, head = _trimmed(text), _trimmed(title)
    if not body.body or not head.body:
        return body if body.body else head
    if body.body.startswith(head.body):
        if head.cut:
            return body
        at = len(head.body)
        return body._replace(head=body.body[:at], body=body.body[at:])
    return body._replace(head=f"{head.body} {head.tail}", labels=head.labels)


def _trimmed(text: str) -> Trimmed:
    text = _plain(text[:MOST_CHARACTERS])
    text, labels, mentions = _without_beginning(text)
    text, tail, more_labels, tear = _without_end(text)
    return Trimmed("", text, tail, (*labels, *more_labels), mentions, tear is not None, bool(tear))


def _plain(text: str) -> str:
    """One spelling of each character; no links, no apostrophes, no drawn faces."""
    if not text.isascii():
        text = normalize("NFKC", text).replace("’", "").replace("‘", "")
    text = text.lower().replace("'", "")
    if "http" in text:
        text = _LINK.sub(" ", text)
    if "www." in text or "t.c" in text or "pic." in text:
        text = _BARE_LINK.sub(" ", text)
    if "[" in text:
        text = _EMOTE.sub(" ", text)
    if "#" in text and len(text) < 200 and (topic := _WHOLE_TOPIC.fullmatch(text)):
        text = topic[1]
    return text


def _without_beginning(text: str) -> tuple[str, list[str], tuple[str, ...]]:
    """The text without who passed it on, whom it speaks to and what the newsroom shouted before it."""
    labels: list[str] = []
    mentions: tuple[str, ...] = ()
    for _ in range(_MOST_ROUNDS):
        before = len(text)
        if "@" in text:
            if relay := _RELAY.match(text):
                text = text[relay.end() :]
                labels.append("rt")
            elif addressed := _MENTIONS.match(text):
                mentions += tuple(sorted(_NAME.findall(addressed[0])))
                text = text[addressed.end() :]
        if (label := _LABEL.match(text)) and (found := (label[1] or label[2])) in LABELS:
            labels.append(found)
            text = text[label.end() :]
        if len(text) == before:
            break
    return text, labels, mentions


def _without_end(text: str) -> tuple[str, str, list[str], str | None]:
    """The text, its tail, publishers' names; the letter before the dots at its end, or None if it is not cut."""
    labels: list[str] = []
    tail = ""
    tear: str | None = None
    for _ in range(_MOST_ROUNDS):
        text = text.rstrip()
        before = len(text)
        end = text[-48:]
        if ".." in end and tear is None and not tail and (dots := _CUT.search(text, max(0, before - 40))):
            tear = dots[1]
            text = text[: dots.end(1)]
        if "#" in end and (tags := _TAGS.search(text, max(0, before - 300))):
            tail = f"{tags[0]} {tail}"
            text = text[: tags.start()]
        if source := _publisher(text, end):
            start, name = source
            if is_publisher(name):
                labels.append(name)
            else:
                tail = f"{text[start:]} {tail}"
            text = text[:start]
        if len(text) == before:
            break
    return text, tail, labels, tear


def _publisher(text: str, end: str) -> tuple[int, str] | None:
    """Where a name begins that stands behind the text, and the name."""
    start = max(0, len(text) - 48)
    if ("@" in end or ")" in end or ":" in end) and (source := _SOURCE.search(text, start)):
        return source.start(), (source[1] or source[2]).strip()
    if end.endswith(")") and (source := _IN_BRACKETS.search(text, start)) and is_publisher(source[1]):
        return source.start(), source[1]
    if "|" in end or "_" in end or "- " in end or (not end.isascii() and _DASH.search(end)):
        suffix = _SUFFIX.search(text, start)
        if suffix and suffix.start() > 0 and len(suffix[1].split()) <= 4 and (end.isascii() or len(suffix[1]) <= 24):
            return suffix.start(), suffix[1].strip()
    return None


def is_publisher(name: str) -> bool:
    """Whether a name at the end of a headline is one that publishers have, rather than words of the headline."""
    words = name.replace(".", " ").replace("@", " ").split()
    return any(word in PUBLISHER_WORDS for word in words) or name.endswith(PUBLISHER_ENDINGS)
