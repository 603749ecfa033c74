"""Flarum's pages, as it makes them for readers without script; `flarum` reads its JSON, which is better."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

FLARUM = Profile(
    name="flarum",
    signs="#flarum-content, #flarum-loading, .PostUser .PostUser-name",
    thread="#flarum-content li",
    thread_link="a",
    thread_id="/d/{number}",
    title="#flarum-content h1",
    post="article:has(.Post-body), #flarum-content div:has(> .Post-body)",
    post_id="@data-id | @id",
    author=".PostUser-name",
    date="time@datetime",
    content=".Post-body",
    reply_to=".PostMention@data-id",
    next_page="#flarum-content a[rel='next']@href",
)
