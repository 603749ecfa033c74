"""How well real forum pages are read: which software was recognised, how many posts, how much of the truth they hold.

    python bench/pages_forum.py FOLDER [--held-out | --developed] [--wanting 0.9]
    python bench/pages_forum.py FOLDER --guess

FOLDER is the folder `forum` of the measuring data, unpacked: pages (`*.html.gz`) and what a person found on them
(`*.json`). A third of the pages is held out by their names: profiles are made without looking at them.

`found` is the share of the truth's words that our posts have. Of ours, `other` is the share of words that the truth
does not have. Many truths end after the first posts, and few repeat quotations, so that alone says little: `beyond`
counts the posts of which the truth knows next to nothing, and `added` is the share of unknown words in the rest.

`F1` compares the words of all posts with those of the truth, as `pages.py` does for articles. Posts that the truth
leaves out count as wrong, so a value says as much about the truths as about us: the same is measured of trafilatura in
the same run, and the difference is what can be compared with other pages. Intervals are those in which 95 of 100
samples of the sites lie. Pages that are empty without script count as not read. `of posts that the truth has` is the
same without posts `beyond`.

`--guess` reads pages of known software as if it were unknown, and compares that with what its profile reads: words,
names and days of posts, page by page.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from headwater.errors import ReadFailed
from headwater.model import Item, Post, Response, Source
from headwater.sources import forum
from headwater.sources.forums.guess import guess_thread
from headwater.sources.forums.pages import read_thread
from headwater.sources.forums.profile import software_of
from headwater.sources.web_page import forum_page
from headwater.text import plain
from pages import alone, site_of, with_interval

_WORD = re.compile(r"[^\W_]+")
KNOWN = 0.8  # of which more is unknown, the truth has not got
F1_GOAL = 0.92
DATED_GOAL = 0.95
_NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Shares(NamedTuple):
    found: float
    other: float
    beyond: int
    added: float
    f1: float
    known_f1: float


NOTHING = Shares(found=0.0, other=0.0, beyond=0, added=0.0, f1=0.0, known_f1=0.0)


class Measured(NamedTuple):
    name: str
    url: str
    profile: str
    posts: int
    dated: int
    named: int
    shares: Shares
    peer_f1: float
    seconds: float
    error: str = ""


def is_held_out(name: str) -> bool:
    return blake2b(name.encode()).digest()[0] % 3 == 0


def measured(folder: Path, held_out: bool | None = None, *, beside: bool = False) -> Iterator[Measured]:
    """Yields every page of a folder, or only those held out, or only the others; `beside`: with trafilatura."""
    for truth in sorted(folder.glob("*.json")):
        if held_out is None or is_held_out(truth.stem) == held_out:
            yield _measure(truth, beside)


def _measure(truth: Path, beside: bool) -> Measured:
    told = json.loads(truth.read_text())
    url = told["url"] or "http://forum.example/"
    body = gzip.decompress(truth.with_suffix(".html.gz").read_bytes())
    response = Response(url, 200, {"content-type": "text/html"}, body, _NOW)
    peer = plain_f1(alone(body, url), told["ground_truth"]["main_content"]) if beside else 0.0
    began = time.process_time()
    try:
        page = forum.read_item(Source(1, "forum", url), Item("1", url), response)
    except ReadFailed as error:
        seconds = time.process_time() - began
        return Measured(truth.stem, url, "-", 0, 0, 0, NOTHING, peer, seconds, error.detail)
    seconds = time.process_time() - began
    dated, named = sum(post.dated for post in page.posts), sum(post.author is not None for post in page.posts)
    compared = shares(page.posts, told["ground_truth"]["main_content"])
    return Measured(truth.stem, url, page.facts.format, len(page.posts), dated, named, compared, peer, seconds)


def shares(posts: list[Post], truth: str) -> Shares:
    """Returns the shares. Some reference texts contain the names of authors: a name always counts as found."""
    words = [_WORD.findall(plain(post.content).lower()) for post in posts]
    said = Counter(word for post in words for word in post)
    names = Counter(_WORD.findall(" ".join(f"{post.author} {post.title}" for post in posts).lower()))
    told = _WORD.findall(truth.lower())
    true = Counter(told)
    runs = set(_runs(told))
    unknown = [_unknown(post, runs) for post in words]
    known = [share for share in unknown if share < KNOWN]
    return Shares(
        found=(true & (said + names)).total() / max(1, true.total()),
        other=(said - true).total() / max(1, said.total()),
        beyond=len(unknown) - len(known),
        added=mean(known) if known else 1.0,
        f1=_f1(said, true),
        known_f1=_f1(
            Counter(word for post, share in zip(words, unknown, strict=True) if share < KNOWN for word in post), true
        ),
    )


def _f1(said: Counter[str], true: Counter[str]) -> float:
    return 2 * (true & said).total() / max(1, true.total() + said.total())


def _runs(words: list[str]) -> list[str]:
    return [" ".join(words[start : start + 3]) for start in range(max(1, len(words) - 2))]


def _unknown(words: list[str], runs: set[str]) -> float:
    own = _runs(words)
    return sum(run not in runs for run in own) / len(own)


def main() -> None:
    arguments = argparse.ArgumentParser(description="How well real forum pages are read.")
    arguments.add_argument("folder", type=Path)
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--held-out", dest="held_out", action="store_const", const=True)
    which.add_argument("--developed", dest="held_out", action="store_const", const=False)
    arguments.add_argument("--wanting", type=float, default=2.0, help="print only pages with less than this found")
    arguments.add_argument("--guess", action="store_true", help="read known software as if it were unknown")
    given = arguments.parse_args()
    if given.guess:
        _summarise_guesses(list(guesses(given.folder)))
        return
    pages = list(measured(given.folder, given.held_out, beside=True))
    for page in pages:
        if page.shares.found < given.wanting:
            part = page.shares
            counts = f"{page.posts:4} posts {page.dated:4} dated {page.named:4} named {part.beyond:3} beyond"
            found = f"{part.found:6.1%} found {part.other:6.1%} other {part.added:6.1%} added"
            line = f"{page.name} {page.profile:14}{counts} {found} {page.seconds * 1000:5.0f} ms"
            print(f"{line}  {page.url[:70]} {page.error[:60]}")
    _summarise(pages)


class Guess(NamedTuple):
    """How much of what a profile reads on a page is also guessed. Names and days are those of posts that both have."""

    url: str
    words: float
    names: float
    days: float


def guesses(folder: Path) -> Iterator[Guess]:
    for truth in sorted(folder.glob("*.json")):
        url = json.loads(truth.read_text())["url"] or "http://forum.example/"
        body = gzip.decompress(truth.with_suffix(".html.gz").read_bytes())
        response, item = Response(url, 200, {"content-type": "text/html"}, body, _NOW), Item("1", url)
        profile = software_of(forum_page(response))
        read = read_thread(forum_page(response), profile, item, None).posts if profile else []
        if len(read) > 1:
            page = guess_thread(forum_page(response), item, None)
            yield _guess(url, read, page.posts if page else [])


def _guess(url: str, read: list[Post], guessed: list[Post]) -> Guess:
    true, said = (
        Counter(_WORD.findall(" ".join(plain(post.content) for post in posts).lower())) for posts in (read, guessed)
    )
    by_start = {_start(post): post for post in read}
    both = [(post, by_start[_start(post)]) for post in guessed if _start(post) in by_start]
    names = sum(post.author == other.author for post, other in both)
    days = sum(post.dated and post.created_at.date() == other.created_at.date() for post, other in both)
    return Guess(url, _f1(said, true), names / max(1, len(both)), days / max(1, len(both)))


def _start(post: Post) -> str:
    return " ".join(_WORD.findall(plain(post.content).lower())[:6])


def _summarise_guesses(pages: list[Guess]) -> None:
    for name in ("words", "names", "days"):
        print(f"{name} {with_interval([(site_of(page.url), getattr(page, name)) for page in pages])}")
    print(f"{len(pages)} pages of known software, read as if it were unknown")


def _summarise(pages: list[Measured]) -> None:
    found, other, added = (
        mean(share)
        for share in zip(*((p.found, p.other, p.added) for p in (page.shares for page in pages)), strict=True)
    )
    middle = median(page.shares.found for page in pages)
    good = sum(page.shares.found >= 0.9 and page.shares.added <= 0.1 for page in pages)
    unread = sum(page.profile == "-" for page in pages)
    seconds = sum(page.seconds for page in pages)
    ours = [(site_of(page.url), page.shares.f1) for page in pages]
    theirs = [(site_of(page.url), page.peer_f1) for page in pages]
    difference = [(site, mine - other) for (site, mine), (_, other) in zip(ours, theirs, strict=True)]
    posts, dated = sum(page.posts for page in pages), sum(page.dated for page in pages)
    print(f"F1 {with_interval(ours)}, trafilatura {with_interval(theirs)}, difference {with_interval(difference)}")
    known_posts = [(site_of(page.url), page.shares.known_f1) for page in pages]
    print(f"of posts that the truth has {with_interval(known_posts)}; goal {F1_GOAL:.2f}, on other pages")
    known = [page for page in pages if page.profile not in ("-", "guessed")]
    dated_known = sum(page.dated for page in known) / max(1, sum(page.posts for page in known))
    print(f"posts dated {dated / max(1, posts):.1%}, of known software {dated_known:.1%}, goal {DATED_GOAL:.0%}")
    print(
        f"{len(pages)} pages: found {found:.1%} (median {middle:.1%}), other {other:.1%}, added {added:.1%};"
        f" {good} with at least 90% found and at most 10% added; {unread} not read; {seconds:.1f} s of CPU"
    )


def plain_f1(text: str, truth: str) -> float:
    return _f1(Counter(_WORD.findall(text.lower())), Counter(_WORD.findall(truth.lower())))


if __name__ == "__main__":
    main()
