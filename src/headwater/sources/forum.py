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
from headwater.sources.forums.profile import check as check
from headwater.sources.forums.profile import profile_for, settings_of, software_of
from headwater.sources.kind import Kind

# What reads pages is loaded by the functions that read: only parser processes need it.
READ_AS_JSON = ("discourse", "flarum")
NO_THREADS = "No threads were found on this page. Is it the list of a board?"
THREAD_INSTEAD = "This page is a thread. Follow the board that it is in instead."
NO_POSTS = "No posts were found on this page."
_HEADERS = (("Accept", "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"),)


class JsonForum(NamedTuple):
    """Software that serves its lists and threads as JSON."""

    list_request: Callable[[str], Request]
    read_list: Callable[[Response], Page]
    read_thread: Callable[[Item, Response], Page]


def first(source: Source, state: SourceState) -> Request:
    """Returns the request for the first page of the board's list."""
    software = settings_of(source.settings).profile
    if software in READ_AS_JSON:
        return _as_json(software).list_request(source.address)
    return Request(source.address, _HEADERS)


def read(source: Source, state: SourceState, response: Response) -> Page:
    """Returns the threads on a page of the list."""
    from headwater.sources.forums import pages
    from headwater.sources.web_page import forum_page

    settings = settings_of(source.settings)
    if _is_json(response):
        return _as_json(settings.profile).read_list(response)
    page = forum_page(response)
    profile = profile_for(settings, software_of(page))
    listed = pages.read_list(page, profile, settings.zone) if profile else None
    if listed is None or not listed.items:
        # If the software is known but nothing is where its threads should be, the page is empty or keeps us out.
        # Guessing would only find something else.
        listed = None if profile else pages.guess_list(page)
    if listed is None:
        raise pages.nothing_found(page, THREAD_INSTEAD if profile and pages.has_posts(page, profile) else NO_THREADS)
    return listed


def read_item(source: Source, item: Item, response: Response) -> Page:
    """Returns the posts on a page of a thread."""
    from headwater.sources.forums import guess, pages
    from headwater.sources.web_page import forum_page, refuse_challenge

    settings = settings_of(source.settings)
    if _is_json(response):
        return _as_json(settings.profile).read_thread(item, response)
    refuse_challenge(response.body, "the forum")
    page = forum_page(response)
    profile = profile_for(settings, software_of(page))
    thread = pages.read_thread(page, profile, item, settings.zone) if profile else None
    if thread is None or not thread.posts:
        thread = guess.guess_thread(page, item, settings.zone)
    if thread is None:
        raise pages.nothing_found(page, NO_POSTS)
    return thread


def recognise(source: Source, response: Response) -> Mapping[str, Any] | None:
    """Returns the settings with which a page can be read as a forum's; None if its software is unknown."""
    from headwater.sources.web_page import forum_page

    if _is_json(response):
        return None
    profile = software_of(forum_page(response))
    return {"profile": profile.name} if profile else None


def _is_json(response: Response) -> bool:
    return response.body[:64].lstrip()[:1] in (b"{", b"[")


def _as_json(software: str) -> JsonForum:
    """Returns how software is read that answers with JSON: Flarum, or else Discourse."""
    from headwater.sources.forums import discourse, flarum

    if software == flarum.NAME:
        return JsonForum(flarum.list_request, flarum.read_list, flarum.read_thread)
    return JsonForum(discourse.list_request, discourse.read_list, discourse.read_thread)


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
