"""The addresses of a list's pages: made from a template, and read back from the address that answered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from headwater.sources.sites.settings import NewsSettings

_PLACE = re.compile(r"\{(\w+)\}")


def filled(template: str, places: Mapping[str, str | int | None]) -> str:
    """The template with its places filled; what has no value is left empty."""
    return _PLACE.sub(lambda found: quote(str(_value(places, found[1])), safe=""), template)


def first_address(settings: NewsSettings, address: str, last_id: str | None) -> str:
    """Where a crawl begins. In ascending order that is behind the highest id that was seen."""
    seen = int(last_id) if last_id and last_id.isascii() and last_id.isdigit() and len(last_id) < 19 else None
    low = settings.min_id
    if settings.order == "ascending" and seen is not None:
        low = max(seen, low) if low is not None else seen
    places: dict[str, str | int | None] = {
        "page": settings.first_page,
        "offset": 0,
        "cursor": "",
        "min_id": low if low is not None else 0,
        "max_id": settings.max_id if settings.max_id is not None else "",
    }
    return filled(settings.list or address, places)


def following_address(settings: NewsSettings, url: str, ids: list[int], count: int, cursor: str) -> str | None:
    """The next page of a list that has a template; None: this was the last, or it cannot be told."""
    places = _read_back(settings.list, url)
    if places is None or not count:
        return None
    known: dict[str, str | int | None] = dict(places)
    moved = False
    if "page" in places:
        known["page"] = _number(places["page"], settings.first_page) + 1
        moved = True
    if "offset" in places:
        known["offset"] = _number(places["offset"], 0) + max(count, 1)
        moved = True
    if "cursor" in places:
        if not cursor or cursor == places["cursor"]:
            return None
        known["cursor"] = cursor
        moved = True
    return filled(settings.list, known) if moved else _by_ids(settings, known, ids)


def _by_ids(settings: NewsSettings, places: dict[str, str | int | None], ids: list[int]) -> str | None:
    """Go on behind the lowest or highest id of the page, if that is a step in the right direction."""
    place = "min_id" if settings.order == "ascending" else "max_id"
    if place not in places or not ids:
        return None
    before = str(places[place] or "")
    bound = max(ids) if place == "min_id" else min(ids)
    if before.isdigit() and (bound <= int(before) if place == "min_id" else bound >= int(before)):
        return None
    return filled(settings.list, {**places, place: bound})


def _read_back(template: str, url: str) -> dict[str, str] | None:
    # Without scheme and host: a site may have answered from its others.
    parts = _PLACE.split(re.sub(r"^https?://[^/]+", "", template))
    if len(parts) == 1:
        return None
    expression = "".join(f"(?P<{part}>[^/?&#]*)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
    found = re.search(expression + "$", url)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _value(places: Mapping[str, str | int | None], name: str) -> str | int:
    value = places.get(name)
    return "" if value is None else value
