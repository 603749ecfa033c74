"""Simple Machines Forum 2."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

SMF = Profile(
    name="smf",
    signs="#forumposts .post_wrapper, #messageindex, #topic_container, .post_wrapper .inner[id^='msg_']",
    thread="#messageindex tr:has(span[id^='msg_']), #topic_container > div",
    thread_link="span[id^='msg_'] a | .message_index_title a",
    thread_id="topic={number} | topic,{number} | -t{number}",
    replies="td.stats | td.replies | .board_stats",
    last="td.lastpost a@href | .lastpost a@href",
    pinned=".sticky, .stickybg, .stickybg2, img[src*='sticky'], .main_icons.sticky",
    boards=".board_groups a.subject, a.subject[name^='b'], .info a.subject",
    title="#display_head .display_title | .display_title | #forumposts h3.catbg a | [id^='subject_'] a",
    post="#forumposts .post_wrapper, #quickModForm .post_wrapper",
    post_id=".inner@id | [id^='msg_']@id | [id^='subject_']@id",
    author=".poster h4 a | .poster h4",
    date=".keyinfo .smalltext | .postinfo .smalltext | .smalltext",
    content=".post .inner | .inner",
    reply_to=".quoteheader a@href | blockquote cite a@href",
    dropped=".signature, .moderatorbar, .codeheader, .topslice_quote a.more",
    next_page=".pagelinks .current_page + a.nav_page@href | .pagelinks strong + a.navPages@href",
)
