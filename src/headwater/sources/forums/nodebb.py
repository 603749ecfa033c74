"""NodeBB."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

NODEBB = Profile(
    name="nodebb",
    signs="[component='post'][data-pid], [component='category/topic'], [component='topic'][data-tid]",
    thread="[component='category/topic'][data-tid]",
    thread_link="[component='topic/header'] a | h3 a",
    thread_id="topic/{number}",
    replies=".stats-postcount .human-readable-number@title | .stats-postcount",
    last=".teaser .timeago@title | [component='topic/teaser'] .timeago@title",
    created=".timeago@title",
    pinned=".pinned[component='category/topic']",
    boards="[component='categories/category'] h2 a, [component='categories/category'] h4 a",
    title="[component='topic/title'] | h1",
    post="[component='post'][data-pid]",
    post_id="@data-pid",
    author="@data-username | [data-username]@data-username",
    date="@data-timestamp | .timeago@title | time@datetime",
    content="[component='post/content']",
    reply_to="@data-to-pid | [component='post/parent']@data-topid",
    dropped="[component='post/signature']",
    next_page=".pagination .next:not(.disabled) a@href",
)
