"""Forums: boards, their threads, the posts of a thread. The requests for them, and what their answers say.

    list page   -> recognise the software -> threads as items, the next page
    thread page -> recognise the software -> posts, the thread's next page
                       | none that we know, or nothing where it should be
                       +-> guess by what repeats on the page

Discourse and Flarum are read by their JSON where the source's settings say what it is, and by their pages otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.sources.forums import discourse, flarum
from headwater.sources.forums.guess import read_guessed
from headwater.sources.forums.guess_lists import read_guessed_list
from headwater.sources.forums.lists import read_list
from headwater.sources.forums.page import instead_of, parsed
from headwater.sources.forums.settings import check as check
from headwater.sources.forums.settings import profile_with, settings_of, zone_in
from headwater.sources.forums.software import maker_of
from headwater.sources.forums.threads import holds_posts, read_thread


class ByJson(NamedTuple):
    """A forum that tells its lists and threads as JSON."""

    list_request: Callable[[str], Request]
    read_list: Callable[[Response], Page]
    read_thread: Callable[[Item, Response], Page]


_DISCOURSE = ByJson(discourse.list_request, discourse.read_list, discourse.read_thread)
_BY_JSON = {
    discourse.NAME: _DISCOURSE,
    flarum.NAME: ByJson(flarum.list_request, flarum.read_list, flarum.read_thread),
}
NO_THREADS = "No threads were found on this page. Is it the list of a board?"
THREAD_INSTEAD = "This page is a thread. Follow the board that it is in instead."
_HEADERS = (("Accept", "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"),)


def first(source: Source, state: SourceState) -> Request:
    by_json = _BY_JSON.get(settings_of(source.settings).profile)
    return by_json.list_request(source.address) if by_json else Request(source.address, _HEADERS)


def read(source: Source, state: SourceState, response: Response) -> Page:
    settings = settings_of(source.settings)
    if _is_json(response):
        return _by_json(settings.profile).read_list(response)
    page = parsed(response)
    profile = profile_with(settings, maker_of(page))
    listed = read_list(page, profile, zone_in(settings)) if profile else None
    if listed is None or not listed.items:
        # A page of software that we know, but with nothing where its threads should be, is not to be guessed at: it
        # is empty, or it is a wall.
        listed = None if profile else read_guessed_list(page)
    if listed is None:
        raise instead_of(page, THREAD_INSTEAD if profile and holds_posts(page, profile) else NO_THREADS)
    return listed


def read_item(source: Source, item: Item, response: Response) -> Page:
    settings = settings_of(source.settings)
    if _is_json(response):
        return _by_json(settings.profile).read_thread(item, response)
    page = parsed(response)
    profile = profile_with(settings, maker_of(page))
    told = read_thread(page, profile, item, zone_in(settings)) if profile else None
    if told is None or not told.posts:
        told = read_guessed(page, item, zone_in(settings))
    if told is None:
        raise instead_of(page, "No posts were found on this page.")
    return told


def recognise(source: Source, response: Response) -> Mapping[str, Any] | None:
    """The settings with which the page at an address can be read as a forum's; None where it is of no known one."""
    if _is_json(response):
        return None
    maker = maker_of(parsed(response))
    return {"profile": maker.name} if maker else None


def _is_json(response: Response) -> bool:
    return response.body[:64].lstrip()[:1] in (b"{", b"[")


def _by_json(profile: str) -> ByJson:
    return _BY_JSON.get(profile, _DISCOURSE)
