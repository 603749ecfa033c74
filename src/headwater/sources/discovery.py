"""Where a site keeps its feeds: by its address alone, by the links on its page, or by common paths. Fetches nothing.

Callers try them in this order: `address_rules`, then the page itself (`looks_like_feed`, else `links_in_page`), then
`common_paths`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from headwater.sources.encoding import as_utf8
from headwater.text import plain
from headwater.urls import joined, safe_link

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_LINKS = 30
MAX_PAGE = 2_000_000


class FeedLink(NamedTuple):
    """A feed that a page links to, as the page describes it."""

    url: str
    title: str = ""
    type: str = ""


_FEED_TYPES = {
    "application/atom+xml": 0,
    "application/rss+xml": 1,
    "application/feed+json": 2,
    "application/rdf+xml": 3,
    "application/json": 4,
    "application/xml": 5,
    "text/xml": 5,
}
_OF_COMMENTS = re.compile(r"\bcomments?\b|kommentar|commentaire|comentario|commenti|/comments/", re.IGNORECASE)
_LOOKS_LIKE_FEED_LINK = re.compile(
    r"(?:/(?:feed|rss|atom|index\.rdf|feeds?/[\w-]+)(?:\.(?:xml|json|php))?/?|\.(?:rss|atom|rdf)|/(?:rss|feed|atom|index)\.xml"
    r"|[?&](?:feed|format|type)=(?:rss2?|atom|rdf|feed))(?:[?#].*)?$",
    re.IGNORECASE,
)
_FEED_START = re.compile(
    rb"(?:\s|\xef\xbb\xbf|<\?(?>.*?\?>)|<!--(?>.*?-->)|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\])?\s*>)*+"
    rb"<(?:rss|feed|(?:[\w.-]+:)?RDF|channel)[\s>]",
    re.DOTALL | re.IGNORECASE,
)
_JSON_FEED = re.compile(rb"\s*\{(?>.{0,4000}?\"version\"\s*:\s*\"https?:\\?/\\?/jsonfeed\.org)", re.DOTALL)


def looks_like_feed(body: bytes) -> bool:
    """Whether a document starts like a feed; `feeds.read_feed` has the last word."""
    start = as_utf8(body[:65_536], None)
    return _FEED_START.match(start) is not None or _JSON_FEED.match(start) is not None


def links_in_page(body: bytes, url: str) -> list[FeedLink]:
    """Returns the feeds that a page links to, best first; feeds of comments last."""
    from selectolax.lexbor import LexborHTMLParser  # only parser processes need it

    page = LexborHTMLParser(as_utf8(body[:MAX_PAGE], None).decode("utf-8", "replace"))
    base = _base_of(page, url)
    ranked: dict[str, tuple[tuple[int, ...], FeedLink]] = {}
    for position, node in enumerate(page.css("link[rel][href]")):
        rel = (node.attributes.get("rel") or "").lower().split()
        kind = (node.attributes.get("type") or "").lower().partition(";")[0].strip()
        if ("alternate" in rel or "feed" in rel) and (kind in _FEED_TYPES or "feed" in rel):
            _add(ranked, node, base, kind, (0, _FEED_TYPES.get(kind, 9), position))
    for position, node in enumerate(page.css("a[href]")[:5_000]):
        if _LOOKS_LIKE_FEED_LINK.search(node.attributes.get("href") or ""):
            _add(ranked, node, base, "", (1, 0, position))
    return [link for _, link in sorted(ranked.values())][:MAX_LINKS]


def _base_of(page: LexborHTMLParser, url: str) -> str:
    node = page.css_first("base[href]")
    return joined(url, node.attributes.get("href") if node else None) or url


def _add(
    ranked: dict[str, tuple[tuple[int, ...], FeedLink]], node: LexborNode, base: str, kind: str, rank: tuple[int, ...]
) -> None:
    address = safe_link(node.attributes.get("href"), base)
    if not address or not address.startswith(("http://", "https://")) or address in ranked:
        return
    title = plain(node.attributes.get("title") or (node.text() if node.tag == "a" else ""))[:200]
    of_comments = bool(_OF_COMMENTS.search(title) or _OF_COMMENTS.search(urlsplit(address).path))
    ranked[address] = ((of_comments, *rank), FeedLink(address, title, kind))


def common_paths(address: str) -> list[str]:
    """Addresses where many sites keep their feed: below the page first, then at the root."""
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}"
    folder = parts.path if parts.path.endswith("/") else parts.path + "/"
    below = [] if folder == "/" else [f"{root}{folder}{name}" for name in ("feed/", "feed.xml", "rss.xml", "atom.xml")]
    return list(dict.fromkeys([*below, *(f"{root}/{name}" for name in _USUAL_NAMES)]))


_USUAL_NAMES = (
    "feed",
    "rss",
    "feed.xml",
    "rss.xml",
    "atom.xml",
    "index.xml",
    "feed.json",
    "feeds/posts/default",
    "blog/feed",
    "blog/rss.xml",
    "index.rdf",
    "?feed=rss2",
)


def address_rules(address: str) -> list[str]:
    """Returns feed addresses that follow from the address alone, for sites with a known rule."""
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError:
        return []
    host = (parts.hostname or "").lower().removeprefix("www.").removeprefix("m.")
    steps = [step for step in parts.path.split("/") if step]
    for pattern, rule in _RULES:
        if pattern.fullmatch(host):
            return rule(host, steps, parts)
    if steps and steps[0].startswith("@") and len(steps[0]) > 1 and "@" not in steps[0][1:]:
        # A profile on some Mastodon server.
        return [f"https://{parts.netloc}/{steps[0]}.rss"]
    return []


def _youtube(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    feed = "https://www.youtube.com/feeds/videos.xml?"
    playlist = parse_qs(parts.query).get("list")
    if playlist:
        return [f"{feed}playlist_id={playlist[0]}"]
    match steps:
        case ["channel", channel, *_]:
            return [f"{feed}channel_id={channel}"]
        case ["user", user, *_]:
            return [f"{feed}user={user}"]
    # Handles (/@name, /c/name) have no rule. The channel's page links to its feed.
    return []


def _reddit(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    match steps:
        case ["r", community, "comments", post, *_]:
            return [f"https://www.reddit.com/r/{community}/comments/{post}/.rss"]
        case ["r", community, ("new" | "top" | "hot" | "rising") as order, *_]:
            return [f"https://www.reddit.com/r/{community}/{order}/.rss"]
        case ["r", community, *_]:
            return [f"https://www.reddit.com/r/{community}/.rss"]
        case ["user" | "u", user, *_]:
            return [f"https://www.reddit.com/user/{user}/.rss"]
    return ["https://www.reddit.com/.rss"]


def _github(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    match steps:
        case [owner, name, "commits", branch, *_]:
            return [f"https://github.com/{owner}/{name}/commits/{branch}.atom"]
        case [owner, name, ("releases" | "tags" | "commits") as what, *_]:
            return [f"https://github.com/{owner}/{name}/{what}.atom"]
        case [owner, name, *_]:
            return [f"https://github.com/{owner}/{name}/{what}.atom" for what in ("releases", "tags", "commits")]
        case [user]:
            return [f"https://github.com/{user}.atom"]
    return []


def _gitlab(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    if len(steps) < 2:
        return []
    project = "/".join(steps[: steps.index("-")] if "-" in steps else steps)
    return [f"https://gitlab.com/{project}/-/{what}?format=atom" for what in ("releases", "tags", "commits/HEAD")]


def _medium(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    if host != "medium.com":
        return [f"https://{host}/feed"]
    match steps:
        case ["tag", tag, *_]:
            return [f"https://medium.com/feed/tag/{tag}"]
        case [name, *_]:
            return [f"https://medium.com/feed/{name}"]
    return []


def _at_root(path: str) -> Callable[[str, list[str], SplitResult], list[str]]:
    def rule(host: str, steps: list[str], parts: SplitResult) -> list[str]:
        return [f"https://{parts.netloc}/{path}"]

    return rule


def _tumblr(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    if host != "tumblr.com":
        return [f"https://{host}/rss"]
    return [f"https://{steps[0].removeprefix('@')}.tumblr.com/rss"] if steps else []


def _bluesky(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    match steps:
        case ["profile", handle, *_]:
            return [f"https://bsky.app/profile/{handle}/rss"]
    return []


def _stack_exchange(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    match steps:
        case ["questions", "tagged", tag, *_]:
            return [f"https://{host}/feeds/tag/{tag}"]
        case ["questions", number, *_] if number.isdigit():
            return [f"https://{host}/feeds/question/{number}"]
    return [f"https://{host}/feeds"]


def _hacker_news(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    return ["https://news.ycombinator.com/rss"]


def _vimeo(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    return [f"https://vimeo.com/{steps[0]}/videos/rss"] if steps else []


def _wordpress(host: str, steps: list[str], parts: SplitResult) -> list[str]:
    match steps:
        case ["category" | "tag" | "author" as what, name, *_]:
            return [f"https://{host}/{what}/{name}/feed/", f"https://{host}/feed/"]
    return [f"https://{host}/feed/"]


_RULES: list[tuple[re.Pattern[str], Callable[[str, list[str], SplitResult], list[str]]]] = [
    (re.compile(pattern), rule)
    for pattern, rule in [
        (r"(?:music\.)?youtube\.com|youtu\.be", _youtube),
        (r"(?:(?:old|new|np)\.)?reddit\.com", _reddit),
        (r"github\.com", _github),
        (r"gitlab\.com", _gitlab),
        (r"(?:[\w-]+\.)?medium\.com", _medium),
        (r"[\w-]+\.substack\.com", _at_root("feed")),
        (r"(?:[\w-]+\.)?tumblr\.com", _tumblr),
        (r"[\w-]+\.wordpress\.com", _wordpress),
        (r"[\w-]+\.blogspot\.[a-z.]+", _at_root("feeds/posts/default")),
        (r"[\w-]+\.(?:livejournal|dreamwidth)\.(?:com|org)", _at_root("data/rss")),
        (r"[\w-]+\.ghost\.io", _at_root("rss/")),
        (r"[\w-]+\.hashnode\.dev", _at_root("rss.xml")),
        (r"bsky\.app", _bluesky),
        (r"vimeo\.com", _vimeo),
        (r"news\.ycombinator\.com", _hacker_news),
        (r"(?:stackoverflow|serverfault|superuser|askubuntu)\.com|[\w-]+\.stackexchange\.com", _stack_exchange),
    ]
]
