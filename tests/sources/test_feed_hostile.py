"""Documents that are broken, or made to break whoever reads them."""

from __future__ import annotations

import codecs
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from feeds_by_hand import NOON, atom, only, read, rss

from headwater.errors import Blocked, EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.sources.feeds import read_feed
from support.growth import assert_cost_is_linear

# What is made to take minutes has to be done with long before; a test that hangs is ended here.
pytestmark = pytest.mark.timeout(60)


def laughs(levels: int = 9) -> str:
    entities = '<!ENTITY l0 "lol">' + "".join(
        f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, levels + 1)
    )
    return f"<!DOCTYPE rss [{entities}]><rss><channel><title>&l{levels};</title></channel></rss>"


# ---- Entities ----


def test_a_billion_laughs_are_refused() -> None:  # H38
    with pytest.raises(TooDeep):
        read(laughs())


def test_one_long_entity_used_often_is_refused() -> None:  # H39
    long = f'<!DOCTYPE rss [<!ENTITY a "{"a" * 50_000}">]><rss><channel><title>{"&a;" * 50_000}</title></channel></rss>'
    with pytest.raises(TooDeep):
        read(long)
    many = f'<!DOCTYPE rss [<!ENTITY a "{"a" * 900}">]><rss><channel><title>{"&a;" * 5_000}</title></channel></rss>'
    with pytest.raises(TooDeep):
        read(many)


def test_external_entities_are_neither_read_nor_fetched(tmp_path: Path) -> None:  # H40
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for declaration in (
            f'<!ENTITY x SYSTEM "file://{secret}">',
            f'<!ENTITY x SYSTEM "{address}">',
            f'<!ENTITY x PUBLIC "x" "{address}">',
            f'<!ENTITY % p SYSTEM "{address}"> %p; <!ENTITY x "%p;">',
            f"<!ENTITY % p \"<!ENTITY x SYSTEM 'file://{secret}'>\"> %p;",
        ):
            document = f"<!DOCTYPE rss [{declaration}]><rss><channel><title>a &x; b</title><item/></channel></rss>"
            assert "secret" not in str(read(document))
        with pytest.raises(TimeoutError):
            server.accept()


def test_an_external_dtd_is_not_fetched(tmp_path: Path) -> None:  # H41
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        document = f'<!DOCTYPE rss SYSTEM "http://127.0.0.1:{port}/rss.dtd">{rss("<title>x</title>")}'
        assert only(read(document)).title == "x"
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_harmless_doctype_is_read() -> None:
    netscape = (
        '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">'
    )
    assert only(read(netscape + rss("<title>caf&eacute; &copy;</title>"))).title == "café ©"
    own = '<!DOCTYPE rss [<!-- > --><!ENTITY site "A &#38; B"><!ENTITY % x PUBLIC "a" "http://a.example/x.ent">]>'
    assert only(read(own + rss("<title>&site;<![CDATA[ &site;]]></title>"))).title == "A & B &site;"


# ---- Size and depth ----


def test_two_hundred_thousand_nested_tags_are_refused() -> None:  # H42
    for deep in ("<a>" * 200_000, "<a>" * 200_000 + "</a>" * 200_000):
        with pytest.raises(TooDeep):
            read(f"<rss><channel>{deep}</channel></rss>")


def test_nested_html_in_content_costs_the_content_not_the_feed() -> None:  # H42
    page = read(rss(f"<guid>1</guid><description>{'&lt;div&gt;' * 100_000}words</description>", "<guid>2</guid>"))
    assert [post.content for post in page.posts] == ["words", ""]


