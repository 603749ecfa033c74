"""The settings of a forum source: which software it is, and where its pages keep things if that is not enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.errors import BadInput
from headwater.sources.forums.places import check_pattern, check_places
from headwater.sources.forums.profile import Profile
from headwater.sources.forums.software import PROFILES

MAX_LINE = 1_000
GENERIC = Profile("generic")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
_PATTERNS = ("thread_id", "post_id_pattern")


class Selectors(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Lines of `Profile`, each in place of what the profile has."""

    thread: str = ""
    thread_link: str = ""
    thread_id: str = ""
    replies: str = ""
    last: str = ""
    created: str = ""
    pinned: str = ""
    boards: str = ""
    title: str = ""
    post: str = ""
    post_id: str = ""
    post_id_pattern: str = ""
    author: str = ""
    date: str = ""
    content: str = ""
    reply_to: str = ""
    dropped: str = ""
    next_page: str = ""


class ForumSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`max_pages` is the engine's: how many pages of the list a crawl reads, 0 for all."""

    profile: str = ""
    selectors: Selectors = Selectors()
    utc_offset: str = ""
    max_pages: int = 20


def settings_of(given: Mapping[str, Any]) -> ForumSettings:
    """The settings as they are meant. Raises BadInput, in words, for any that are not understood."""
    try:
        settings = msgspec.convert(dict(given), ForumSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"The forum's settings are not understood: {error}.") from error
    if settings.profile not in ("", GENERIC.name, *PROFILES):
        known = ", ".join((*PROFILES, GENERIC.name))
        raise BadInput(f"profile: {settings.profile!r} is not known. It is one of {known}, or left out.")
    if settings.utc_offset and _minutes(settings.utc_offset) is None:
        raise BadInput("utc_offset: it is written like +08:00.")
    if settings.max_pages < 0:
        raise BadInput("max_pages: it is a number of pages, or 0 for all.")
    return settings


def check(given: Mapping[str, Any]) -> None:
    settings = settings_of(given)
    lines = _lines(settings.selectors)
    for name, line in lines.items():
        if len(line) > MAX_LINE:
            raise BadInput(f"selectors.{name}: it has more than {MAX_LINE:,} characters.")
        (check_pattern if name in _PATTERNS else check_places)(f"selectors.{name}", line)
    if settings.profile == GENERIC.name:
        missing = [name for name in ("thread", "thread_link", "post", "content") if name not in lines]
        if missing:
            raise BadInput(f"selectors: the profile generic needs {', '.join(missing)}.")


def profile_with(settings: ForumSettings, found: Profile | None) -> Profile | None:
    """The profile that a source is read with: the one that is set or was found, with the source's own selectors."""
    base = PROFILES.get(settings.profile) or found
    lines = _lines(settings.selectors)
    if not lines:
        return base
    chosen = GENERIC if base is None or settings.profile == GENERIC.name else base
    return Profile(**{**chosen._asdict(), **lines})


def zone_in(settings: ForumSettings) -> int | None:
    """The offset of the forum's times, in minutes, where it is set."""
    return _minutes(settings.utc_offset)


def _lines(selectors: Selectors) -> dict[str, str]:
    return {name: line for name, line in msgspec.structs.asdict(selectors).items() if line}


def _minutes(offset: str) -> int | None:
    found = _OFFSET.fullmatch(offset)
    if not found:
        return None
    minutes = int(found[2]) * 60 + int(found[3])
    return (minutes if found[1] == "+" else -minutes) if minutes <= 15 * 60 else None
