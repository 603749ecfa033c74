"""Expectations of the feedparser project's tests, in terms of our model.

Each test is a feed whose first comment has a Python expression over feedparser's result, such as
`not bozo and entries[0]['title'] == 'Example'`. Its comparisons are taken out by the syntax tree; nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from html import escape, unescape
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from headwater.model import Page, Post
from headwater.sources.dates import parse_date
from headwater.text import clean_html, plain

HOST = "http://127.0.0.1:8097/"
_EXPECT = re.compile(r"Expect:\s*(.*?)\s*(?:\n[A-Z][A-Za-z-]*:|-->|\n\n)", re.DOTALL)
_HEADER = re.compile(
    r"^(?:Header:\s*)?(Content-(?:type|Location|Language)):\s*(\S.*?)\s*$", re.MULTILINE | re.IGNORECASE
)


class Expectation(NamedTuple):
    """That feedparser finds `wanted` at `path` (such as `entries.0.title`)."""

    path: str
    wanted: Any


def text_of(document: bytes) -> str:
    if document[:1] == b"\0" or document.startswith(b"\xfe\xff"):
        return document.decode("utf-16-be")
    if document[1:2] == b"\0" or document.startswith(b"\xff\xfe"):
        return document.decode("utf-16-le")
    try:
        return document.decode()
    except UnicodeDecodeError:
        return document.decode("latin-1")


def headers_of(document: bytes) -> dict[str, str]:
    return {name.lower(): value for name, value in _HEADER.findall(text_of(document)[:1_500])}


def address_of(name: str, headers: dict[str, str]) -> str:
    """Where the test's server had the document, as its headers correct it."""
    address = urljoin(HOST, "tests/" + name.replace("__", "/"))
    location = headers.get("content-location", "")
    return (
        address if ":" in location.partition("/")[0] and not location.startswith("http") else urljoin(address, location)
    )


def expectations_of(document: bytes) -> Iterator[Expectation]:
    found = _EXPECT.search(text_of(document))
    if found:
        yield from _comparisons(ast.parse(found[1].strip(), mode="eval").body)


def _comparisons(node: ast.expr) -> Iterator[Expectation]:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _comparisons(value)
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.Is) and len(node.ops) == 1:
        try:
            yield Expectation(_path(node.left), _constant(node.comparators[0]))
        except ValueError:
            return


