"""What is known of one forum software: where its pages keep threads and posts. Lines are read by `places`."""

from __future__ import annotations

from typing import NamedTuple


class Profile(NamedTuple):
    """`signs` stand on every page of the software and on no other.

    Of a list: `thread` is there once for each thread; within it are `thread_link`, the number of `replies` and what
    else tells of the last one (`last`: never a relative time, which would change by itself). `pinned` threads stand
    above the order. `boards` are links to lists.

    Of a thread: `post` is there once for each post; within it are `post_id`, `author`, `date`, `content`, and the post
    that it answers (`reply_to`). `dropped` is what stands in the content without being said by its author.
    `zone` is the offset from UTC, in minutes, of dates without one.
    """

    name: str
    signs: str = ""
    thread: str = ""
    thread_link: str = "a@href"
    thread_id: str = ""
    replies: str = ""
    last: str = ""
    created: str = ""
    pinned: str = ""
    boards: str = ""
    title: str = ""
    post: str = ""
    post_id: str = "@id"
    post_id_pattern: str = "{number}"
    author: str = ""
    date: str = ""
    content: str = ""
    reply_to: str = ""
    dropped: str = ""
    next_page: str = ""
    zone: int = 0
