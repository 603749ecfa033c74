"""Forums: boards, their threads, and the posts of a thread.

    list page   -> recognise the software -> threads as items, the next page
    thread page -> recognise the software -> posts, the thread's next page
                       | unknown software, or nothing where the profile says
                       +-> guess by what repeats on the page

Discourse and Flarum are read as JSON if the source's settings name them, and by their pages otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.sources.forums import discourse, flarum
from headwater.sources.forums.guess import guess_thread
from headwater.sources.forums.pages import guess_list, has_posts, is_json, nothing_found, read_list, read_thread
from headwater.sources.forums.profile import check as check
from headwater.sources.forums.profile import profile_for, settings_of, software_of
from headwater.sources.kind import Kind
from headwater.sources.web_page import forum_page

NO_THREADS = "No threads were found on this page. Is it the list of a board?"
THREAD_INSTEAD = "This page is a thread. Follow the board that it is in instead."
NO_POSTS = "No posts were found on this page."
_HEADERS = (("Accept", "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"),)


class JsonForum(NamedTuple):
    """Software that serves its lists and threads as JSON."""

    list_request: Callable[[str], Request]
    read_list: Callable[[Response], Page]
    read_thread: Callable[[Item, Response], Page]


_DISCOURSE = JsonForum(discourse.list_request, discourse.read_list, discourse.read_thread)
_AS_JSON = {
    discourse.NAME: _DISCOURSE,
    flarum.NAME: JsonForum(flarum.list_request, flarum.read_list, flarum.read_thread),
}


def first(source: Source, state: SourceState) -> Request:
    """Returns the request for the first page of the board's list."""
    as_json = _AS_JSON.get(settings_of(source.settings).profile)
    return as_json.list_request(source.address) if as_json else Request(source.address, _HEADERS)


def read(source: Source, state: SourceState, response: Response) -> Page:
    """Returns the threads on a page of the list."""
    settings = settings_of(source.settings)
    if is_json(response):
        return _AS_JSON.get(settings.profile, _DISCOURSE).read_list(response)
    page = forum_page(response)
    profile = profile_for(settings, software_of(page))
    listed = read_list(page, profile, settings.zone) if profile else None
    if listed is None or not listed.items:
        # If the software is known but nothing is where its threads should be, the page is empty or keeps us out.
        # Guessing would only find something else.
        listed = None if profile else guess_list(page)
    if listed is None:
        raise nothing_found(page, THREAD_INSTEAD if profile and has_posts(page, profile) else NO_THREADS)
    return listed


def read_item(source: Source, item: Item, response: Response) -> Page:
    """Returns the posts on a page of a thread."""
    settings = settings_of(source.settings)
    if is_json(response):
        return _AS_JSON.get(settings.profile, _DISCOURSE).read_thread(item, response)
    page = forum_page(response)
    profile = profile_for(settings, software_of(page))
    thread = read_thread(page, profile, item, settings.zone) if profile else None
    if thread is None or not thread.posts:
        thread = guess_thread(page, item, settings.zone)
    if thread is None:
        raise nothing_found(page, NO_POSTS)
    return thread


def recognise(source: Source, response: Response) -> Mapping[str, Any] | None:
    """Returns the settings with which a page can be read as a forum's; None if its software is unknown."""
    if is_json(response):
        return None
    profile = software_of(forum_page(response))
    return {"profile": profile.name} if profile else None


KIND = Kind(
    "forum",
    "forum",
    "forums",
    first,
    read,
    shape="list",
    items="threads",
    read_item=read_item,
    recognise=recognise,
    check=check,
)
