"""bbPress, the forum of WordPress sites."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

BBPRESS = Profile(
    name="bbpress",
    signs="#bbpress-forums, .bbp-reply-content, .bbp-topic-permalink",
    thread="#bbpress-forums ul.topic, .bbp-body > ul.topic",
    thread_link="a.bbp-topic-permalink",
    thread_id="topic/{id}",
    replies=".bbp-topic-reply-count",
    last=".bbp-topic-freshness > a@title | .bbp-topic-freshness a@title",
    pinned="ul.topic.sticky, ul.topic.super-sticky",
    boards="a.bbp-forum-title",
    title=".bbp-topic-title h1 | h1.entry-title | h1",
    post="#bbpress-forums div.reply, #bbpress-forums div.topic, .bbp-body > div[class*='post-']",
    post_id=".bbp-reply-permalink@href | @class",
    post_id_pattern="post-{number} | {number}",
    author=".bbp-author-name",
    date=".bbp-reply-post-date | .bbp-topic-post-date",
    content=".bbp-reply-content | .bbp-topic-content",
    dropped=".bbp-reply-revision-log, .bbp-topic-revision-log",
    next_page="a.next.page-numbers@href",
)
