"""OPML in and out."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from api.watched import SOURCE
from headwater.errors import BadDocument
from headwater.follow import opml
from headwater.follow.add import Outline


def test_sources_come_with_title_and_folder_each_address_once() -> None:
    document = b"""<?xml version="1.0"?><opml version="2.0"><head><title>x</title></head><body>
      <outline text="Tech &amp; more"><outline text="Deeper">
        <outline title="One" text="other" xmlUrl=" https://one.example/feed "/></outline>
        <outline text="https://two.example/" XMLURL="https://two.example/"/></outline>
      <outline text="again" xmlUrl="https://one.example/feed"/>
      <outline text="a folder without sources"/>
    </body></opml>"""
    assert opml.read(document) == [
        Outline("https://one.example/feed", "One", "Tech & more/Deeper"),
        Outline("https://two.example/", None, "Tech & more"),
    ]


def test_ampersands_that_a_reader_forgot_to_escape_are_read() -> None:
    document = b'<opml><body><outline text="Q & A&nbsp;here" xmlUrl="https://one.example/?a=1&b=2"/></body></opml>'
    assert opml.read(document) == [Outline("https://one.example/?a=1&b=2", "Q & A here")]


def test_what_is_written_is_read_again() -> None:
    sources = [
        SOURCE._replace(title='Tom & "Jerry" <3', folder="A & B", site_url="https://news.example/"),
        SOURCE._replace(address="https://two.example/?a=1&b=2", title="比特币\x00", folder="A & B"),
        SOURCE._replace(address="https://three.example/", folder=None),
    ]
    assert opml.read(opml.write(sources)) == [
        Outline(SOURCE.address, 'Tom & "Jerry" <3', "A & B"),
        Outline("https://two.example/?a=1&b=2", "比特币", "A & B"),
        Outline("https://three.example/", "The News"),
    ]
    assert opml.read(opml.write([])) == []


def test_folders_within_folders_go_out_as_the_tree_that_came_in() -> None:
    document = b"""<opml><body><outline text="Tech"><outline text="A" xmlUrl="https://a.example/"/>
      <outline text="Inner"><outline text="B" xmlUrl="https://b.example/"/></outline></outline>
      <outline text="TV/Film"><outline text="C" xmlUrl="https://c.example/"/></outline></body></opml>"""
    read = opml.read(document)
    written = opml.write(SOURCE._replace(address=one.address, title=one.title, folder=one.folder) for one in read)
    assert opml.read(written) == read
    body = etree.fromstring(written).find("body")
    assert body is not None
    assert [one.get("text") for one in body] == ["Tech", "TV/Film"]
    assert [one.get("text") for one in body[0]] == ["A", "Inner"]
    assert [one.get("category") for one in body.iter("outline") if one.get("xmlUrl")] == ["/Tech", "/Tech/Inner", None]


@pytest.mark.parametrize(
    ("category", "folder"),
    [
        ("/Tech/Inner", "Tech/Inner"),
        ("Tech", "Tech"),
        (" , /Boston/Weather/,/Other", "Boston/Weather"),
        ("//", None),
        ("", None),
    ],
)
def test_a_category_is_the_folder_of_a_source_outside_of_any(category: str, folder: str | None) -> None:
    source = f'<outline xmlUrl="https://a.example/" category="{category}"/>'
    assert opml.read(f"<opml><body>{source}</body></opml>".encode())[0].folder == folder
    within = f'<opml><body><outline text="Mine">{source}</outline></body></opml>'
    assert opml.read(within.encode())[0].folder == "Mine"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"not XML",
        b"<rss/>",
        b"<opml><body>",
        b"<opml>\0</opml>",
        b"<opml>" + b"<outline text='x'>" * 200_000,  # H42
        b"<opml>" + b"<outline text='x'>" * 300 + b"</outline>" * 300 + b"</opml>",
        b" " * (opml.MAX_BYTES + 1),
        b"<opml>"
        + b"".join(b"<outline xmlUrl='h:%d'/>" % number for number in range(opml.MAX_OUTLINES + 1))
        + b"</opml>",  # H50
    ],
    ids=["nothing", "text", "another kind", "cut off", "NUL", "unclosed", "deep", "large", "many"],
)
def test_what_is_not_a_reasonable_list_is_refused(document: bytes) -> None:
    with pytest.raises(BadDocument):
        opml.read(document)


_LAUGHS = "".join(f'<!ENTITY l{place + 1} "{f"&l{place};" * 10}">' for place in range(9))


@pytest.mark.parametrize(
    "subset",
    [
        f'<!ENTITY l0 "ha">{_LAUGHS}',  # H38, H50
        f'<!ENTITY l9 "{"x" * 50_000}">',  # H39
        '<!ENTITY l9 SYSTEM "file:///etc/passwd">',  # H40, H51
        '<!ENTITY l9 SYSTEM "http://127.0.0.1:9/">',
        '<!ENTITY % outside SYSTEM "http://127.0.0.1:9/x.dtd"> %outside;',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-7"])
def test_entities_are_refused_in_every_encoding(subset: str, encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE opml [{subset}]>'
    document += '<opml><body><outline text="&l9;&l9;" xmlUrl="http://one.example/&l9;"/>&l9;</body></opml>'
    with pytest.raises(BadDocument):
        opml.read(document.encode(encoding))


def test_a_document_type_elsewhere_is_not_fetched() -> None:
    # H41
    document = b'<!DOCTYPE opml SYSTEM "http://127.0.0.1:9/opml.dtd"><opml><body><outline xmlUrl="http://a.example/"/></body></opml>'
    assert opml.read(document) == [Outline("http://a.example/")]


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"<opml>{text}</opml>".encode("utf-8", "replace"))
)
def test_any_bytes_are_read_or_refused(document: bytes) -> None:
    with suppress(BadDocument):
        opml.read(document)
