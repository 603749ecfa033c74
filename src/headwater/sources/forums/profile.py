"""Profiles of forum software, what a source's settings change about them, and the language they are written in.

A profile is a file in `profiles/`. Its `signs` recognise pages of the software, and its `selectors` say where they keep
threads and posts. A source's settings have the same `selectors` and `utc_offset`. They override the profile, line by
line.

Each line has CSS selectors, attributes and alternatives:

    time@datetime | .date      the attribute of the first `time`, or else the text of the first `.date`
    @data-id                   an attribute of the element itself

Patterns mark the part of an address or attribute that is an id: `{number}` is digits, `{id}` also letters and dashes,
and `*` is anything within one path segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.errors import BadInput

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

    from headwater.sources.web_page import ForumPage

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
    """Where pages keep things. Each is one line; an empty one says nothing.

    On a list, `thread` matches one element per thread. Inside it are `thread_link`, the number of `replies`, and
    `last`, which is whatever else changes with a reply; never a relative time, which changes by itself. Threads that
    match `pinned` are above the sort order. `boards` are links to lists.

    On a thread's page, `post` matches one element per post. Inside it, or inside a `header` right before it, are
    `post_id`, `author` and `date`; inside it are `content` and the post that it answers, `reply_to`. `dropped` is what
    is in the content but was not written by its author.
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
    header: str = ""
    post_id: str = ""
    post_id_pattern: str = ""
    author: str = ""
    date: str = ""
    content: str = ""
    reply_to: str = ""
    dropped: str = ""
    next_page: str = ""

    def lines(self) -> dict[str, str]:
        """Returns the lines that say something, by name."""
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
    """Returns the profiles that come with Headwater.

    They are read with the first forum page, not when a process starts.
    """
    return MappingProxyType({name: _shipped(name) for name in SOFTWARE})


def _shipped(name: str) -> Profile:
    import tomllib

    written = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    profile = msgspec.convert({"name": name, **written}, Profile)
    return msgspec.structs.replace(profile, selectors=_USUAL.overridden_by(profile.selectors))


def software_of(page: ForumPage) -> Profile | None:
    """Returns the profile of the software that made a page; None if we do not know it."""
    return next((profile for profile in profiles().values() if page.root.css_first(profile.signs) is not None), None)


def settings_of(given: Mapping[str, Any]) -> ForumSettings:
    """Returns the settings of a source. Raises BadInput for any that are not understood."""
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
    """Returns the profile for a source: the one that is set or was recognised, with the source's own selectors."""
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


_ATTRIBUTE = re.compile(r"(?P<css>.*?)@(?P<attribute>[\w:-]+)", re.DOTALL)
_PATTERN_PART = re.compile(r"\{number\}|\{id\}|\*")
_PATTERN_WORDS = {"{number}": r"(\d{1,20})", "{id}": r"([\w-]{1,100})", "*": r"[^/?#]*"}


class Selector(NamedTuple):
    """An element, by CSS (empty: the element itself), and the attribute of it that is wanted (None: its text)."""

    css: str
    attribute: str | None


@lru_cache(maxsize=2_000)
def alternatives(line: str) -> tuple[Selector, ...]:
    """Returns the alternatives on a line, in order."""
    return tuple(_selector(part.strip()) for part in line.split(" | ") if part.strip())


def _selector(text: str) -> Selector:
    found = _ATTRIBUTE.fullmatch(text)
    return Selector(found["css"].strip(), found["attribute"]) if found else Selector(text, None)


def check_selectors(name: str, line: str) -> None:
    """Raises BadInput if an alternative is not a CSS selector."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # for the few sources that have selectors

    empty = LexborHTMLParser("")
    for selector in alternatives(line):
        try:
            empty.css_first(selector.css or "*")
        except SelectolaxError as error:
            raise BadInput(f"{name}: {selector.css!r} is not a CSS selector.") from error


def find_all(within: LexborNode, css: str) -> list[LexborNode]:
    """Returns each element that a CSS selector matches, once, in page order.

    The parser's own list repeats elements that several parts of the selector match, and an element that was taken out
    of the tree must not be touched again.
    """
    return list({found.mem_id: found for found in within.css(css)}.values()) if css else []


def find(within: LexborNode, line: str) -> LexborNode | None:
    """Returns the element of the first alternative that matches."""
    for selector in alternatives(line):
        found = within.css_first(selector.css) if selector.css else within
        if found is not None:
            return found
    return None


def value(within: LexborNode, line: str) -> str:
    """Returns the text or attribute of the first alternative that has one; empty if none has."""
    return next(values(within, line), "")


def values(within: LexborNode, line: str) -> Iterator[str]:
    """Yields the text or attribute of each alternative that has one, with white space collapsed."""
    for selector in alternatives(line):
        found = within.css_first(selector.css) if selector.css else within
        if found is None:
            continue
        raw = found.attributes.get(selector.attribute) if selector.attribute else found.text(separator=" ")
        text = " ".join((raw or "").split())
        if text:
            yield text


@lru_cache(maxsize=500)
def _patterns(line: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_expression(part.strip()), re.IGNORECASE) for part in line.split(" | ") if part.strip())


def _expression(text: str) -> str:
    out, end = "", 0
    for part in _PATTERN_PART.finditer(text):
        out += re.escape(text[end : part.start()]) + _PATTERN_WORDS[part[0]]
        end = part.end()
    return out + re.escape(text[end:])


def id_in(text: str, pattern: str) -> str:
    """Returns the id that a pattern finds in an address or attribute; empty if it finds none."""
    for expression in _patterns(pattern):
        found = expression.search(text)
        if found:
            return found[1]
    return ""


def check_pattern(name: str, line: str) -> None:
    """Raises BadInput if an alternative does not mark exactly one id."""
    for part in line.split(" | "):
        if len(re.findall(r"\{number\}|\{id\}", part)) != 1:
            raise BadInput(f"{name}: {part.strip()!r} has to contain {{number}} or {{id}} once.")
