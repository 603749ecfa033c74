"""A simulated forum over HTTP: boards, threads that grow, edits, deletions, images and faults.

    python -m headwater.sim.forum --port 8902 --seed 1

The same boards are at /bbs/ as pages in the markup of Discuz, and at /talk/ as JSON in the shape of Discourse's API.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from hashlib import blake2b
from html import escape
from typing import Any

from headwater.sim.forum_world import ForumHabits, SimForum, SimForumPost, SimThread, last_post, simulated
from headwater.sim.serving import Answer, Ask, conditional, json_answer, png, run, serving_site, with_faults

_BOARD_PAGE = re.compile(r"/bbs/forum-(\d{1,9})-(\d{1,9})\.html")
_THREAD_PAGE = re.compile(r"/bbs/thread-(\d{1,9})-(\d{1,9})-\d{1,9}\.html")
_TOPICS = re.compile(r"/talk(?:/c/[^/]+/(\d{1,9})/l)?/latest\.json")
_TOPIC = re.compile(r"/talk/t/(?:[^/]+/)?(\d{1,9})\.json")
_TALK_PAGE = re.compile(r"/talk/(?:c/[^/]+/\d{1,9}/?)?")
_IMAGE = re.compile(r"/pictures/(\d{1,9})\.png")
_TALK_POSTS_A_PAGE = 20
# What a browser gets first; a script would make the rest.
_TALK_HTML = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Headwater talk</title>'
    '<meta name="generator" content="Discourse 3.4.0"></head><body><section id="main"></section></body></html>'
)
# Dates on the pages are in the members' time zone.
_ZONE = timedelta(hours=8)


@with_faults
def answer(forum: SimForum, asked: Ask, now: datetime, fault: str | None) -> Answer:
    return _fault(fault) or conditional(_answer(forum, asked, now), asked)


def serving(forum: SimForum, port: int = 0) -> AbstractContextManager[SimForum]:
    """Serves it on loopback and sets its `url`."""
    return serving_site(forum, answer, port)


def _fault(name: str | None) -> Answer | None:
    match name:
        case "busy":
            return Answer(429, b"Too many requests", {"Retry-After": "30"})
        case "broken":
            return Answer(500, b"<html><body>Database error</body></html>", {"Content-Type": "text/html"})
        case "unavailable":
            return Answer(503, b"<html><body>Closed for maintenance</body></html>", {"Content-Type": "text/html"})
    return None


def _answer(forum: SimForum, asked: Ask, now: datetime) -> Answer:
    page = asked.query.get("page", "")
    wanted = int(page) if page.isdigit() and len(page) < 7 else None
    if asked.path == "/robots.txt":
        return Answer(200, b"User-agent: *\nDisallow: /admin/\n", {"Content-Type": "text/plain"})
    if asked.path in ("/bbs/", "/bbs/index.html"):
        return _html(_index_page(forum))
    if found := _BOARD_PAGE.fullmatch(asked.path):
        return _html(_board_page(forum, int(found[1]), max(1, int(found[2])), now))
    if found := _THREAD_PAGE.fullmatch(asked.path):
        return _html(_thread_page(forum, int(found[1]), max(1, int(found[2])), now))
    if _TALK_PAGE.fullmatch(asked.path):
        return _html(_TALK_HTML)
    if found := _TOPICS.fullmatch(asked.path):
        return _json(_topic_list(forum, int(found[1]) if found[1] else None, wanted or 0, now))
    if found := _TOPIC.fullmatch(asked.path):
        return _json(_topic(forum, int(found[1]), wanted or 1, now))
    if found := _IMAGE.fullmatch(asked.path):
        return Answer(200, _image(int(found[1])), {"Content-Type": "image/png"})
    return Answer(404, b"There is nothing here.", {"Content-Type": "text/plain"})


def _image(number: int) -> bytes:
    """Returns a small PNG of one colour, another for each number."""
    return png(blake2b(number.to_bytes(8, "big"), digest_size=3).digest(), 16, 16)


def _html(page: str | None) -> Answer:
    if page is None:
        return Answer(404, b"<html><body>No such page</body></html>", {"Content-Type": "text/html"})
    return Answer(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def _json(document: Any) -> Answer:
    if document is None:
        return Answer(404, b'{"errors": ["not found"]}', {"Content-Type": "application/json"})
    return json_answer(document)


def _index_page(forum: SimForum) -> str:
    boards = "".join(
        f'<tr><td class="fl_g"><dl><dt><a href="forum-{number}-1.html">{escape(name)}</a></dt></dl></td></tr>'
        for number, name in forum.boards.items()
    )
    return _page("Index", f'<table class="fl_tb">{boards}</table>')


def _board_page(forum: SimForum, number: int, page: int, now: datetime) -> str | None:
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


def _thread_page(forum: SimForum, id: int, page: int, now: datetime) -> str | None:
    thread = forum.threads.get(id)
    posts = thread.posts_at(now) if thread else []
    if thread is None or not posts:
        return None
    # Such boards show the last page for every number after it.
    page = min(page, (len(posts) + forum.posts_a_page - 1) // forum.posts_a_page)
    start = (page - 1) * forum.posts_a_page
    shown = "".join(_post_html(thread, post, now) for post in posts[start : start + forum.posts_a_page])
    before = f'<a class="prev" href="thread-{id}-{page - 1}-1.html">上一页</a>' if page > 1 else ""
    more = f'<a class="nxt" href="thread-{id}-{page + 1}-1.html">下一页</a>'
    pager = before + (more if len(posts) > start + forum.posts_a_page else "")
    title = f'<span id="thread_subject">{escape(thread.title)}</span>'
    return _page(thread.title, f'<h1>{title}</h1><div class="pg">{pager}</div><div id="postlist">{shown}</div>')


def _post_html(thread: SimThread, post: SimForumPost, now: datetime) -> str:
    version = post.version_at(now)
    edited = (
        f'<i class="pstatus">本帖最后编辑于 {_date(version.since, now)}</i>' if version.since > post.created_at else ""
    )
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in version.text.split("\n\n"))
    image = (
        f'<img src="/static/none.gif" file="/pictures/{post.image}.png" alt="图 {post.image}"/>' if post.image else ""
    )
    return (
        f'<div id="post_{post.id}"><table id="pid{post.id}" class="plhin"><tr>'
        f'<td class="pls"><div class="authi"><a class="xw1" href="space-{post.id}.html">{escape(post.author)}</a></div>'
        f'</td><td class="plc"><em id="authorposton{post.id}">发表于 {_date(post.created_at, now)}</em>'
        f'<table><tr><td class="t_f" id="postmessage_{post.id}">{edited}{_quote(thread, post, now)}'
        f'{paragraphs}{image}</td></tr></table><div class="sign">— {escape(post.author)}</div>'
        "</td></tr></table></div>"
    )


def _quote(thread: SimThread, post: SimForumPost, now: datetime) -> str:
    quoted = next((other for other in thread.posts_at(now) if other.id == post.answers), None)
    if quoted is None:
        return ""
    link = f"forum.php?mod=redirect&amp;goto=findpost&amp;pid={quoted.id}&amp;ptid={thread.id}"
    words = escape(quoted.version_at(now).text[:40])
    return f'<div class="quote"><blockquote><a href="{link}">{escape(quoted.author)}</a><br/>{words}</blockquote></div>'


def _date(moment: datetime, now: datetime) -> str:
    """Returns a time as such boards write it: a recent one as "5 minutes ago" with the date in its title."""
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


def _topic_list(forum: SimForum, board: int | None, page: int, now: datetime) -> dict[str, Any] | None:
    """Returns a page of the latest topics, of one board or of all. Pages count from 0."""
    if board is not None and board not in forum.boards:
        return None
    threads = forum.listed(forum.boards[board] if board else None, now)
    start = page * forum.threads_a_page
    listed: dict[str, Any] = {
        "topics": [_topic_json(thread, now) for thread in threads[start : start + forum.threads_a_page]]
    }
    if len(threads) > start + forum.threads_a_page:
        place = f"/talk/c/{forum.boards[board]}/{board}/l" if board else "/talk"
        listed["more_topics_url"] = f"{place}/latest?page={page + 1}"
    return {"topic_list": listed}


def _topic_json(thread: SimThread, now: datetime) -> dict[str, Any]:
    posts = thread.posts_at(now)
    return {
        "id": thread.id,
        "title": thread.title,
        "slug": "topic",
        "posts_count": len(posts),
        "highest_post_number": thread.place_of(posts[-1].id),
        "created_at": _time(posts[0].created_at),
        "last_posted_at": _time(last_post(thread, now).created_at),
        "bumped_at": _time(last_post(thread, now).created_at),
        "pinned": thread.pinned,
        "views": len(posts) * 17,
    }


def _topic(forum: SimForum, id: int, page: int, now: datetime) -> dict[str, Any] | None:
    """Returns a page of a topic, or None after the last. Pages count from 1."""
    thread = forum.threads.get(id)
    posts = thread.posts_at(now) if thread else []
    if thread is None or not posts:
        return None
    shown = posts[(page - 1) * _TALK_POSTS_A_PAGE : page * _TALK_POSTS_A_PAGE]
    if not shown:
        return None
    return {
        "id": id,
        "title": thread.title,
        "posts_count": len(posts),
        "chunk_size": _TALK_POSTS_A_PAGE,
        "post_stream": {
            "posts": [_post_json(thread, post, now) for post in shown],
            "stream": [post.id for post in posts],
        },
    }


def _post_json(thread: SimThread, post: SimForumPost, now: datetime) -> dict[str, Any]:
    version = post.version_at(now)
    paragraphs = "".join(f"<p>{escape(part)}</p>\n" for part in version.text.split("\n\n"))
    image = f'<p><img src="/pictures/{post.image}.png" alt="Picture {post.image}"></p>' if post.image else ""
    return {
        "id": post.id,
        "post_number": thread.place_of(post.id),
        "post_type": 1,
        "username": post.author,
        "created_at": _time(post.created_at),
        "updated_at": _time(version.since),
        "version": post.versions.index(version) + 1,
        "cooked": paragraphs + image,
        "reply_count": 0,
        "reply_to_post_number": thread.place_of(post.answers) if post.answers else None,
        "topic_id": thread.id,
        "topic_slug": "topic",
        "actions_summary": [{"id": 2, "count": post.id % 5}],
    }


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


def _from_arguments(given: Namespace) -> SimForum:
    boards = {"mining": ForumHabits(), "kuangji": ForumHabits(lang="zh")}
    forum = simulated(boards, seed=given.seed, lasts=timedelta(days=given.days))
    forum.clock.advance(timedelta(days=given.days / 2))
    return forum


def _addresses(forum: SimForum) -> Iterator[str]:
    for number, name in forum.boards.items():
        yield f"{forum.url}/bbs/forum-{number}-1.html {forum.url}/talk/c/{name}/{number}"


if __name__ == "__main__":
    options = {"--days": {"type": float, "default": 7.0}}
    run("A simulated forum on loopback.", options, _from_arguments, answer, _addresses)
