"""The feeds that benchmarks poll: real ones, copied with other ids until there are enough.

The real feeds are no part of the project (`../shared/data`, or the folder that HEADWATER_TEST_DATA names). Where they
are missing, feeds of like size are made up, and `Corpus.origin` says so. Everything is kept in a cache outside the
project, plain and compressed, the way a web server wants it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import re
import shutil
import tarfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("HEADWATER_BENCH_CACHE") or Path.home() / ".cache" / "headwater-bench")
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data")
FORMAT = 1  # a change in how copies are made makes all corpora anew


class Corpus(NamedTuple):
    folder: Path
    names: tuple[str, ...]
    origin: str
    size: int  # bytes, uncompressed
    entries: int

    def urls(self, base: str) -> list[str]:
        return [f"{base}/{name}" for name in self.names]


def corpus(count: int) -> Corpus:
    """Returns `count` feeds on disk, made now or in an earlier run."""
    archive = DATA / "feeds" / "real.tar.xz"
    real = archive.is_file()
    mark = hashlib.sha256(archive.read_bytes()).hexdigest() if real else "made up"
    folder = CACHE / f"corpus-{count}-{hashlib.sha256(f'{FORMAT} {mark}'.encode()).hexdigest()[:8]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        originals = _real_feeds(archive) if real else [_made_up(number) for number in range(min(count, 250))]
        _write(folder, originals, count)
        (folder / "complete").touch()
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".xml", ".json"))
    bodies = [(folder / name).read_bytes() for name in names]
    origin = "real feeds and copies with other ids" if real else f"made-up feeds, because {archive} is not there"
    return Corpus(folder, tuple(names), origin, sum(map(len, bodies)), sum(map(_entries_in, bodies)))


def opml(urls: list[str]) -> str:
    lines = "".join(f"<outline type='rss' text='feed {i}' xmlUrl={quoteattr(url)}/>\n" for i, url in enumerate(urls))
    return f"<?xml version='1.0'?>\n<opml version='2.0'><head/><body>\n{lines}</body></opml>\n"


def with_other_ids(feed: bytes, copy: int) -> bytes:
    """Returns the feed as another site would publish it: no entry keeps its id or link."""
    suffix = b"-copy%d" % copy
    if _is_json(feed):
        return re.sub(rb'("(?:id|url|external_url)"\s*:\s*"[^"]+)', rb"\g<1>" + suffix, feed)
    feed = re.sub(rb"(<(?:guid|id|link)\b[^>]*>\s*(?:<!\[CDATA\[)?[^<\]\s]+)", rb"\g<1>" + suffix, feed)
    return re.sub(rb"""(<(?:link|item)\b[^>]*\b(?:href|rdf:about)=["'][^"']+)""", rb"\g<1>" + suffix, feed)


def _real_feeds(archive: Path) -> list[bytes]:
    with tarfile.open(archive) as tar:
        found = {member.name: file.read() for member in tar if (file := tar.extractfile(member))}
    bodies = [found[name] for name in sorted(found)]
    # In the order of names, projects with small test files would come first, and few feeds would be small feeds.
    random.Random(1).shuffle(bodies)
    return bodies


def _write(folder: Path, originals: list[bytes], count: int) -> None:
    for number in range(count):
        copy, which = divmod(number, len(originals))
        feed = with_other_ids(originals[which], copy) if copy else originals[which]
        path = folder / f"{number:06d}.{'json' if _is_json(feed) else 'xml'}"
        path.write_bytes(feed)
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(feed, 6))


def _is_json(feed: bytes) -> bool:
    return feed.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _entries_in(feed: bytes) -> int:
    if _is_json(feed):
        return len(re.findall(rb'"content_(?:html|text)"\s*:', feed))
    return len(re.findall(rb"<(?:\w+:)?(?:item|entry)[\s>]", feed))


def _made_up(number: int) -> bytes:
    """Returns an RSS feed of a realistic size: most are small, a few are very large."""
    chance = random.Random(number)
    words = [f"word{chance.randrange(20_000)}" for _ in range(2_000)]

    def text(length: int) -> str:
        return " ".join(chance.choices(words, k=length))

    items = []
    for entry in range(int(chance.lognormvariate(3.0, 0.8)) + 1):
        address = f"http://site{number}.example/{entry}"
        body = "".join(f"&lt;p&gt;{text(60)}&lt;/p&gt;" for _ in range(int(chance.lognormvariate(1.5, 1.0)) + 1))
        items.append(
            f"<item><title>{text(8)}</title><link>{address}</link><guid>{address}</guid>"
            f"<pubDate>{1 + entry % 28:02d} Jan 2024 10:00:00 GMT</pubDate><description>{body}</description></item>"
        )
    head = f"<title>Site {number}</title><link>http://site{number}.example/</link><description>{text(10)}</description>"
    return f"<?xml version='1.0'?><rss version='2.0'><channel>{head}{''.join(items)}</channel></rss>".encode()
