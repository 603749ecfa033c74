"""How well and how fast articles are found in their pages, beside trafilatura alone in the same run.

    python bench/pages.py [--held-out] [--most 100]

Needs the pages of `../shared/data/pages` (or HEADWATER_TEST_DATA). Two measures, as their makers use them: shingles of
four words for `aeb` (F1 of the mean precision and recall), words for `wcxb` (mean F1). A third of the pages, chosen by
the hash of their names, is set aside: the rules of trimming are made by looking at the others.
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
from statistics import mean
from typing import NamedTuple

from headwater.errors import ReadFailed
from headwater.model import Item, Response, Source
from headwater.sources import news

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data")
RECEIVED = datetime(2027, 1, 1, tzinfo=UTC)
_WORD = re.compile(r"\w+")
_BLOCK = re.compile(r"</?(?:p|h\d|li|ul|ol|br|td|tr|table|blockquote|pre)\b[^>]*>")
_TAG = re.compile(r"<[^>]*>")


class Truth(NamedTuple):
    """A page and the text that its article has."""

    name: str
    set: str
    html: bytes
    url: str
    text: str

    @property
    def held_out(self) -> bool:
        return int(sha1(self.name.encode()).hexdigest(), 16) % 3 == 0


class Quality(NamedTuple):
    precision: float
    recall: float
    f1: float


Extract = Callable[[bytes, str], str]


def truths(archive: Path = DATA / "pages" / "pages.tar.xz") -> Iterator[Truth]:
    """Yields the articles of both sets."""
    with tarfile.open(archive) as members:
        files = {
            member.name.removeprefix("./"): opened.read()
            for member in members
            if ("aeb" in member.name or "/article/" in member.name) and (opened := members.extractfile(member))
        }
    for name, said in json.loads(files["aeb/ground-truth.json"]).items():
        yield Truth(name, "aeb", gzip.decompress(files[f"aeb/html/{name}.html.gz"]), said["url"], said["articleBody"])
    for path in sorted(path for path in files if path.startswith("wcxb/article/") and path.endswith(".json")):
        said = json.loads(files[path])
        page = gzip.decompress(files[path.removesuffix(".json") + ".html.gz"])
        yield Truth(Path(path).stem, "wcxb", page, said["url"], said["ground_truth"]["main_content"] or "")


def ours(html: bytes, url: str) -> str:
    try:
        page = news.read_item(Source(1, "news", url), Item("1", url), Response(url, 200, {}, html, RECEIVED))
    except ReadFailed:
        return ""
    return unescape(_TAG.sub("", _BLOCK.sub("\n", page.posts[0].content)))


def alone(html: bytes, url: str) -> str:
    import trafilatura

    return trafilatura.extract(html, url=url, include_comments=False) or ""


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


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--held-out", action="store_true", help="only the pages that rules were not made by")
    arguments.add_argument("--most", type=int, default=0, help="at most so many pages")
    given = arguments.parse_args()
    if not DATA.is_dir():
        print(f"There are no pages to measure by: {DATA} is not there.")
        return 1
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    pages = [page for page in truths() if page.held_out or not given.held_out]
    pages = pages[:: max(1, len(pages) // given.most)] if given.most else pages
    results = measured(pages, {"headwater": ours, "trafilatura": alone})
    print(f"{len(pages)} pages")
    for name, (found, seconds) in results.items():
        scores = {set: quality(found, set) for set in ("aeb", "wcxb")}
        words = "  ".join(f"{set} P {q.precision:.3f} R {q.recall:.3f} F1 {q.f1:.4f}" for set, q in scores.items())
        print(f"{name:12} {words}  {len(pages) / seconds:6.1f} pages/s")
    times = results["trafilatura"][1] / results["headwater"][1]
    print(f"trafilatura takes {times:.2f} times the CPU, and looks for no title, author or date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
