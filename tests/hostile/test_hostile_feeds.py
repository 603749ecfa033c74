"""Documents made to harm whoever reads them: what is stored, what is shown, what is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.sources import tried_json, try_it
from headwater.follow import opml
from hostile.target import Post, Source, Target, attacked
from support.web import Answer, Web, rss

ITEM = "<item><guid>1</guid><title>kept</title><description>Text</description></item>"


def channel(items: str, subset: str = "") -> str:
    doctype = f"<!DOCTYPE rss [{subset}]>" if subset else ""
    return f'<?xml version="1.0"?>{doctype}<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'


def item(title: str = "", **elements: str) -> str:
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in {"title": title, **elements}.items() if text)
    return f"<item>{inside}</item>"


def read(target: Target, world: Web, path: str, document: str | bytes) -> tuple[Source, list[Post]]:
    """Put a document on the web, visit it, and ask for what came of it."""
    world.pages[path] = Answer(document)
    [source] = target.visit(world.url(path))
    return source, target.posts(source)


def refused(target: Target, world: Web, path: str, document: str | bytes, code: str) -> None:
    """A source that was good before the document came keeps its post, and the next visit can be good again."""
    _, before = read(target, world, path, channel(ITEM))
    bad, kept = read(target, world, path, document)
    assert (bad["status"], bad["last_error_code"]) == ("failing", code)
    assert 0 < len(bad["last_error"]) < 1000
    assert kept == before
    again, _ = read(target, world, path, channel(ITEM + item("another")))
    assert (again["status"], again["posts"], again["last_error"]) == ("ok", 2, None)


LAUGHS = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
LONG = f'<!ENTITY l9 "{"x" * 100_000}">'
MANY = f'<!ENTITY l9 "{"x" * 900}">'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_that_multiply_are_refused(target: Target, world: Web, encoding: str) -> None:  # H38
    document = channel(item("&l9;"), LAUGHS).encode(encoding)
    refused(target, world, f"/laughs-{encoding}", document, "too_deep")


@pytest.mark.parametrize(("subset", "times"), [(LONG, 20_000), (MANY, 100_000)], ids=["long", "many"])
def test_one_entity_used_too_often_is_refused(target: Target, world: Web, subset: str, times: int) -> None:  # H39
    refused(target, world, f"/quadratic-{times}", channel(item("&l9;" * times), subset), "too_deep")


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY x SYSTEM "file://{file}">',
        '<!ENTITY x PUBLIC "any" "file://{file}">',
        '<!ENTITY x SYSTEM "{web}/fetched">',
        '<!ENTITY % p SYSTEM "{web}/fetched"> %p;',
        "<!ENTITY % a '<!ENTITY x SYSTEM \"file://{file}\">'> %a;",
    ],
    ids=["file", "public", "web", "parameter", "parameter within"],
)
def test_nothing_outside_a_document_is_read_for_it(
    target: Target, world: Web, subset: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:  # H40
    secret = tmp_path / "secret"
    secret.write_text("the secret of this machine")
    document = channel(item("before &x; after", description="&x;"), subset.format(file=secret, web=world.address))
    source, posts = read(target, world, f"/outside/{request.node.callspec.id.replace(' ', '-')}", document)
    shown = json.dumps([source, posts]) + target.page("/") + target.page(f"/sources/{source['id']}")
    assert "the secret of this machine" not in shown
    assert "/fetched" not in world.paths()
    assert source["last_error"] or [post["title"] for post in posts]


def test_a_document_type_elsewhere_is_not_asked_for(target: Target, world: Web) -> None:  # H41
    doctypes = (f'SYSTEM "{world.url("/rss.dtd")}"', f'PUBLIC "-//N//DTD RSS//EN" "{world.url("/rss.dtd")}"')
    for place, doctype in enumerate(doctypes):
        document = channel(ITEM).replace("<rss", f"<!DOCTYPE rss {doctype}><rss", 1)
        document = document.replace("<rss", f'<?xml-stylesheet href="{world.url("/style.xsl")}"?><rss', 1)
        source, posts = read(target, world, f"/elsewhere{place}", document)
        assert (source["status"], [post["title"] for post in posts]) == ("ok", ["kept"])
    assert not {"/rss.dtd", "/style.xsl"} & set(world.paths())


def test_tags_without_bottom_are_refused(target: Target, world: Web) -> None:  # H42
    deep = "<a>" * 200_000
    refused(target, world, "/bottomless", channel(item(f"{deep}x{'</a>' * 200_000}")), "too_deep")
    refused(target, world, "/unclosed", f"<rss>{deep}", "too_deep")


def test_html_without_bottom_costs_only_its_markup(target: Target, world: Web) -> None:  # H42
    escaped = "&lt;div&gt;&lt;b&gt;" * 100_000
    source, posts = read(target, world, "/deep-html", channel(item("deep", description=f"{escaped}words") + ITEM))
    assert source["status"] == "ok"
    assert {post["title"]: post["content"].strip() for post in posts} == {"deep": "words", "kept": "Text"}


def test_of_a_hundred_thousand_entries_the_first_thousands_are_read(target: Target, world: Web) -> None:  # H43
    many = "".join(f"<item><guid>{number}</guid><title>{number}</title></item>" for number in range(100_000))
    source, _ = read(target, world, "/many", channel(many))
    assert (source["status"], source["posts"]) == ("ok", 5000)
    tried = tried_json(target.portal.call(try_it, target.headwater.parts, world.url("/many")))
    assert (tried["truncated"], len(tried["entries"])) == (True, 5000)


def test_entries_keep_their_identity_whatever_happens_to_their_ids(target: Target, world: Web) -> None:  # H44
    def page(*ids: str) -> str:
        return channel(
            "".join(
                item(
                    f"Title {place}", guid=id, link=f"https://news.example/{place}?utm_source=feed{id}", description="x"
                )
                for place, id in enumerate(ids)
            )
        )

    for round, ids in enumerate((("1", "2", "3"), ("a", "b", "c"), ("", "", ""), ("same", "same", "same"))):
        source, posts = read(target, world, "/changing", page(*ids))
        assert source["posts"] == 3, ids
        assert [post["version"] for post in posts] == [1, 1, 1]
        assert source["visits"][0]["new"] == (3 if round == 0 else 0), ids


def test_entries_without_any_id_or_address_are_told_apart_by_their_text(target: Target, world: Web) -> None:  # H44
    items = item("one", description="x") + item("two", description="x") + item("one", description="x")
    first, _ = read(target, world, "/nameless", channel(items))
    second, posts = read(target, world, "/nameless", channel(items + item("three")))
    assert (first["posts"], second["posts"], second["visits"][0]["new"]) == (2, 3, 1)
    assert sorted(post["title"] for post in posts) == ["one", "three", "two"]


def test_an_id_of_a_megabyte_is_an_id_like_any_other(target: Target, world: Web) -> None:  # H44
    long = channel(item("a", guid="x" * 1_000_000 + "a") + item("b", guid="x" * 1_000_000 + "b"))
    for _ in range(2):
        source, _ = read(target, world, "/long-ids", long)
        assert (source["status"], source["posts"]) == ("ok", 2)
        long = long.replace("</channel>", "<ttl>60</ttl></channel>")


DATES = {
    "epoch": "Thu, 01 Jan 1970 00:00:00 GMT",
    "far": "Fri, 31 Dec 9999 23:59:59 GMT",
    "zero": "0000-00-00T00:00:00Z",
    "never": "Mon, 35 Foo 2026 99:99:99 GMT",
    "huge": "9" * 500,
    "words": "yesterday, about noon",
    "zone": "Mon, 02 Nov 2026 10:00:00 +9999",
    "year ten thousand": "+10000-01-01T00:00:00Z",
}


def test_dates_that_cannot_be_true_become_the_time_of_receipt(target: Target, world: Web) -> None:  # H45
    before = datetime.now(UTC) - timedelta(seconds=1)
    items = "".join(item(name, guid=name, pubDate=date) for name, date in DATES.items() if name != "zone")
    items += item("old", guid="old", pubDate="Mon, 02 Nov 2020 10:00:00 GMT")
    source, posts = read(target, world, "/dates", channel(items))
    assert (source["status"], source["posts"]) == ("ok", len(DATES))
    assert posts[-1]["title"] == "old"
    for post in posts[:-1]:
        assert before <= datetime.fromisoformat(post["published_at"]) <= datetime.now(UTC), post["title"]
    received = [post["published_at"] for post in posts]
    later, again = read(target, world, "/dates", channel(items + item("another")))
    assert (later["visits"][0]["new"], later["visits"][0]["updated"]) == (1, 0)
    assert [post["published_at"] for post in again if post["title"] != "another"] == received


def test_a_zone_that_does_not_exist_is_no_reason_to_lose_a_post(target: Target, world: Web) -> None:  # H45
    _, [post] = read(target, world, "/zone", channel(item("zone", pubDate=DATES["zone"])))
    assert post["published_at"] == "2026-11-02T10:00:00Z"


@pytest.mark.parametrize(
    ("path", "document", "titles"),
    [
        ("/bare-ampersand", channel(item("Q & A", guid="1")), ["Q & A"]),
        ("/html-entity", channel(item("caf&eacute;", guid="1")), ["café"]),
        ("/leading-space", "\n \n" + channel(ITEM), ["kept"]),
        ("/trailing-junk", channel(ITEM) + "<script>count()</script> junk", ["kept"]),
        ("/control-characters", channel(item("a\x01b\x0bc", guid="1")), ["abc"]),
        ("/no-namespace", channel(item("kept", **{"foo:bar": "x"})), ["kept"]),
    ],
)
def test_what_is_only_a_little_broken_is_read(
    target: Target, world: Web, path: str, document: str, titles: list[str]
) -> None:  # H46
    source, posts = read(target, world, path, document)
    assert source["status"] == "ok", source["last_error"]
    assert [post["title"] for post in posts] == titles


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("words", "Sorry, the database is down."),
        ("another-kind", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("binary", bytes(range(256)) * 20),
        ("half-a-tag", "<rss version="),
    ],
)
def test_what_cannot_be_read_is_an_error_and_never_an_empty_feed(
    target: Target, world: Web, name: str, document: str | bytes
) -> None:  # H46
    refused(target, world, f"/unreadable-{name}", document, "not_a_feed")


HARD = {
    "nul": "a&#0;b\x00c",
    "surrogate": "a&#xD800;b&#xDFFF;c",
    "bidi": "a\u202eb\u2066c\ufffe",
    "plane": "a\U0001f600b",
}


@pytest.fixture
def on_both(store_url: str, tmp_path: Path) -> Iterator[Target]:
    with attacked(tmp_path, store_url) as made:
        yield made


def test_characters_that_cannot_be_stored_are_left_out_on_both_databases(on_both: Target, world: Web) -> None:  # H47
    items = "".join(
        item(f"{name} {text}", guid=f"{name}{text}", author=text, description=text) for name, text in HARD.items()
    )
    source, posts = read(on_both, world, "/hard", channel(items).replace("<title>News", "<title>Ne\u202ews\x00"))
    assert (source["status"], source["title"]) == ("ok", "News")
    assert sorted(post["title"] for post in posts) == ["bidi abc", "nul abc", "plane a😀b", "surrogate abc"]
    document = {"version": "https://jsonfeed.org/version/1", "title": "J\0", "items": [{"id": "1\0", "title": "a\0b"}]}
    source, posts = read(on_both, world, "/hard.json", json.dumps(document))
    assert (source["title"], [post["title"] for post in posts]) == ("J", ["ab"])


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("a\\ud83d", "a"),
        ("\\ude00b", "b"),
        ("\\ud83d\\ude00", "😀"),
        ("\\ud83d\\ud83d\\ude00", "😀"),
        ("\\\\ud83d", "\\ud83d"),
    ],
)
def test_half_a_character_in_a_json_feed_costs_that_character_alone(
    target: Target, world: Web, written: str, read_as: str
) -> None:  # H47
    document = JSON_FEED.replace('"t"', f'"{written}"') % ', "content_text": "\\udead."'
    source, posts = read(target, world, f"/half-{abs(hash(written))}.json", document)
    assert (source["status"], [post["title"] for post in posts]) == ("ok", [read_as])


BAD_LINKS = [
    "javascript:alert(1)",
    "JaVa\tScRiPt:alert(1)",
    "\u0001javascript:alert(1)",
    "data:text/html,&lt;script&gt;alert(1)&lt;/script&gt;",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://news.example/1",
]


def links_of(source: Source, posts: list[Post]) -> list[str]:
    links = [source["site_url"], *(post["url"] for post in posts)]
    return [str(link) for link in [*links, *(one["url"] for post in posts for one in post["enclosures"])] if link]


def test_links_that_run_or_read_something_are_dropped(target: Target, world: Web) -> None:  # H48
    items = "".join(
        item(f"{place}", guid=f"id{place}", link=link) + f"<item><guid>{link}</guid><enclosure url='{link}'/></item>"
        for place, link in enumerate(BAD_LINKS)
    )
    items += "<item><guid>good</guid><enclosure url='https://news.example/a.mp3' type='audio/mpeg'/></item>"
    document = channel(items).replace("<title>News", f"<link>{BAD_LINKS[0]}</link><title>News", 1)
    source, posts = read(target, world, "/links", document.replace("\u0001", ""))
    assert source["status"] == "ok"
    found = links_of(source, posts)
    assert "https://news.example/a.mp3" in found
    assert [link for link in found if not link.startswith(("http://", "https://"))] == []
    stream = target.page(f"/?source_id={source['id']}")
    assert "javascript:" not in stream.lower()


def test_links_of_a_json_feed_are_dropped_as_well(target: Target, world: Web) -> None:  # H48
    items: list[dict[str, Any]] = [
        {
            "id": str(place),
            "url": link,
            "external_url": link,
            "image": link,
            "attachments": [{"url": link}],
            "title": "x",
        }
        for place, link in enumerate(BAD_LINKS)
    ]
    document = {"version": "https://jsonfeed.org/version/1", "home_page_url": BAD_LINKS[0], "items": items}
    source, posts = read(target, world, "/links.json", json.dumps(document))
    assert (len(posts), links_of(source, posts)) == (len(BAD_LINKS), [])


JSON_FEED = '{"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [{"id": "1", "title": "t"%s}]}'


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("depth", ', "x": ' + "[" * 100_000 + "]" * 100_000, "too_deep"),
        ("nan", ', "size": NaN', "not_a_feed"),
        ("infinity", ', "size": -Infinity', "not_a_feed"),
        ("cut-off", ', "x": [', "not_a_feed"),
        ("1e400", ', "x": 1e400', "not_a_feed"),
        ("huge", ', "x": ' + "9" * 10_000, "not_a_feed"),
    ],
)
def test_json_that_is_none_is_refused(target: Target, world: Web, name: str, more: str, code: str) -> None:  # H49
    refused(target, world, f"/json-{name}", JSON_FEED % more, code)


@pytest.mark.parametrize(
    "more",
    [', "id": "2", "id": 1, "title": "t"', ', "date_published": 1e300, "authors": 123456789012345678901234567890'],
    ids=["keys twice", "large numbers"],
)
def test_json_with_values_beyond_reason_is_read_without_them(
    target: Target, world: Web, more: str, request: pytest.FixtureRequest
) -> None:  # H49
    path = f"/json-{request.node.callspec.id.replace(' ', '-')}"
    for _ in range(2):
        source, posts = read(target, world, path, JSON_FEED % more)
        assert (source["status"], [post["title"] for post in posts]) == ("ok", ["t"])


@pytest.mark.parametrize(
    "body",
    [
        b'{"address": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"address": NaN}',
        b'{"address": 1e400}',
        b'{"address": "http://a.example/", "address": "http://b.example/"}',
        b'{"address": ' + b"9" * 100_000 + b"}",
        b'{"address": "\\ud800"}',
    ],
    ids=["depth", "NaN", "1e400", "twice", "huge", "surrogate"],
)
def test_json_that_two_programs_understand_differently_is_refused_by_the_api(
    target: Target, body: bytes
) -> None:  # H49
    answered = target.program.post("/api/sources", body, Content_Type="application/json")
    assert (answered.status, answered.json()["code"]) == (422, "bad_document")


def test_an_endless_list_of_sources_is_refused_and_a_long_one_is_reported(target: Target) -> None:  # H50
    def listed(count: int, start: str) -> bytes:
        return b"<opml><body>%b</body></opml>" % b"".join(
            b"<outline xmlUrl='%b%d.example/'/>" % (start.encode(), number) for number in range(count)
        )

    following = len(target.program.get("/api/sources?limit=200").json()["items"])
    endless = target.program.post("/api/opml", listed(opml.MAX_OUTLINES + 1, "http://h"))
    deep = target.program.post("/api/opml", b"<opml>" + b"<outline text='x'>" * 200_000)
    for answered in (endless, deep):
        assert (answered.status, answered.json()["code"]) == (422, "bad_document")
    assert len(target.program.get("/api/sources?limit=200").json()["items"]) == following
    long = target.program.post("/api/opml", listed(1000, "http://host") + b" ").json()
    assert (long["added"], long["refused"]) == (1000, [])


def test_a_list_that_names_itself_is_a_source_that_fails(target: Target, world: Web) -> None:  # H50
    itself = f"<opml><body><outline xmlUrl='{world.url('/self.opml')}' type='include'/></body></opml>"
    world.pages["/self.opml"] = Answer(itself)
    assert target.program.post("/api/opml", itself.encode()).json()["added"] == 1
    [source] = target.visit(world.url("/self.opml"))
    assert (source["status"], source["last_error_code"]) == ("failing", "not_a_feed")


@pytest.mark.parametrize(
    "subset",
    [LAUGHS, LONG, '<!ENTITY l9 SYSTEM "file:///etc/passwd">', '<!ENTITY % p SYSTEM "{web}/opml.dtd"> %p;'],
    ids=["laughs", "long", "file", "parameter"],
)
def test_a_list_with_entities_is_refused(target: Target, world: Web, subset: str) -> None:  # H50, H51
    doctype = f"<!DOCTYPE opml [{subset.replace('{web}', world.address)}]>"
    document = f"{doctype}<opml><body><outline text='&l9;' xmlUrl='http://x.example/&l9;'/></body></opml>"
    answered = target.program.post("/api/opml", document.encode())
    assert (answered.status, answered.json()["code"]) == (422, "bad_document")
    assert "root:" not in answered.text
    assert "/opml.dtd" not in world.paths()


def test_a_list_with_a_type_elsewhere_is_read_without_it(target: Target, world: Web) -> None:  # H51
    document = f'<!DOCTYPE opml SYSTEM "{world.url("/opml.dtd")}"><opml><body>'
    document += "<outline xmlUrl='http://typed.example/'/></body></opml>"
    assert target.program.post("/api/opml", document.encode()).json()["added"] == 1
    assert "/opml.dtd" not in world.paths()


def test_a_document_that_kills_its_reader_costs_only_itself(tmp_path: Path, world: Web) -> None:  # H42, H43
    heavy = item("x", description="&lt;b&gt;&lt;i&gt;" * 40) * 12_000
    world.pages["/heavy"], world.pages["/light"] = Answer(channel(heavy)), Answer(rss("light"))
    with attacked(tmp_path, HEADWATER_PARSER_SECONDS="0.1") as target:
        bad, good = target.visit(world.url("/heavy"), world.url("/light"))
    assert (bad["last_error_code"], good["status"], good["posts"]) == ("parser_stopped", "ok", 1)
