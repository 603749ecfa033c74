"""phpBB 3 (prosilver, its relatives and subsilver2)."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

PHPBB = Profile(
    name="phpbb",
    signs="body#phpbb, .topiclist.topics, div.post[id^='p'] .postbody, table.tablebg .postbody, .postbody .content",
    thread=".topiclist.topics > li, .topiclist.topics li.row, table.tablebg tr:has(a.topictitle)",
    thread_link="a.topictitle",
    thread_id="?t={number} | &t={number} | -t{number}.html | topic{number}.html",
    replies="dd.posts | .topicdetails",
    last="dd.lastpost a[href*='p=']@href | td a[href*='p=']@href | dd.lastpost time@datetime",
    created=".topic-poster time@datetime | .responsive-hide time@datetime",
    pinned=".sticky, .announce, .global-announce, dl[class*='sticky'], dl[class*='announce'], img[src*='sticky']",
    boards="a.forumtitle, a.forumlink",
    title=".topic-title | #page-body h2 | a.titles | h3.first",
    post="div.post:has(.postbody), table.tablebg:has(.postbody), article.post:has(.postbody), .post:has(.content)",
    post_id="@id | a[name^='p']@name | .postbody h3 a@href | a[href*='#p']@href",
    post_id_pattern="#p{number} | p{number} | {number}",
    author=".author .username, .author .username-coloured, .postprofile .username, .postprofile .username-coloured"
    " | .postauthor | .author strong | .postprofile dt a",
    date=".author time@datetime | time@datetime | .author | .postbody .gensmall | .gensmall",
    content=".content | .postbody",
    reply_to="blockquote cite a[data-post-id]@data-post-id | blockquote cite a@href",
    dropped=".signature, .notice, .post-buttons, .codebox > p, dl.codebox dt",
    next_page="li.next a@href | li.arrow.next a@href | .pagination a[rel='next']@href | a.right-box.right@href",
)
