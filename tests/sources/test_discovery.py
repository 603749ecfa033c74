"""Where the feeds of a site are, from its address, from its page, or by the usual paths."""

from __future__ import annotations

import pytest
from feeds_by_hand import atom, rss
from hypothesis import given
from hypothesis import strategies as st

from headwater.sources.discovery import FeedLink, address_rules, common_paths, links_in_page, looks_like_feed

YOUTUBE = "https://www.youtube.com/feeds/videos.xml?"


@pytest.mark.parametrize(
    ("address", "feeds"),
    [
        ("https://www.youtube.com/channel/UCx/videos", [f"{YOUTUBE}channel_id=UCx"]),
        ("https://youtube.com/user/somebody", [f"{YOUTUBE}user=somebody"]),
        ("https://www.youtube.com/playlist?list=PLx", [f"{YOUTUBE}playlist_id=PLx"]),
        ("https://www.youtube.com/watch?v=1&list=PLx", [f"{YOUTUBE}playlist_id=PLx"]),
        ("https://www.youtube.com/@handle", []),
        ("https://old.reddit.com/r/Python/", ["https://www.reddit.com/r/Python/.rss"]),
        ("reddit.com/r/Python/top", ["https://www.reddit.com/r/Python/top/.rss"]),
        ("https://www.reddit.com/u/somebody", ["https://www.reddit.com/user/somebody/.rss"]),
        ("https://www.reddit.com/r/a/comments/1x/title/", ["https://www.reddit.com/r/a/comments/1x/.rss"]),
        (
            "https://github.com/a/b",
            [f"https://github.com/a/b/{name}.atom" for name in ("releases", "tags", "commits")],
        ),
        ("https://github.com/a/b/commits/main/src", ["https://github.com/a/b/commits/main.atom"]),
        ("https://github.com/a/b/tags", ["https://github.com/a/b/tags.atom"]),
        ("https://github.com/a", ["https://github.com/a.atom"]),
        ("https://mastodon.example/@someone", ["https://mastodon.example/@someone.rss"]),
        ("https://letter.substack.com/p/one", ["https://letter.substack.com/feed"]),
        ("https://medium.com/@someone/story", ["https://medium.com/feed/@someone"]),
        ("https://medium.com/tag/rust", ["https://medium.com/feed/tag/rust"]),
        ("https://pub.medium.com/", ["https://pub.medium.com/feed"]),
        ("https://someone.tumblr.com/post/1", ["https://someone.tumblr.com/rss"]),
        ("https://www.tumblr.com/someone", ["https://someone.tumblr.com/rss"]),
        ("https://someone.wordpress.com/", ["https://someone.wordpress.com/feed/"]),
        ("https://someone.blogspot.com/2026/", ["https://someone.blogspot.com/feeds/posts/default"]),
        ("https://bsky.app/profile/a.example", ["https://bsky.app/profile/a.example/rss"]),
        ("https://stackoverflow.com/questions/tagged/python", ["https://stackoverflow.com/feeds/tag/python"]),
        ("https://vimeo.com/someone", ["https://vimeo.com/someone/videos/rss"]),
        ("https://news.ycombinator.com/newest", ["https://news.ycombinator.com/rss"]),
        ("https://a.example/blog", []),
        ("https://a.example/@", []),
    ],
)
def test_sites_with_a_rule_are_known_by_their_address(address: str, feeds: list[str]) -> None:
    assert address_rules(address) == feeds


PAGE = b"""<!DOCTYPE html><html><head><base href="/site/">
<link rel="alternate" type="application/rss+xml" href="comments/feed" title="Comments on A">
<link rel="ALTERNATE" type="application/rss+xml; charset=utf-8" href="feed" title="News &amp; more">
<link rel="alternate" type="application/atom+xml" href="https://b.example/atom">
<link rel="alternate" type="application/atom+xml" href="https://b.example/atom">
<link rel="alternate" hreflang="de" href="/de"><link rel="stylesheet" href="x.css">
<link rel="alternate" type="application/rss+xml" href="javascript:alert(1)">
</head><body><a href="/rss.xml"><b>Subscribe</b></a><a href="/about">About</a><a href="feed">again</a></body></html>"""


def test_the_links_of_a_page_come_best_first_and_comments_last() -> None:
    assert links_in_page(PAGE, "https://a.example/x") == [
        FeedLink("https://b.example/atom", "", "application/atom+xml"),
        FeedLink("https://a.example/site/feed", "News & more", "application/rss+xml"),
        FeedLink("https://a.example/rss.xml", "Subscribe", ""),
        FeedLink("https://a.example/site/comments/feed", "Comments on A", "application/rss+xml"),
    ]


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: f"<link rel=alternate href={text}>".encode("utf-8", "replace"))
)
def test_any_page_has_links_that_can_be_followed_or_none(body: bytes) -> None:
    assert all(found.url.startswith(("http://", "https://")) for found in links_in_page(body, "https://a.example/"))
    assert looks_like_feed(body) in {True, False}


@given(st.text(max_size=80))
def test_any_address_follows_a_rule_or_none(text: str) -> None:
    assert isinstance(address_rules(text), list)


def test_the_usual_paths_are_tried_below_the_page_first() -> None:
    paths = common_paths("https://a.example/blog")
    assert paths[0] == "https://a.example/blog/feed/"
    assert "https://a.example/feed" in paths
    assert common_paths("https://a.example/")[0] == "https://a.example/feed"
    assert len(paths) == len(set(paths)) < 25


@pytest.mark.parametrize(
    "body",
    [
        rss(),
        atom(),
        "<?xml version='1.0'?>\n<!-- x --><!DOCTYPE rss [<!ENTITY a 'b'>]>\n<rss>",
        '<rdf:RDF xmlns:rdf="x">',
        '{"version": "https://jsonfeed.org/version/1.1"',
        '{"title": "x", "version" : "https:\\/\\/jsonfeed.org\\/version\\/1"',
    ],
)
def test_a_page_that_is_itself_a_feed_is_known(body: str) -> None:
    assert looks_like_feed(body.encode())
    assert looks_like_feed(body.encode("utf-16"))


@pytest.mark.parametrize("body", ["", "<html><rss></html>", "<rssx>", "{}", '{"version": "1"}', "<opml>"])
def test_other_pages_are_not_taken_for_feeds(body: str) -> None:
    assert not looks_like_feed(body.encode())
