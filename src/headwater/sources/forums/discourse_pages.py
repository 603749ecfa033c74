"""Discourse's pages, as it makes them for readers without script; `discourse` reads its JSON, which is better."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

DISCOURSE = Profile(
    name="discourse",
    signs="meta[name='generator'][content^='Discourse'], .topic-body.crawler-post, tr.topic-list-item",
    thread="tr.topic-list-item",
    thread_link="a.raw-topic-link | a.title",
    thread_id="/t/*/{number} | /t/{number}",
    replies="td.replies .posts | td.posts .number | .posts",
    last="td:last-child",
    pinned=".topic-list-item.pinned",
    title="#topic-title h1 | h1 a.fancy-title | h1",
    post=".topic-body.crawler-post, article[data-post-id]",
    post_id="@id",
    author=".creator [itemprop='name'] | .names .username | .names",
    date="time.post-time@datetime | time@datetime | .relative-date@data-time",
    content=".post[itemprop='text'] | .cooked | .post",
    dropped=".meta, .lightbox .meta, .onebox-metadata, .source .onebox-avatar, .quote-controls",
    next_page="a[rel='next']@href",
)