@pytest.mark.parametrize(
    ("begin", "repeated", "times"),
    [
        (b"<rss>", b"<![CDATA[", 100_000),
        (b"<rss>", b"<!--", 100_000),
        (b"<rss><channel>", b"<title>", 100_000),
        (b"<rss ", b"a= ", 100_000),
        (b"<rss>", b"<a b", 100_000),
        (b"<rss>", b"&", 300_000),
        (b"<!DOCTYPE rss [", b"<!ENTITY a 'b'>", 50_000),
        (b"", b"<?xml", 50_000),
        (b"<rss", b" x", 100_000),
        (b"", b"{", 100_000),
    ],
    ids=lambda given: given.decode() if isinstance(given, bytes) else "",
)
def test_documents_made_to_keep_a_parser_busy_cost_no_more_than_their_size(
    begin: bytes, repeated: bytes, times: int
) -> None:
    def parse(size: int) -> None:
        with suppress(ReadFailed):
            read(begin + repeated * size)

    assert_cost_is_linear(parse, times // 4)


# ---- JSON ----


def test_json_nested_without_end_is_refused() -> None:  # H49
    with pytest.raises(TooDeep):
        read('{"version": "https://jsonfeed.org/version/1", "items": ' + "[" * 100_000 + "]" * 100_000 + "}")


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "1e400", "1" * 5_000, "-0", "null", "true", "{}", "[]", '"\\ud800"', '"\\u0000x"']
)
def test_json_values_that_are_no_text_are_passed_over_or_refused(value: str) -> None:  # H49
    document = (
        f'{{"version": "https://jsonfeed.org/version/1", "title": {value}, "title": {value},'
        f' "items": [{{"id": "1", "title": {value}, "date_published": {value}, "tags": {value}, "authors": {value}}}]}}'
    )
    try:
        page = read(document)
    except ReadFailed:
        return
    assert only(page).source_post_id == "1"
    str(page).encode()


def test_json_that_is_not_a_feed_says_so() -> None:
    for document in ('{"items": []}', "[]", '{"version": 1}', "{", '{"version": "https://jsonfeed.org/version/1"'):
        with pytest.raises(NotAFeed):
            read(document)


# ---- Characters ----

WORDS = "Grüße — 你好"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (rss(f"<title>{WORDS}</title>").encode(), None),
        (codecs.BOM_UTF8 + rss(f"<title>{WORDS}</title>").encode(), "text/xml; charset=iso-8859-1"),
        (rss(f"<title>{WORDS}</title>").encode("utf-16"), "text/xml; charset=utf-8"),
        (rss(f"<title>{WORDS}</title>").encode("utf-16-le"), None),
        (rss(f"<title>{WORDS}</title>").encode("utf-16-be"), None),
        (rss(f"<title>{WORDS}</title>").encode("utf-32"), None),
        (f"<?xml version='1.0' encoding='utf-16'?>{rss(f'<title>{WORDS}</title>')}".encode(), None),
        (f"<?xml version='1.0' encoding='iso-8859-1'?>{rss(f'<title>{WORDS}</title>')}".encode(), None),
        (rss(f"<title>{WORDS}</title>").encode(), "application/rss+xml; charset=windows-1252"),
        (f"<?xml version='1.0' encoding='gb2312'?>{rss(f'<title>{WORDS}</title>')}".encode("gb18030"), None),
        (rss(f"<title>{WORDS}</title>").encode("gb18030"), "text/xml; charset=GBK"),
        (f"<?xml version='1.0' encoding='nonsense'?>{rss(f'<title>{WORDS}</title>')}".encode(), "text/xml; charset=x"),
    ],
)
def test_whoever_lies_about_the_charset_the_words_are_read(body: bytes, content_type: str | None) -> None:  # H33
    assert only(read(body, content_type=content_type)).title == WORDS


def test_utf7_is_taken_for_the_bytes_it_is() -> None:  # H33
    body = b"<?xml version='1.0' encoding='utf-7'?>" + rss("<title>+ADw-script+AD4-</title>").encode()
    assert only(read(body, content_type="text/xml; charset=utf-7")).title == "+ADw-script+AD4-"


