"""MyBB 1.6 and 1.8."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

MYBB = Profile(
    name="mybb",
    signs="#posts .post_body, .post_body[id^='pid_'], tr.inline_row, .post_author .author_information",
    thread="tr.inline_row",
    thread_link="span[id^='tid_'] a | .subject_new a | .subject_old a",
    thread_id="tid={number} | thread-{number} | tid_{number} | Thread-{id}",
    replies="a[href*='whoposted'] | a[onclick*='whoPosted']",
    last=".lastpost span@title | .lastpost",
    pinned=".forumdisplay_sticky, .trow_sticky",
    boards="td strong a[href*='forum']",
    title=".thead strong | .thead",
    post="#posts .post, #posts table[id^='post_'], div.post[id^='post_'], table.tborder[id^='post_']",
    author=".author_information strong | .post_author strong | .largetext a",
    date=".post_date span@title | .post_date",
    content=".post_body",
    reply_to="blockquote cite a.quick_jump@href | blockquote cite a@href",
    dropped=".signature, .post_edit, .post_controls",
    next_page="a.pagination_next@href",
)
