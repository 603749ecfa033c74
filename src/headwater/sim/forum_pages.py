"""The simulated forum as pages, in the markup of a Chinese board's software: index, boards, threads."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape

from headwater.sim.forum_world import SimForum, SimPost, SimThread, last_post

# The board's clock is that of its members.
_ZONE = timedelta(hours=8)


def index_page(forum: SimForum) -> str:
    boards = "".join(
        f'<tr><td class="fl_g"><dl><dt><a href="forum-{number}-1.html">{escape(name)}</a></dt></dl></td></tr>'
        for number, name in forum.boards.items()
    )
    return _page("Index", f'<table class="fl_tb">{boards}</table>')


def board_page(forum: SimForum, number: int, page: int, now: datetime) -> str | None:
    name = forum.boards.get(number)
    if name is None:
        return None
    threads = forum.listed(name, now)
    start = (page - 1) * forum.threads_a_page
    rows = "".join(_row(thread, now) for thread in threads[start : start + forum.threads_a_page])
    more = f'<a class="nxt" href="forum-{number}-{page + 1}.html">下一页</a>'
    pager = more if len(threads) > start + forum.threads_a_page else ""
    return _page(
        name, f'<div id="threadlist"><table id="threadlisttableid">{rows}</table></div><div class="pg">{pager}</div>'
    )


def _row(thread: SimThread, now: datetime) -> str:
    posts = thread.posts_at(now)
    last = last_post(thread, now)
    kind = "stickthread" if thread.pinned else "normalthread"
    return (
        f'<tbody id="{kind}_{thread.id}"><tr><td class="icn"></td><th>'
        f'<a href="thread-{thread.id}-1-1.html" class="s xst">{escape(thread.title)}</a></th>'
        f'<td class="by"><cite>{escape(posts[0].author)}</cite><em>{_date(posts[0].created_at, now)}</em></td>'
        f'<td class="num"><a class="xi2">{len(posts) - 1}</a><em>{len(posts) * 17}</em></td>'
        f'<td class="by"><cite>{escape(last.author)}</cite><em><a>{_date(last.created_at, now)}</a></em></td>'
        "</tr></tbody>"
    )


def thread_page(forum: SimForum, id: int, page: int, now: datetime) -> str | None:
    thread = forum.threads.get(id)
    posts = thread.posts_at(now) if thread else []
    if thread is None or not posts:
        return None
    # A page after the last one is the last one.
    page = min(page, (len(posts) + forum.posts_a_page - 1) // forum.posts_a_page)
    start = (page - 1) * forum.posts_a_page
    shown = "".join(_post(forum, thread, post, now) for post in posts[start : start + forum.posts_a_page])
    before = f'<a class="prev" href="thread-{id}-{page - 1}-1.html">上一页</a>' if page > 1 else ""
    more = f'<a class="nxt" href="thread-{id}-{page + 1}-1.html">下一页</a>'
    pager = before + (more if len(posts) > start + forum.posts_a_page else "")
    title = f'<span id="thread_subject">{escape(thread.title)}</span>'
    return _page(thread.title, f'<h1>{title}</h1><div class="pg">{pager}</div><div id="postlist">{shown}</div>')


def _post(forum: SimForum, thread: SimThread, post: SimPost, now: datetime) -> str:
    version = post.version_at(now)
    edited = (
        f'<i class="pstatus">本帖最后编辑于 {_date(version.since, now)}</i>' if version.since > post.created_at else ""
    )
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in version.text.split("\n\n"))
    picture = (
        f'<img src="/static/none.gif" file="/pictures/{post.picture}.png" alt="图 {post.picture}"/>'
        if post.picture
        else ""
    )
    return (
        f'<div id="post_{post.id}"><table id="pid{post.id}" class="plhin"><tr>'
        f'<td class="pls"><div class="authi"><a class="xw1" href="space-{post.id}.html">{escape(post.author)}</a></div>'
        f'</td><td class="plc"><em id="authorposton{post.id}">发表于 {_date(post.created_at, now)}</em>'
        f'<table><tr><td class="t_f" id="postmessage_{post.id}">{edited}{_quote(thread, post, now)}'
        f'{paragraphs}{picture}</td></tr></table><div class="sign">— {escape(post.author)}</div>'
        "</td></tr></table></div>"
    )


def _quote(thread: SimThread, post: SimPost, now: datetime) -> str:
    quoted = next((other for other in thread.posts_at(now) if other.id == post.answers), None)
    if quoted is None:
        return ""
    link = f"forum.php?mod=redirect&amp;goto=findpost&amp;pid={quoted.id}&amp;ptid={thread.id}"
    words = escape(quoted.version_at(now).text[:40])
    return f'<div class="quote"><blockquote><a href="{link}">{escape(quoted.author)}</a><br/>{words}</blockquote></div>'


def _date(moment: datetime, now: datetime) -> str:
    """As such boards write it: lately by its distance, with the date behind it; otherwise as a date."""
    local, ago = moment + _ZONE, now - moment
    written = f"{local.year}-{local.month}-{local.day} {local:%H:%M}"
    if ago < timedelta(hours=1):
        words = f"{int(ago.total_seconds() // 60)} 分钟前"
    elif ago < timedelta(hours=8):
        words = f"{int(ago.total_seconds() // 3600)} 小时前"
    elif ago < timedelta(days=1):
        words = f"昨天 {local:%H:%M}"
    else:
        return f"<span>{written}</span>"
    return f'<span title="{written}">{words}</span>'


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="zh-CN"><head><meta charset="utf-8"/>'
        f'<title>{escape(title)} - 河源论坛</title><meta name="generator" content="Discuz! X3.5"/></head>'
        f'<body id="nv_forum"><div id="ct">{body}</div><div id="ft">GMT+8</div></body></html>'
    )