def test_stray_bytes_in_utf8_are_read_as_windows_meant_them() -> None:  # H33
    body = rss("<title>caf\xe9 — größer – X</title>").encode().replace("é".encode(), b"\xe9")
    assert only(read(body.replace(b"X", b"\x93q\x94"))).title == "café — größer – “q”"


@pytest.mark.parametrize(
    ("charset", "words"),
    [
        ("koi8-r", "Сегодня утром в городе прошел дождь, и улицы опустели до самого вечера"),
        ("cp1251", "Сегодня утром в городе прошел дождь, и улицы опустели до самого вечера"),
        ("euc_kr", "오늘 아침 도시에 비가 내려서 저녁까지 거리가 비어 있었다"),
        ("shift_jis", "今日の朝、街に雨が降って、夕方まで通りに人がいなかった。"),
        ("gb18030", "今天早上城市里下了雨，街道上到晚上都没有人。我们在家里学习"),
        ("big5", "今天早上城市裡下了雨，街道上到晚上都沒有人。我們在家裡學習"),
        ("cp1253", "Σήμερα το πρωί έβρεξε στην πόλη και οι δρόμοι άδειασαν"),
        ("cp1252", "Aujourd’hui il a plu à Genève, été après été"),
    ],
)
def test_words_in_a_charset_that_nobody_named_are_read(charset: str, words: str) -> None:  # H33
    assert only(read(rss(f"<title>{words}</title>").encode(charset))).title == words


def test_characters_that_cannot_be_stored_are_left_out() -> None:  # H47
    text = "a\\u0000b\\u202ec\\ud83d"
    document = f'{{"version": "https://jsonfeed.org/version/1", "items": [{{"id": "1", "title": "{text[:-6]}"}}]}}'
    assert only(read(document)).title == "abc"
    body = rss("<title>x\0y\x07z&#0;&#x202e;&#xFFFF;w</title>", "<guid>2</guid>").encode()
    assert [post.title for post in read(body).posts] == ["xyzw", ""]


# ---- Not well-formed ----


@pytest.mark.parametrize(
    "broken",
    [
        "\n\n  <?xml version='1.0'?>" + rss("<title>A &amp; B</title>"),
        rss("<title>A &amp; B</title>") + "<script>trailing</script> junk",
        "junk before " + rss("<title>A &amp; B</title>"),
        rss("<title>A & B</title>"),
        rss("<title>A &amp; B</title><description>&eacute;&nope;</description>"),
        rss("<title>A &amp;\x02 B</title>"),
        rss("<title>A &amp; B</title><unknown:x>1</unknown:x>"),
        rss("<title>A &amp; B</title><description>1 < 2</description>"),
        rss("<title>A &amp; B</title><description>One<br>two <img src=x></description>"),
        rss("<title>A &amp; B</title>").replace('version="2.0"', "version=2.0"),
        rss("<title>A &amp; B</title>").replace("</channel>", ""),
        rss("<title>A &amp; B</title>").replace("</channel></rss>", ""),
        rss("<title>A &amp; B</title><category>never closed"),
        "<html><body>" + rss("<title>A &amp; B</title>") + "</body></html>",
    ],
)
def test_what_a_reader_of_the_raw_text_would_understand_is_read(broken: str) -> None:  # H46
    page = read(broken)
    assert only(page).title == "A & B"
    assert not page.facts.truncated


@pytest.mark.parametrize(
    "entry",
    [
        "<title>One<description>Text</description>",
        "<title>One</title><description>Text",
        "<title>One</title><description><![CDATA[Text]]><guid>1</guid>",
        "<title>One<guid>1<description>Text",
    ],
)
def test_an_element_that_is_never_ended_ends_where_the_next_one_begins(entry: str) -> None:  # H46
    page = read(rss(entry, "<title>Two</title><description>More</description>"))
    assert [(post.title, post.content) for post in page.posts] == [("One", "Text"), ("Two", "More")]
    assert not page.facts.truncated


