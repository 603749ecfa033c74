"""What holds for any bytes whatever: a page or a refusal, nothing unsafe, nothing that cannot be stored."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from feeds_by_hand import NOON, atom, read, rss
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import SourceFailure
from headwater.model import Page
from headwater.sources.feeds import read_feed

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))

from fuzz_feeds import wrong_with  # noqa: E402

GOLDEN = sorted(
    path for path in (ROOT / "tests" / "data" / "feeds").iterdir() if not path.name.endswith(".expected.json")
)
ELEMENTS = (
    "title link guid id description content content:encoded summary author dc:creator pubDate updated dc:date category"
    " enclosure media:content media:group media:description source comments item entry xhtml:body georss:point ttl"
    " itunes:author"
)


def page_of(body: bytes, content_type: str | None = None) -> Page | None:
    with suppress(SourceFailure):
        return read_feed(body, url="https://a.example/feed", content_type=content_type, received_at=NOON)
    return None


markup = st.recursive(
    st.text(max_size=12)
    | st.sampled_from(
        ["&amp;", "&#0;", "&nope;", "<![CDATA[<b>x]]>", "&lt;script&gt;", "&lt;img src=x onerror=y&gt;", "<", "&"]
    ),
    lambda inner: st.builds(
        lambda name, attribute, children: f"<{name} {attribute}>{''.join(children)}</{name}>",
        st.sampled_from(ELEMENTS.split()),
        st.sampled_from(
            ["", 'type="html"', 'type="xhtml"', 'href="javascript:x"', 'url="/x"', 'xml:base="x:"', "xml:lang=''"]
        ),
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/xml; charset=utf-16", "application/json", "text/xml;charset=gbk"]),
)
def test_any_bytes_are_a_page_or_a_refusal(body: bytes, content_type: str | None) -> None:
    page = page_of(body, content_type)
    assert page is None or wrong_with(page) == []


@given(st.lists(markup, max_size=4), st.booleans())
def test_any_elements_are_a_page_or_a_refusal_and_leave_nothing_unsafe(items: list[str], as_atom: bool) -> None:
    page = page_of((atom(*items) if as_atom else rss(*items)).encode("utf-8", "surrogatepass"))
    assert page is None or wrong_with(page) == []


json_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "id url external_url title content_html content_text summary image date_published authors tags language attachments"
)


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS.split()), json_value), max_size=3), json_value)
def test_any_json_items_are_read_or_passed_over(items: list[dict[str, object]], title: object) -> None:
    document = {"version": "https://jsonfeed.org/version/1.1", "title": title, "items": items}
    page = page_of(orjson.dumps(document))
    assert page is not None
    assert wrong_with(page) == []


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
@settings(max_examples=15)
@given(st.data())
def test_a_good_feed_with_bytes_changed_is_a_page_or_a_refusal(path: Path, data: st.DataObject) -> None:
    body = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(body)))
        body[position : position + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=8))
    page = page_of(bytes(body))
    assert page is None or wrong_with(page) == []


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8)), max_size=8))
def test_reading_is_the_same_every_time_and_no_two_posts_share_an_identity(entries: list[tuple[str, str, str]]) -> None:
    document = {
        "version": "https://jsonfeed.org/version/1",
        "items": [{"id": id, "url": f"/{link}", "title": title} for id, link, title in entries],
    }
    body = orjson.dumps(document)
    page = read(body)
    assert page == read(body)
    assert len({post.source_post_id for post in page.posts}) == len(page.posts)
