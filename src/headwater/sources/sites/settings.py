"""The settings of a news site: how its list is addressed, what on it is an article, and where the list continues.

`first_address` and `next_address` fill in the template of its addresses (`/news?page={page}`).

Paths into a JSON list (`data.items[*].url`) have names, `[0]`, `[-1]` and `[*]`, and nothing else. So they cannot
compute, loop, or reach outside the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

import msgspec

from headwater.errors import BadAddress, BadSetting
from headwater.model import Request
from headwater.urls import split

PLACEHOLDERS = ("page", "offset", "cursor", "min_id", "max_id")
MAX_FOUND = 10_000
ACCEPT = "text/html, application/xhtml+xml;q=0.9, application/json;q=0.8, application/xml;q=0.8, */*;q=0.1"
FORMAT = "news"
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_STEP = re.compile(r"\.?([\w@$-]+)|\[(\*|-?\d{1,4})\]")
_Text = Annotated[str, msgspec.Meta(max_length=2_000)]
_Pattern = Annotated[str, msgspec.Meta(max_length=200)]


class NewsSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """All are optional. Without any, the list is found automatically. docs/reference/news.md explains each of them."""

    list: _Text = ""
    form: Literal["auto", "html", "json", "sitemap"] = "auto"
    items: _Text = ""
    url: _Text = ""
    id: _Text = ""
    title: _Text = ""
    date: _Text = ""
    mark: _Text = ""
    text: _Text = ""
    author: _Text = ""
    next: _Text = ""
    id_pattern: _Pattern = ""
    order: Literal["ascending", "descending"] = "descending"
    min_id: int | None = None
    max_id: int | None = None
    first_page: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1
    max_pages: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 20
    render: bool = False


def settings_of(given: Mapping[str, Any]) -> NewsSettings:
    """Returns the settings of a source. Raises BadSetting, naming the field, for any that cannot be used."""
    try:
        settings = msgspec.convert(dict(given), NewsSettings)
    except msgspec.ValidationError as error:
        raise BadSetting(f"The settings of the site cannot be used: {error}.") from error
    _check_list(settings)
    _check_items(settings)
    if settings.id_pattern:
        pattern(settings.id_pattern)
    if settings.min_id is not None and settings.max_id is not None and settings.min_id > settings.max_id:
        raise BadSetting("`min_id` is larger than `max_id`: no article is between them.")
    return settings


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadSetting(f"`id_pattern` is not a regular expression: {error}.") from error
    if compiled.groups != 1:
        raise BadSetting("`id_pattern` needs exactly one group in parentheses: the part of the address that is the id.")
    return compiled


def _check_selector(text: str) -> None:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # for the few sources that have a selector

    try:
        LexborHTMLParser("<p>").css(text)
    except SelectolaxError as error:
        raise BadSetting("`items` is not a CSS selector, such as `main h2 a`.") from error


def _check_list(settings: NewsSettings) -> None:
    names = _PLACEHOLDER.findall(settings.list)
    unknown = [name for name in names if name not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise BadSetting(f"`list` has {{{unknown[0]}}}; it may have {known}.")
    if len(names) != len(set(names)):
        raise BadSetting("`list` has the same placeholder twice.")
    if "{" in _PLACEHOLDER.sub("", settings.list):
        raise BadSetting("`list` has a brace that is not part of a placeholder such as {page}.")
    if settings.list:
        try:
            split(_PLACEHOLDER.sub("1", settings.list))
        except BadAddress as error:
            raise BadSetting(f"`list` is not an address: {error.detail}") from error
    if "cursor" in names and not settings.next:
        raise BadSetting("`list` has {cursor}, so `next` has to say where in an answer the next cursor is.")


def _check_items(settings: NewsSettings) -> None:
    if settings.form == "json":
        if not settings.items:
            raise BadSetting("`items` has to say where in the JSON the articles are, such as data.items[*].")
        for path in (
            settings.items,
            settings.id,
            settings.title,
            settings.date,
            settings.mark,
            settings.text,
            settings.next,
        ):
            if path:
                steps_of(path)
        if settings.url and "{" not in settings.url:
            steps_of(settings.url)
        return
    if settings.items:
        _check_selector(settings.items)


def steps_of(path: str) -> list[str | int]:
    """Returns the steps of a path. Raises BadSetting if it is not a path."""
    steps: list[str | int] = []
    end = 0
    for found in _STEP.finditer(path):
        if found.start() != end:
            break
        name, index = found.groups()
        steps.append(name if name is not None else index if index == "*" else int(index))
        end = found.end()
    if end != len(path) or not steps:
        raise BadSetting(
            f"{path[:100]!r} is not a path into JSON. Write names with dots, [0] or [*]: data.items[*].url."
        )
    return steps


def found_at(document: Any, path: str) -> list[Any]:
    """Returns every value at the end of a path."""
    values = [document]
    for step in steps_of(path):
        values = [inner for value in values for inner in _step(value, step)][:MAX_FOUND]
    return values


def text_at(document: Any, path: str) -> str:
    """Returns the first text or number at the end of a path, as text; empty if there is none."""
    for value in found_at(document, path) if path else ():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def _step(value: Any, step: str | int) -> list[Any]:
    if isinstance(value, list):
        if step == "*":
            return value
        if isinstance(step, int) and -len(value) <= step < len(value):
            return [value[step]]
    if isinstance(value, dict) and isinstance(step, str):
        if step == "*":
            return list(value.values())
        if step in value:
            return [value[step]]
    return []


def _filled(template: str, values: Mapping[str, str | int | None]) -> str:
    """Returns the template with its placeholders filled in; those without a value become empty."""
    return _PLACEHOLDER.sub(lambda found: quote(str(_value(values, found[1])), safe=""), template)


def first_address(settings: NewsSettings, address: str, last_id: str | None) -> str:
    """Returns the address of a crawl's first page. In ascending order it starts after the highest id that was seen."""
    seen = int(last_id) if last_id and last_id.isascii() and last_id.isdigit() and len(last_id) < 19 else None
    low = settings.min_id
    if settings.order == "ascending" and seen is not None:
        low = max(seen, low) if low is not None else seen
    values: dict[str, str | int | None] = {
        "page": settings.first_page,
        "offset": 0,
        "cursor": "",
        "min_id": low if low is not None else 0,
        "max_id": settings.max_id if settings.max_id is not None else "",
    }
    return _filled(settings.list or address, values)


