"""V2EX and the boards that look like it."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

V2EX = Profile(
    name="v2ex",
    signs="a.topic-link, .cell[id^='r_'] .reply_content, .topic_content .markdown_body, #Main .header h1 ~ small.gray",
    thread=".cell.item, #TopicsNode > .cell",
    thread_link="a.topic-link | .item_title a",
    thread_id="/t/{number}",
    replies="a.count_livid | a.count_orange",
    last=".topic_info strong ~ strong a@href",
    pinned=".cell[style*='star'], .cell[style*='corner']",
    boards="#Main a.item_node, .cell a[href^='/go/']",
    title="#Main .header h1",
    post="#Main .box:has(.header h1), .cell[id^='r_']",
    author=".header small a[href^='/member/'] | strong a[href^='/member/']",
    date=".header small span@title | .ago@title | .header small span | .ago",
    content=".reply_content | .topic_content",
    next_page="a.page_current + a.page_normal@href",
    zone=480,
)
