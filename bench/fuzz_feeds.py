"""Reads many feeds with random damage: does one ever crash, hang, or leave something unsafe behind?

    python bench/fuzz_feeds.py --inputs 1000000 --seed 1

Each input is a golden feed or a real one (cut to a small size, because small inputs find the same faults sooner),
changed by a seeded mutator that knows hostile parts: the same seed makes the same inputs. What comes out is looked at
by another parser than the one that cleaned it. An input that is found to do harm is saved under --save.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tarfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from headwater.errors import SourceFailure
from headwater.model import Page, Post
from headwater.sources.feeds import read_feed
from headwater.text import printable, text_hash
from headwater.urls import LINK_SCHEMES
from unsafe import unsafe_in

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data")
RECEIVED = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS_ALLOWED = 5
SIZE = 3_000

PARTS = [
    part.encode("utf-8", "surrogatepass")
    for part in (
        "<item>",
        "</item>",
        "<entry>",
        "</entry>",
        "<title>",
        "</title>",
        "<content:encoded>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<script>alert(1)</script>",
        "&lt;img src=x onerror=alert(1)&gt;",
        '<a href="jav&#x09;ascript:alert(1)">',
        "&lt;svg&gt;&lt;style&gt;&lt;img src=x onerror=alert(1)&gt;",
        "&lt;math&gt;&lt;mtext&gt;&lt;mglyph&gt;&lt;style&gt;&lt;!--&lt;/style&gt;&lt;img onerror=x src=y&gt;",
        '&lt;iframe srcdoc="x"&gt;',
        "&lt;/div&gt;&lt;/div&gt;",
        "&lt;p style='position:fixed'&gt;",
        '<!DOCTYPE rss [<!ENTITY a "b">]>',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        "&a;",
        "&#0;",
        "&#xD800;",
        "&#x202e;",
        "&amp;#106;avascript:",
        "javascript:alert(1)",
        "data:text/html,x",
        ' xml:base="javascript:"',
        ' type="xhtml"',
        ' type="html"',
        ' mode="base64"',
        ' encoding="utf-7"',
        ' encoding="utf-16"',
        "<feed>",
        "<rss>",
        "<channel>",
        '{"version":"https://jsonfeed.org/version/1","items":[',
        "\\ud800",
        "\0",
        "\x1b",
        "\ud800",
        "\u202e",
        "\ufeff",
        "<",
        ">",
        "&",
        '"',
        "'",
        "=",
        "/",
        "]",
        "}",
    )
] + [b"\xff\xfe", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\x1b$B", b"\xf4\x90\x80\x80"]


def wrong_with(page: Page) -> list[str]:
    """Returns what is wrong with a page, whatever the document was."""
    wrong = [f"post {number}: {fault}" for number, post in enumerate(page.posts) for fault in _wrong_with_post(post)]
    if len({post.source_post_id for post in page.posts}) < len(page.posts):
        wrong.append("two posts with one identity")
    for link in (page.facts.link, page.facts.hub, page.facts.self_url):
        wrong += _wrong_with_link(link)
    for text in (page.facts.title, page.facts.language or "", page.facts.format):
        wrong += _wrong_with_text(text)
    return wrong


def _wrong_with_post(post: Post) -> Iterator[str]:
    yield from unsafe_in(post.content)
    for text in (post.source_post_id, post.title, post.content, post.author or "", post.lang or ""):
        yield from _wrong_with_text(text)
    for link in (post.url, *(enclosure.url for enclosure in post.enclosures)):
        yield from _wrong_with_link(link)
    for name, value in post.extra.items():
        yield from _wrong_with_text(str(value))
        if name in {"image", "comments_url", "comments_feed"}:
            yield from _wrong_with_link(value)
    if not post.source_post_id:
        yield "no identity"
    if post.created_at.tzinfo is None or post.created_at.year < 1990:
        yield "an untrue time"
    if post.text_hash != text_hash(post.title, post.content):
        yield "a fingerprint of something else"


def _wrong_with_text(text: str) -> list[str]:
    if printable(text) != text:
        return [f"text that cannot be stored or shown: {text[:80]!r}"]
    try:
        text.encode()
    except UnicodeEncodeError:
        return [f"text that is not Unicode: {text[:80]!r}"]
    return []


def _wrong_with_link(link: str | None) -> list[str]:
    if link is None:
        return []
    unsafe = link.partition(":")[0].lower() not in LINK_SCHEMES or set(link) & set('"<>\n\r\t\0 ')
    return [f"a link to {link[:80]!r}"] if unsafe else []


def seeds() -> list[bytes]:
    """Returns small feeds to start from: golden feeds, and starts and ends of real ones."""
    golden = sorted((ROOT / "tests" / "data" / "feeds").iterdir())
    found = [path.read_bytes() for path in golden if not path.name.endswith(".expected.json")]
    for archive in ("conformance", "real"):
        path = DATA / "feeds" / f"{archive}.tar.xz"
        if not path.exists():
            continue
        with tarfile.open(path) as members:
            for member in members:
                file = members.extractfile(member)
                if file:
                    found += _small_parts(file.read())
    return [body for body in found if len(body) <= 2 * SIZE]


def _small_parts(body: bytes) -> list[bytes]:
    """Returns a feed; of a large one, only some entries."""
    if len(body) <= SIZE:
        return [body]
    for tag in (b"item", b"entry"):
        start, end = body.find(b"<" + tag), body.rfind(b"</" + tag + b">")
        first = body.find(b"</" + tag + b">", start)
        if 0 <= start < first <= end:
            close = first + len(tag) + 3
            small = body[:start][-SIZE:] if start > SIZE else body[:start]
            return [small + body[start:close][:SIZE] + body[end + len(tag) + 3 :][:SIZE]]
    return [body[:SIZE]]


def mutated(source: random.Random, feeds: list[bytes]) -> bytes:
    body = bytearray(source.choice(feeds))
    for _ in range(source.choice((1, 1, 2, 3, 5, 8))):
        source.choice(CHANGES)(source, body, feeds)
    return bytes(body[: 3 * SIZE])


def _insert_part(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    position = source.randint(0, len(body))
    body[position:position] = source.choice(PARTS) * source.choice((1, 1, 1, 2, 20))


def _replace_with_part(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    position = source.randint(0, len(body))
    body[position : position + source.randint(1, 30)] = source.choice(PARTS)


def _delete(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    position = source.randint(0, len(body))
    del body[position : position + source.choice((1, 1, 3, 20, 200, 2_000))]


def _flip(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    for _ in range(source.choice((1, 1, 4, 16))):
        if body:
            body[source.randrange(len(body))] = source.randrange(256)


def _cut(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    del body[source.randint(0, len(body)) :]


def _repeat(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    start = source.randint(0, len(body))
    piece = body[start : start + source.randint(1, 100)]
    body[start:start] = piece * source.choice((1, 2, 10))


def _cross(source: random.Random, body: bytearray, feeds: list[bytes]) -> None:
    other = source.choice(feeds)
    start = source.randint(0, len(other))
    position = source.randint(0, len(body))
    body[position : position + source.randint(0, 300)] = other[start : start + source.randint(1, 600)]


CHANGES: list[Callable[[random.Random, bytearray, list[bytes]], None]] = [
    _insert_part,
    _insert_part,
    _replace_with_part,
    _delete,
    _flip,
    _cut,
    _repeat,
    _cross,
]


class Hang(Exception):
    pass


@contextmanager
def time_limit() -> Iterator[None]:
    """Raises Hang in the block if reading takes too long for a small feed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_ALLOWED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def verdict(body: bytes) -> tuple[str, str]:
    """Returns the result of an input: `read`, the code of a refusal, or what is wrong, with details."""
    try:
        with time_limit():
            page = read_feed(body, url="https://a.example/feed.xml", content_type=None, received_at=RECEIVED)
    except SourceFailure as refusal:
        return refusal.code, ""
    except Hang:
        return "HANG", f"more than {SECONDS_ALLOWED} s of CPU"
    except Exception:  # noqa: BLE001 - any other exception is what this program looks for
        return "CRASH", traceback.format_exc()
    wrong = wrong_with(page)
    return ("UNSAFE", "\n".join(wrong)) if wrong else ("read", "")


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--inputs", type=int, default=50_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--save", type=Path, default=Path("fuzz-findings"))
    given = arguments.parse_args()
    feeds = seeds()
    source = random.Random(given.seed)
    counts: Counter[str] = Counter()
    started, cpu = time.monotonic(), time.process_time()
    for number in range(given.inputs):
        body = mutated(source, feeds)
        outcome, details = verdict(body)
        counts[outcome] += 1
        if outcome.isupper():
            given.save.mkdir(parents=True, exist_ok=True)
            (given.save / f"{given.seed}-{number}-{outcome.lower()}").write_bytes(body)
            print(f"{outcome} at input {number}: {details}", file=sys.stderr)
        if sys.stderr.isatty() and number % 5_000 == 0:
            print(f"\r{number:,} inputs, {time.monotonic() - started:.0f} s", end="", file=sys.stderr)
    taken = time.process_time() - cpu
    print(f"{given.inputs:,} inputs from {len(feeds):,} feeds, seed {given.seed}: {taken:.0f} s of CPU,"
          f" {given.inputs / max(taken, 0.001):,.0f} inputs/s")  # fmt: skip
    for outcome, count in counts.most_common():
        print(f"  {outcome:14}{count:>10,}")
    bad = sum(count for outcome, count in counts.items() if outcome.isupper())
    print(f"crashes, hangs and unsafe outputs: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