@pytest.mark.parametrize(
    "entry", ["<title>One</title><description>a <p>b", "<title>One</title><description>Text</dscription>"]
)
def test_a_text_whose_end_nobody_can_tell_is_said_to_be_damaged(entry: str) -> None:  # H46
    assert read(rss(entry, "<title>Two</title>")).facts.truncated


@pytest.mark.parametrize("end", ["<item><title>Thr", "<item>", "<item><title>Three</title></item", "<item><![CDATA[x"])
def test_an_answer_that_breaks_off_says_that_something_is_missing(end: str) -> None:  # H46
    whole = rss("<title>One</title>", "<title>Two</title>")
    page = read(whole.replace("</channel></rss>", end))
    assert [post.title for post in page.posts][:2] == ["One", "Two"]
    assert page.facts.truncated


def test_an_answer_that_breaks_off_within_the_first_entry_is_salvaged_or_refused_but_never_silent() -> None:  # H46
    try:
        page = read("<rss><channel><title>A</title><item><title>On")
    except ReadFailed:
        return
    assert page.facts.truncated


# ---- Something else than a feed ----


@pytest.mark.parametrize("body", [b"", b"  \n\t ", b"\0\0", codecs.BOM_UTF8])
def test_nothing_is_a_failure_not_an_empty_feed(body: bytes) -> None:  # H28
    with pytest.raises(EmptyAnswer):
        read(body)


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking</body></html>",
        '<html><script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script></html>',
        '<html><body><div class="g-recaptcha" data-sitekey="x"></div></body></html>',
        '<!doctype html>\n<html><form><input name=user><input type="password" name=pass></form></html>',
        "<html><head><title>Access Denied</title></head></html>",
        "<HTML><HEAD><META NAME='ROBOTS'></HEAD><IFRAME src='/_Incapsula_Resource?x'></HTML>",
    ],
)
def test_a_page_that_keeps_programs_out_is_called_what_it_is(page: str) -> None:  # H29
    with pytest.raises(Blocked):
        read(page, content_type="application/rss+xml")


@pytest.mark.parametrize(
    "body",
    [
        "<!DOCTYPE html><html><head><title>A blog</title></head><body><p>Hello</p></body></html>",
        "<?xml version='1.0'?><!-- x --><html xmlns='http://www.w3.org/1999/xhtml'><body/></html>",
        "<opml><body/></opml>",
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>",
        "plain words",
        "%PDF-1.4",
        "<",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><x/></rdf:RDF>",
    ],
)
def test_anything_else_is_not_a_feed(body: str) -> None:
    with pytest.raises(NotAFeed):
        read(body)


def test_a_path_in_the_answer_is_not_opened(tmp_path: Path) -> None:
    named = [tmp_path / "feed.xml", tmp_path / "<rss>"]
    for path in named:
        path.write_text(rss("<title>the secret</title>"))
    for body in (str(named[0]), named[0].as_uri(), str(named[1])):
        with suppress(NotAFeed):
            assert "secret" not in str(read_feed(body.encode(), url="", content_type=None, received_at=NOON))


def test_markup_in_every_field_stays_text() -> None:  # H60
    evil = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;x"
    page = read(
        rss(
            f"<title>{evil}</title><author>{evil}</author><category>{evil}</category><guid>{evil}</guid>"
            f'<enclosure url="https://a.example/&quot;&gt;{evil}" type="{evil}"/><source url="{evil}">{evil}</source>',
            channel=f"<language>{evil}</language><link>{evil}</link>",
        ).replace("<title>A</title>", f"<title>{evil}</title>")
    )
    post = only(page)
    assert {post.title, post.author, *post.extra["categories"], page.facts.title} == {"x"}
    assert "<" not in post.enclosures[0].url
    assert page.facts.language is None


def test_an_atom_feed_with_everything_broken_still_gives_what_it_has() -> None:
    page = read(atom('<id/><title/><link/><link href=""/><updated/><author/><content src=""/><category/>'))
    assert only(page).title == ""
