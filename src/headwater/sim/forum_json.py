"""The simulated forum as JSON, in the shape of Discourse's API: lists of topics, topics with their posts."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import Any

from headwater.sim.forum_world import SimForum, SimPost, SimThread, last_post

POSTS_A_PAGE = 20
# What a browser gets at first: the rest is made by script.
TALK_PAGE = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Headwater talk</title>'
    '<meta name="generator" content="Discourse 3.4.0"></head><body><section id="main"></section></body></html>'
)


def topic_list(forum: SimForum, board: int | None, page: int, now: datetime) -> dict[str, Any] | None:
    """A page of the latest topics, counted from 0: of a board, or of all."""
    if board is not None and board not in forum.boards:
        return None
    threads = forum.listed(forum.boards[board] if board else None, now)
    start = page * forum.threads_a_page
    listed: dict[str, Any] = {
        "topics": [_topic(thread, now) for thread in threads[start : start + forum.threads_a_page]]
    }
    if len(threads) > start + forum.threads_a_page:
        place = f"/talk/c/{forum.boards[board]}/{board}/l" if board else "/talk"
        listed["more_topics_url"] = f"{place}/latest?page={page + 1}"
    return {"topic_list": listed}


def _topic(thread: SimThread, now: datetime) -> dict[str, Any]:
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


def topic(forum: SimForum, id: int, page: int, now: datetime) -> dict[str, Any] | None:
    """A page of a topic, counted from 1; None after the last."""
    thread = forum.threads.get(id)
    posts = thread.posts_at(now) if thread else []
    if thread is None or not posts:
        return None
    shown = posts[(page - 1) * POSTS_A_PAGE : page * POSTS_A_PAGE]
    if not shown:
        return None
    return {
        "id": id,
        "title": thread.title,
        "posts_count": len(posts),
        "chunk_size": POSTS_A_PAGE,
        "post_stream": {
            "posts": [_post(forum, thread, post, now) for post in shown],
            "stream": [post.id for post in posts],
        },
    }


def _post(forum: SimForum, thread: SimThread, post: SimPost, now: datetime) -> dict[str, Any]:
    version = post.version_at(now)
    paragraphs = "".join(f"<p>{escape(part)}</p>\n" for part in version.text.split("\n\n"))
    picture = f'<p><img src="/pictures/{post.picture}.png" alt="Picture {post.picture}"></p>' if post.picture else ""
    return {
        "id": post.id,
        "post_number": thread.place_of(post.id),
        "post_type": 1,
        "username": post.author,
        "created_at": _time(post.created_at),
        "updated_at": _time(version.since),
        "version": post.versions.index(version) + 1,
        "cooked": paragraphs + picture,
        "reply_count": 0,
        "reply_to_post_number": thread.place_of(post.answers) if post.answers else None,
        "topic_id": thread.id,
        "topic_slug": "topic",
        "actions_summary": [{"id": 2, "count": post.id % 5}],
    }


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