def next_address(settings: NewsSettings, url: str, ids: list[int], count: int, cursor: str) -> str | None:
    """Returns the address of the next page, by the template; None if this was the last page, or nobody can say.

    `ids` and `count` are of the articles on this page, and `cursor` is the one that it names.
    """
    present = _values_in(settings.list, url)
    if present is None or not count:
        return None
    known: dict[str, str | int | None] = dict(present)
    moved = False
    if "page" in present:
        known["page"] = _number(present["page"], settings.first_page) + 1
        moved = True
    if "offset" in present:
        known["offset"] = _number(present["offset"], 0) + max(count, 1)
        moved = True
    if "cursor" in present:
        if not cursor or cursor == present["cursor"]:
            return None
        known["cursor"] = cursor
        moved = True
    return _filled(settings.list, known) if moved else _by_ids(settings, known, ids)


def _by_ids(settings: NewsSettings, values: dict[str, str | int | None], ids: list[int]) -> str | None:
    """Continues after the lowest or highest id on the page, if that is a step in the right direction."""
    name = "min_id" if settings.order == "ascending" else "max_id"
    if name not in values or not ids:
        return None
    before = str(values[name] or "")
    bound = max(ids) if name == "min_id" else min(ids)
    if before.isdigit() and (bound <= int(before) if name == "min_id" else bound >= int(before)):
        return None
    return _filled(settings.list, {**values, name: bound})


def _values_in(template: str, url: str) -> dict[str, str] | None:
    """Returns the values that the placeholders of a template have in an address; None if it does not fit."""
    # Scheme and host do not matter: a site may have answered from another of its hosts.
    parts = _PLACEHOLDER.split(re.sub(r"^https?://[^/]+", "", template))
    if len(parts) == 1:
        return None
    expression = "".join(
        f"(?P<{part}>[^/?&#]*)" if position % 2 else re.escape(part) for position, part in enumerate(parts)
    )
    found = re.search(expression + "$", url)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _value(values: Mapping[str, str | int | None], name: str) -> str | int:
    value = values.get(name)
    return "" if value is None else value


def list_request(url: str) -> Request:
    return Request(url, (("Accept", ACCEPT),))
