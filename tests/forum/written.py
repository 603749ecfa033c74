"""The same board and the same thread in the markup of each forum software, as `written.toml` describes them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

SITE = "https://forum.example"
SAID = 'Which fan is <b onclick="evil()">quiet</b>?<script>evil()</script><img src="/fan.png" alt="a fan">'
ANSWER = 'The <a href="javascript:evil()">slow</a> one.'
THREADS = ((11, "Rules of the board"), (12, "Which fan is quiet?"))
POSTS = ((501, "alder", SAID), (502, "birch", ANSWER))


class Written(NamedTuple):
    list_url: str
    list_page: str
    thread_url: str
    thread_page: str
    next_list: str
    answers: bool = True


def _written(markup: dict[str, Any]) -> Written:
    pinned, times, quotes = markup.get("pinned", ["", ""]), markup.get("times", ["", ""]), ["", markup.get("quote", "")]
    posts = [markup.get("post", ""), markup.get("reply", markup.get("post", ""))]
    rows = [
        markup.get("row", "").format(id=id, title=title, pinned=pinned[place])
        for place, (id, title) in enumerate(THREADS)
    ]
    said = [
        posts[place].format(id=id, author=author, at=times[place], said=text, quote=quotes[place])
        for place, (id, author, text) in enumerate(POSTS)
    ]
    thread = {"title": THREADS[1][1], "posts": "".join(said), "said": SAID, "answer": ANSWER}
    return Written(
        SITE + markup["list_url"],
        markup["list_page"].format(rows="".join(rows)),
        SITE + markup["thread_url"],
        markup["thread_page"].format(**thread),
        SITE + markup["next_list"],
        markup.get("answers", True),
    )


_MARKUP = tomllib.loads((Path(__file__).parent / "written.toml").read_text("utf-8"))
WRITTEN = {software: _written(markup) for software, markup in _MARKUP.items()}
# Software whose pages do not say what is pinned.
NO_PINS = {"stackexchange", "flarum"}
