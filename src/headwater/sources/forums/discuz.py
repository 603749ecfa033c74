"""Discuz! (7 to X3.5), as most Chinese boards run it."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

DISCUZ = Profile(
    name="discuz",
    signs=(
        "meta[name='generator'][content*='Discuz'], #nv_forum, #postlist table[id^='pid'], tbody[id^='normalthread_'],"
        " form#moderate .threadlist"
    ),
    thread="tbody[id^='normalthread_'], tbody[id^='stickthread_']",
    thread_link="a.xst | th.subject a | th span[id^='thread_'] a | th a[href*='thread']",
    thread_id="thread-{number} | tid={number} | thread_{number}",
    replies="td.num a | td.nums strong",
    last=(
        "td.num + td.by em span@title | td.num + td.by em a@title | td.num + td.by em | td.lastpost em a"
        " | td.lastpost cite"
    ),
    created="td.by em span@title | td.by em span | td.author em",
    pinned="tbody[id^='stickthread_']",
    boards=".fl_tb h2 a, .fl_tb dt a, .fl_g dt a, .forumlist h2 a",
    title="#thread_subject | #threadtitle h1",
    post="table[id^='pid']",
    author=".authi a.xw1 | .pls .authi a | .postauthor .postinfo a | .postauthor cite a",
    date="em[id^='authorposton'] span@title | em[id^='authorposton'] | .authorinfo em",
    content="td.t_f | td[id^='postmessage_'] | .t_msgfont | .t_fsz | .pcb",
    reply_to="blockquote a[href*='pid=']@href",
    dropped=(
        ".pstatus, .jammer, .aimg_tip, .tip, .attach_nopermission, [style*='display:none'], [style*='display: none']"
    ),
    next_page="a.nxt@href | .pages a.next@href",
    zone=480,
)