def _path(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Subscript(value, ast.Constant(key)):
            return f"{_path(value)}.{key}"
        case ast.Attribute(value, name):
            return f"{_path(value)}.{name}"
        case ast.Call(ast.Attribute(value, "get"), [ast.Constant(key), *_]):
            return f"{_path(value)}.{key}"
    raise ValueError(ast.dump(node))


def _constant(node: ast.expr) -> Any:
    # Long values are written as sums, because a comment may not contain two hyphens.
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _constant(node.left) + _constant(node.right)
    return ast.literal_eval(node)


class Field(NamedTuple):
    """How a path of feedparser's is found in our model, and when the two mean the same."""

    path: re.Pattern[str]
    read: Callable[[Page, Post | None, re.Match[str]], Any]
    same: Callable[[Any, Any], bool]


def field_of(expectation: Expectation) -> tuple[Field, re.Match[str]] | None:
    for field in FIELDS:
        found = field.path.fullmatch(expectation.path)
        if found:
            return field, found
    return None


def same(got: Any, wanted: Any) -> bool:
    return bool(got == wanted)


def same_words(got: str | None, wanted: str) -> bool:
    """Titles are plain text here and HTML there."""
    return got in {plain(wanted), " ".join(wanted.split())}


def same_html(got: str | None, wanted: str) -> bool:
    """What feedparser's sanitiser leaves, reduced to what ours leaves of it, is what ours made of the original."""
    if got is None:
        return False
    return _comparable(got) in {_comparable(clean_html(wanted, None)), _comparable(escape(wanted, quote=False))}


def _comparable(html: str) -> str:
    return unquote(" ".join(unescape(html).split()))


def same_moment(got: datetime | None, wanted: str | tuple[int, ...]) -> bool:
    moment = parse_date(wanted) if isinstance(wanted, str) else datetime(*wanted[:6], tzinfo=UTC)
    return got == moment


def same_shape(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(same_shape, got, wanted))
    return got == wanted or (not got and not wanted)


def _of_post(read: Callable[[Post], Any]) -> Callable[[Page, Post | None, re.Match[str]], Any]:
    return lambda page, post, found: None if post is None else read(post)


def _category(page: Page, post: Post | None, found: re.Match[str]) -> str | None:
    names = post.extra.get("categories", []) if post else []
    number = int(found[1])
    return names[number] if number < len(names) else None


def _enclosure(page: Page, post: Post | None, found: re.Match[str]) -> str | None:
    if post is None or not post.enclosures:
        return None
    first = post.enclosures[0]
    length = None if first.length is None else str(first.length)
    return {"href": first.url, "url": first.url, "type": first.type, "length": length}[found[1]]


def _place(page: Page, post: Post | None, found: re.Match[str]) -> Any:
    value: Any = post.extra.get("place", {}) if post else {}
    for step in found[1].split(".")[1:]:
        if not value:
            return None
        value = value[int(step)] if step.isdigit() else value.get(step)
    return value


FIELDS = [
    Field(re.compile(path), read, compare)
    for path, read, compare in [
        (r"version", lambda page, post, found: page.facts.format, same),
        (r"feed\.title(?:_detail\.value)?", lambda page, post, found: page.facts.title, same_words),
        (r"feed\.link", lambda page, post, found: page.facts.link, same),
        (r"feed\.language", lambda page, post, found: page.facts.language, same),
        (r"entries\.0\.title(?:_detail\.value)?", _of_post(lambda post: post.title), same_words),
        (r"entries\.0\.link", _of_post(lambda post: post.url), same),
        (r"entries\.0\.(?:gu)?id", _of_post(lambda post: post.source_post_id), same),
        (r"entries\.0\.(?:description|content\.0\.value)", _of_post(lambda post: post.content), same_html),
        (
            r"entries\.0\.summary(?:_detail\.value)?",
            _of_post(lambda post: post.extra.get("summary", post.content)),
            same_html,
        ),
        (r"entries\.0\.author(?:_detail\.name)?", _of_post(lambda post: post.author), same),
        (
            r"entries\.0\.(?:published|created|updated)(?:_parsed)?",
            _of_post(lambda post: post.created_at if post.dated else None),
            same_moment,
        ),
        (r"entries\.0\.(?:(?:title|summary)_detail\.|content\.0\.)?language", _of_post(lambda post: post.lang), same),
        (r"entries\.0\.enclosures\.0\.(href|url|type|length)", _enclosure, same),
        (r"entries\.0\.tags\.(\d)\.term", _category, same),
        (r"entries\.0\.category", _of_post(lambda post: post.extra.get("categories", [None])[0]), same),
        (r"entries\.0\.comments", _of_post(lambda post: post.extra.get("comments_url")), same),
        (r"entries\.0\.wfw_commentrss", _of_post(lambda post: post.extra.get("comments_feed")), same),
        (r"entries\.0\.rights(?:_detail\.value)?", _of_post(lambda post: post.extra.get("rights")), same_words),
        (r"entries\.0\.source\.title", _of_post(lambda post: post.extra.get("source", {}).get("title")), same_words),
        (r"entries\.0\.source\.link", _of_post(lambda post: post.extra.get("source", {}).get("url")), same),
        (r"entries\.0\.itunes_duration", _of_post(lambda post: post.extra.get("duration")), same),
        (r"entries\.0\.image\.href", _of_post(lambda post: post.extra.get("image")), same),
        (r"entries\.0\.(where(?:\..*)?)", _place, same_shape),
    ]
]
