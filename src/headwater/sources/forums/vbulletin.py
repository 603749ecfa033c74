"""vBulletin 3, 4 and 5."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

VBULLETIN = Profile(
    name="vbulletin",
    signs=(
        "meta[name='generator'][content*='vBulletin'], body.vb-page, [id^='post_message_'], li.threadbit,"
        " td[id^='td_threadtitle_'], a[id^='thread_title_']"
    ),
    thread="li.threadbit, tr:has(> td[id^='td_threadtitle_']), tr.topic-item, div.threadbit",
    thread_link="a[id^='thread_title_'] | a.topic-title | a.title",
    thread_id=(
        "?t={number} | &t={number} | /{number}- | threads/{number} | showthread.php?{number} | thread_title_{number}"
    ),
    replies="a[href*='whoposted'] | .threadstats li a | .threadstats li | .posts-count",
    last="a[href*='#post']@href | .threadlastpost a.lastpostdate@href | .lastpost-date time@datetime | .lastpost-date",
    pinned="#stickies .threadbit, .threadbit.sticky, tr.topic-item.sticky, img[src*='sticky'], .prefix.sticky",
    boards="a.forum-title, .forumtitle a, td[id^='f'] a[href*='forumdisplay'] strong",
    title=".threadtitle a | h1.main-title | .threadtitle | td.navbar strong | h1",
    post=(
        "table[id^='post']:has([id^='post_message_']), li[id^='post_']:has(.postbody), li.b-post[data-node-id],"
        " div[id^='post']:has(> [id^='post_message_']), div[id^='edit']:has([id^='post_message_'])"
    ),
    post_id="@data-node-id | [id^='post_message_']@id | @id",
    author=".bigusername | a.username | .username | [itemprop='author'] [itemprop='name'] | .author a",
    date="time@datetime | .postdate .date | .date | .b-post__timestamp | td.thead | .thead",
    content=".js-post__content-text | [id^='post_message_'] | .postcontent",
    reply_to=".bbcode_postedby a@href | .quote_container a[href*='#post']@href | a[href*='#post'][rel='nofollow']@href",
    dropped=".signaturecontainer, .after_content, .postfoot, .b-post__signature",
    next_page="a[rel='next']@href | .prev_next a[rel='next']@href | a.right-arrow@href",
)
