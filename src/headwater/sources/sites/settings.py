"""The settings of a news site: how its list is addressed, what of it is an article, and where the list goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from headwater.errors import BadAddress, BadSetting
from headwater.sources.sites.paths import steps_of
from headwater.urls import split

PLACES = ("page", "offset", "cursor", "min_id", "max_id")
_PLACE = re.compile(r"\{(\w*)\}")
_Text = Annotated[str, msgspec.Meta(max_length=2_000)]
_Pattern = Annotated[str, msgspec.Meta(max_length=200)]


class NewsSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """All are optional: without any, the list is found by itself. docs/reference/news.md tells them one by one."""

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
    """The settings as they are meant. Raises BadSetting in words that name the field."""
    try:
        settings = msgspec.convert(dict(given), NewsSettings)
    except msgspec.ValidationError as error:
        raise BadSetting(f"The settings of the site cannot be used: {error}.") from error
    _check_list(settings)
    _check_items(settings)
    if settings.id_pattern:
        pattern(settings.id_pattern)
    if settings.min_id is not None and settings.max_id is not None and settings.min_id > settings.max_id:
        raise BadSetting("`min_id` is larger than `max_id`: no article lies between them.")
    return settings


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadSetting(f"`id_pattern` is not a regular expression: {error}.") from error
    if compiled.groups != 1:
        raise BadSetting("`id_pattern` needs exactly one group in brackets: the part of the address that is the id.")
    return compiled


def _check_selector(text: str) -> None:
    try:
        LexborHTMLParser("<p>").css(text)
    except SelectolaxError as error:
        raise BadSetting("`items` is not a CSS selector, such as `main h2 a`.") from error


def _check_list(settings: NewsSettings) -> None:
    places = _PLACE.findall(settings.list)
    unknown = [place for place in places if place not in PLACES]
    if unknown:
        raise BadSetting(f"`list` has {{{unknown[0]}}}; it may have {', '.join(f'{{{place}}}' for place in PLACES)}.")
    if len(places) != len(set(places)):
        raise BadSetting("`list` has the same place twice.")
    if "{" in _PLACE.sub("", settings.list):
        raise BadSetting("`list` has a bracket that does not belong to a place such as {page}.")
    if settings.list:
        try:
            split(_PLACE.sub("1", settings.list))
        except BadAddress as error:
            raise BadSetting(f"`list` is not an address: {error.detail}") from error
    if "cursor" in places and not settings.next:
        raise BadSetting("`list` has {cursor}, so `next` has to say where in an answer the next cursor stands.")


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
