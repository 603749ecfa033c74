"""Profiles of forum software, and what a source's settings change about them.

A profile is a file in `profiles/`. Its `signs` recognise pages of the software, and its `selectors` say where they keep
threads and posts. A source's settings have the same `selectors` and `utc_offset`. They override the profile, line by
line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from headwater.errors import BadInput
from headwater.sources.forums.page import ForumPage
from headwater.sources.forums.selectors import check_pattern, check_selectors

# In the order in which a page is checked for their signs. Software with names of its own for everything comes first;
# phpBB uses words that others use too.
SOFTWARE = (
    "discourse",
    "xenforo",
    "discuz",
    "invision",
    "nodebb",
    "flarum",
    "stackexchange",
    "v2ex",
    "vbulletin",
    "smf",
    "mybb",
    "fluxbb",
    "vanilla",
    "bbpress",
    "phpbb",
)
MAX_LINE = 1_000
_FOLDER = Path(__file__).parent / "profiles"
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
_PATTERNS = ("thread_id", "post_id_pattern")


class Selectors(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where pages keep things. Each is one line that the module `selectors` reads; an empty line says nothing.

    On a list, `thread` matches one element per thread. Inside it are `thread_link`, the number of `replies`, and
    `last`, which is whatever else changes with a reply; never a relative time, which changes by itself. Threads that
    match `pinned` are above the sort order. `boards` are links to lists.

    On a thread's page, `post` matches one element per post. Inside it are `post_id`, `author`, `date`, `content`, and
    the post that it answers, `reply_to`. `dropped` is what is in the content but was not written by its author.
    """

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

    def lines(self) -> dict[str, str]:
        """The lines that say something, by name."""
        return {name: line for name, line in msgspec.structs.asdict(self).items() if line}

    def overridden_by(self, other: Selectors) -> Selectors:
        return msgspec.structs.replace(self, **other.lines())


_USUAL = Selectors(thread_link="a@href", post_id="@id", post_id_pattern="{number}")


class Profile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is known about one forum software.

    `signs` match on every page of the software and on no other. `utc_offset` is for dates that do not say theirs.
    """

    name: str
    signs: str = ""
    utc_offset: str = ""
    selectors: Selectors = _USUAL

    @property
    def zone(self) -> int:
        """The offset from UTC in minutes."""
        return _minutes(self.utc_offset) or 0


GENERIC = Profile("generic")
GUESSED = Profile(
    "guessed",
    selectors=_USUAL.overridden_by(Selectors(title="h1", dropped="[class*='signature'], [class*='Signature']")),
)


class ForumSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The settings of a source. `max_pages` is for the engine: how many pages of the list a crawl reads, 0 for all."""

    profile: str = ""
    selectors: Selectors = Selectors()
    utc_offset: str = ""
    max_pages: int = 20

    @property
    def zone(self) -> int | None:
        """The offset of the forum's times in minutes, if it is set."""
        return _minutes(self.utc_offset)


@cache
def profiles() -> Mapping[str, Profile]:
    """The profiles that come with Headwater. They are read with the first forum page, not when a process starts."""
    return MappingProxyType({name: _shipped(name) for name in SOFTWARE})


def _shipped(name: str) -> Profile:
    import tomllib

    written = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    profile = msgspec.convert({"name": name, **written}, Profile)
    return msgspec.structs.replace(profile, selectors=_USUAL.overridden_by(profile.selectors))


def software_of(page: ForumPage) -> Profile | None:
    """The profile of the software that made a page; None if we do not know it."""
    return next((profile for profile in profiles().values() if page.root.css_first(profile.signs) is not None), None)


def settings_of(given: Mapping[str, Any]) -> ForumSettings:
    """The settings of a source. Raises BadInput for any that are not understood."""
    try:
        settings = msgspec.convert(dict(given), ForumSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"The forum's settings are not understood: {error}.") from error
    if settings.profile not in ("", GENERIC.name, *SOFTWARE):
        known = ", ".join((*SOFTWARE, GENERIC.name))
        raise BadInput(f"profile: {settings.profile!r} is not known. Use one of {known}, or leave it out.")
    if settings.utc_offset and settings.zone is None:
        raise BadInput("utc_offset: write it like +08:00.")
    if settings.max_pages < 0:
        raise BadInput("max_pages: give a number of pages, or 0 for all.")
    return settings


def check(given: Mapping[str, Any]) -> None:
    """Raises BadInput for settings that cannot be used."""
    settings = settings_of(given)
    lines = settings.selectors.lines()
    for name, line in lines.items():
        if len(line) > MAX_LINE:
            raise BadInput(f"selectors.{name}: it has more than {MAX_LINE:,} characters.")
        (check_pattern if name in _PATTERNS else check_selectors)(f"selectors.{name}", line)
    if settings.profile == GENERIC.name:
        missing = [name for name in ("thread", "thread_link", "post", "content") if name not in lines]
        if missing:
            raise BadInput(f"selectors: the profile generic needs {', '.join(missing)}.")


def profile_for(settings: ForumSettings, recognised: Profile | None) -> Profile | None:
    """The profile to read a source with: the one that is set or was recognised, with the source's own selectors."""
    base = profiles().get(settings.profile) or recognised
    if not settings.selectors.lines():
        return base
    chosen = GENERIC if base is None or settings.profile == GENERIC.name else base
    return msgspec.structs.replace(chosen, selectors=chosen.selectors.overridden_by(settings.selectors))


def _minutes(offset: str) -> int | None:
    found = _OFFSET.fullmatch(offset)
    if not found:
        return None
    minutes = int(found[2]) * 60 + int(found[3])
    return (minutes if found[1] == "+" else -minutes) if minutes <= 15 * 60 else None
