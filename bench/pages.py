"""How well and how fast articles are found in their pages, beside trafilatura alone in the same run.

    python bench/pages.py [--held-out] [--most 100] [--no-lists]

Needs the pages of `../shared/data/pages` (or HEADWATER_TEST_DATA). Two measures, as their makers use them: shingles of
four words for `aeb` (F1 of the mean precision and recall), words for `wcxb` (mean F1). A third of the pages, chosen by
the hash of their names, is set aside: the rules of trimming are made by looking at the others.

Titles are right if they are the same but for case, spaces and the shape of quotation marks; authors if the same people
are named; dates if the day is the same in UTC. `invented` counts pages without a date that were given one. Every figure
has the interval in which 95 of 100 samples of the same size lie, drawn from the pages by site. Last, the pages that are
taken for a list of articles are counted by their kind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import re
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha1
from html import unescape
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple
from urllib.parse import urlsplit

from headwater.errors import ReadFailed
from headwater.model import Item, Post, Response, Source
from headwater.sources import news

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data")
RECEIVED = datetime(2027, 1, 1, tzinfo=UTC)
ARTICLE_GOAL = 0.970
FACT_GOALS = {"title": 0.84, "author": 0.72, "day": 0.88}
_WORD = re.compile(r"\w+")
_QUOTES = str.maketrans("’‘“”\xa0", "''\"\" ")
_BETWEEN_NAMES = re.compile(r",|;| and | & ")
_IN_BRACKETS = re.compile(r"\(.*?\)")
_BLOCK = re.compile(r"</?(?:p|h\d|li|ul|ol|br|td|tr|table|blockquote|pre)\b[^>]*>")
_TAG = re.compile(r"<[^>]*>")


class Truth(NamedTuple):
    """A page and the text that its article has."""

    name: str
    set: str
    html: bytes
    url: str
    text: str
    title: str = ""
    author: str = ""
    day: str = ""

    @property
    def held_out(self) -> bool:
        return int(sha1(self.name.encode()).hexdigest(), 16) % 3 == 0


class Quality(NamedTuple):
    precision: float
    recall: float
    f1: float


class Facts(NamedTuple):
    """What is found beside the text. Empty: nothing."""

    title: str = ""
    author: str = ""
    day: str = ""


Extract = Callable[[bytes, str], str]


def truths(archive: Path = DATA / "pages" / "pages.tar.xz") -> Iterator[Truth]:
    """Yields the articles of both sets."""
    files = _files(archive, lambda name: "aeb" in name or "/article/" in name)
    for name, said in json.loads(files["aeb/ground-truth.json"]).items():
        yield Truth(name, "aeb", gzip.decompress(files[f"aeb/html/{name}.html.gz"]), said["url"], said["articleBody"])
    yield from _labelled(files, "article")


def others(kind: str, archive: Path = DATA / "pages" / "pages.tar.xz") -> Iterator[Truth]:
    """Yields the pages of a kind: `forum` or `listing`."""
    yield from _labelled(_files(archive, lambda name: f"/{kind}/" in name), kind)


def _files(archive: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    with tarfile.open(archive) as members:
        return {
            member.name.removeprefix("./"): opened.read()
            for member in members
            if wanted(member.name) and (opened := members.extractfile(member))
        }


def _labelled(files: dict[str, bytes], kind: str) -> Iterator[Truth]:
    for path in sorted(path for path in files if path.startswith(f"wcxb/{kind}/") and path.endswith(".json")):
        said = json.loads(files[path])
        truth = said["ground_truth"]
        yield Truth(
            name=Path(path).stem,
            set="wcxb",
            html=gzip.decompress(files[path.removesuffix(".json") + ".html.gz"]),
            url=said["url"] or "http://page.example/",
            text=truth["main_content"] or "",
            title=truth["title"] or "",
            author=truth["author"] or "",
            day=(truth["publish_date"] or "")[:10],
        )


def ours(html: bytes, url: str) -> str:
    post = _post(html, url)
    return unescape(_TAG.sub("", _BLOCK.sub("\n", post.content))) if post else ""


def _post(html: bytes, url: str) -> Post | None:
    try:
        page = news.read_item(Source(1, "news", url), Item("1", url), Response(url, 200, {}, html, RECEIVED))
    except ReadFailed:
        return None
    return page.posts[0]


def our_facts(html: bytes, url: str) -> Facts:
    post = _post(html, url)
    if post is None:
        return Facts()
    return Facts(post.title, post.author or "", post.created_at.date().isoformat() if post.dated else "")


def alone(html: bytes, url: str) -> str:
    import trafilatura

    return trafilatura.extract(html, url=url, include_comments=False) or ""


def facts_alone(html: bytes, url: str) -> Facts:
    import trafilatura

    found = trafilatura.extract_metadata(html, default_url=url)
    return Facts(found.title or "", (found.author or "").replace(";", ","), (found.date or "")[:10])


def is_listed(page: Truth) -> bool:
    """Whether a page is taken for a list of articles."""
    response = Response(page.url, 200, {}, page.html, RECEIVED)
    return news.recognise(Source(1, "news", page.url), response) is not None


def quality(found: list[tuple[Truth, str]], set: str) -> Quality:
    if set == "aeb":
        pairs = [_shared(_shingles(truth.text), _shingles(text)) for truth, text in found if truth.set == set]
        precision, recall = mean(pair[0] for pair in pairs), mean(pair[1] for pair in pairs)
        return Quality(precision, recall, _f1(precision, recall))
    pairs = [_shared(_words(truth.text), _words(text)) for truth, text in found if truth.set == set]
    precision, recall = mean(pair[0] for pair in pairs), mean(pair[1] for pair in pairs)
    return Quality(precision, recall, mean(_f1(*pair) for pair in pairs))


def _shared(true: Counter[str], found: Counter[str]) -> tuple[float, float]:
    """Returns precision and recall of what was found."""
    both = (true & found).total()
    if true == found:
        return 1.0, 1.0
    return both / (found.total() or 1), both / (true.total() or 1)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _shingles(text: str) -> Counter[str]:
    words = _WORD.findall(text)
    return Counter(" ".join(words[place : place + 4]) for place in range(max(1, len(words) - 3)))


def measured(pages: list[Truth], ways: dict[str, Extract]) -> dict[str, tuple[list[tuple[Truth, str]], float]]:
    """Returns what each extractor finds and its CPU seconds. They take turns by page, so that noise hits both."""
    found: dict[str, list[tuple[Truth, str]]] = {name: [] for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    for extract in ways.values():
        extract(pages[0].html, pages[0].url)  # what is loaded once is not counted
    for page in pages:
        for name, extract in ways.items():
            started = time.process_time()
            text = extract(page.html, page.url)
            seconds[name] += time.process_time() - started
            found[name].append((page, text))
    return {name: (found[name], seconds[name]) for name in ways}


class Rated(NamedTuple):
    """Right answers of those that have one; and pages without an answer, of which `invented` were given one."""

    right: list[tuple[str, float]]
    invented: int
    without: int


def rated(found: list[tuple[Truth, Facts]], name: str) -> Rated:
    """Returns how many titles, authors or days are right, each with its site."""
    pairs = [(truth, getattr(truth, name), getattr(facts, name)) for truth, facts in found]
    right = [(site_of(truth.url), float(_same(name, said, given))) for truth, said, given in pairs if said]
    without = [given for _, said, given in pairs if not said]
    return Rated(right, sum(map(bool, without)), len(without))


def _same(name: str, said: str, given: str) -> bool:
    if name == "author":
        return _people(said) == _people(given)
    return _plain(said) == _plain(given)


def _plain(text: str) -> str:
    return " ".join(text.translate(_QUOTES).lower().split())


def _people(text: str) -> set[str]:
    return {name for part in _BETWEEN_NAMES.split(text) if (name := _plain(_IN_BRACKETS.sub("", part)))}


def site_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def interval(values: list[tuple[str, float]], times: int = 1_000) -> tuple[float, float]:
    """Returns where the mean lies in 95 of 100 samples of the sites."""
    sites: dict[str, list[float]] = {}
    for site, number in values:
        sites.setdefault(site, []).append(number)
    groups, dice = list(sites.values()), Random(1)
    means = sorted(
        mean(number for group in dice.choices(groups, k=len(groups)) for number in group) for _ in range(times)
    )
    return means[int(0.025 * times)], means[int(0.975 * times) - 1]


def page_scores(found: list[tuple[Truth, str]]) -> list[tuple[str, float]]:
    """Returns the F1 of each page of both sets, with its site."""
    return [
        (site_of(truth.url), _f1(*_shared(cut(truth.text), cut(text))))
        for truth, text in found
        for cut in [_shingles if truth.set == "aeb" else _words]
    ]


def with_interval(values: list[tuple[str, float]]) -> str:
    low, high = interval(values)
    return f"{mean(number for _, number in values):.3f} ({low:.3f}-{high:.3f})"


def print_facts(pages: list[Truth]) -> None:
    ways = {"headwater": our_facts, "trafilatura": facts_alone}
    found = {name: [(page, way(page.html, page.url)) for page in pages] for name, way in ways.items()}
    for fact, goal in FACT_GOALS.items():
        results = {name: rated(told, fact) for name, told in found.items()}
        words = "  ".join(
            f"{name} {with_interval(result.right)}, {result.invented} of {result.without} invented"
            for name, result in results.items()
        )
        pairs = zip(results["headwater"].right, results["trafilatura"].right, strict=True)
        difference = with_interval([(site, ours - theirs) for (site, ours), (_, theirs) in pairs])
        print(f"{fact:7} goal {goal:.2f}  {words}  difference {difference}")


def print_lists(articles: list[Truth]) -> None:
    kinds = {"articles": articles, "threads": list(others("forum")), "listings": list(others("listing"))}
    words = (f"{sum(map(is_listed, pages))} of {len(pages)} {kind}" for kind, pages in kinds.items())
    print(f"taken for lists of articles: {', '.join(words)} (of which some are news and blogs, some shops and tables)")


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--held-out", action="store_true", help="only the pages that rules were not made by")
    arguments.add_argument("--most", type=int, default=0, help="at most so many pages")
    arguments.add_argument("--no-lists", dest="lists", action="store_false", help="leave out the lists")
    given = arguments.parse_args()
    if not DATA.is_dir():
        print(f"There are no pages to measure by: {DATA} is not there.")
        return 1
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    pages = [page for page in truths() if page.held_out or not given.held_out]
    pages = pages[:: max(1, len(pages) // given.most)] if given.most else pages
    results = measured(pages, {"headwater": ours, "trafilatura": alone})
    print(f"{len(pages)} pages, goal F1 {ARTICLE_GOAL:.3f}")
    for name, (found, seconds) in results.items():
        scores = {set: quality(found, set) for set in ("aeb", "wcxb")}
        words = "  ".join(f"{set} P {q.precision:.3f} R {q.recall:.3f} F1 {q.f1:.4f}" for set, q in scores.items())
        print(f"{name:12} {words}  pages {with_interval(page_scores(found))}  {len(pages) / seconds:6.1f} pages/s")
    both = zip(*(page_scores(results[name][0]) for name in ("headwater", "trafilatura")), strict=True)
    print(f"difference of pages {with_interval([(site, mine - theirs) for (site, mine), (_, theirs) in both])}")
    times = results["trafilatura"][1] / results["headwater"][1]
    print(f"trafilatura takes {times:.2f} times the CPU, and looks for no title, author or date")
    labelled = [page for page in pages if page.set == "wcxb"]
    print_facts(labelled)
    if given.lists:
        print_lists(labelled)
    return 0


if __name__ == "__main__":
    sys.exit(main())
