"""What a feed says, by the rules of docs/reference/feeds.md: identity, time, address, words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from feeds_by_hand import NOON, atom, of_atom, of_rss, only, read, rss

from headwater.model import Enclosure, Page, Reference, Response, Source, SourceState
from headwater.sources import KINDS


def ids(page: Page) -> list[str]:
    return [post.source_post_id for post in page.posts]


# ---- Identity (H44) ----


def test_the_guid_or_id_is_the_identity() -> None:
    assert of_rss("<guid isPermaLink='false'> tag:1 </guid><link>https://a.example/1</link>").source_post_id == "tag:1"
    assert of_atom("<id>urn:uuid:1</id>").source_post_id == "urn:uuid:1"


def test_without_an_id_the_address_without_tracking_is_the_identity() -> None:  # H44
    one = of_rss("<link>https://a.example/1?utm_source=rss&amp;id=2</link>")
    assert one.source_post_id == "https://a.example/1?id=2"
    assert one.url == "https://a.example/1?utm_source=rss&id=2"


def test_without_id_and_address_the_text_is_the_identity() -> None:  # H44
    first, same, other = (
        of_rss(f"<title>{title}</title><description>{text}</description>")
        for title, text in [("A", "x y"), ("A", "&lt;p&gt;x  y&lt;/p&gt;"), ("A", "z")]
    )
    assert first.source_post_id == same.source_post_id != other.source_post_id


def test_ids_that_different_entries_share_are_told_apart_by_their_addresses() -> None:  # H44
    items = [f"<guid isPermaLink='false'>1</guid><link>https://a.example/{name}</link>" for name in "abc"]
    all_three = ids(read(rss(*items)))
    assert len(set(all_three)) == 3
    assert set(ids(read(rss(*items[:2])))) <= set(all_three), "the order and number of the others do not matter"


def test_ids_and_addresses_that_different_entries_share_are_told_apart_by_their_titles() -> None:  # H44
    items = [f"<title>{title}</title><link>https://a.example/news</link>" for title in ("One", "Two")]
    assert len(set(ids(read(rss(*items))))) == 2


def test_the_same_entry_twice_is_one_entry_as_it_was_last_updated() -> None:  # H44
    old, new = (
        f"<id>1</id><title>T</title><updated>2026-02-0{day}T00:00:00Z</updated><content>{day}</content>"
        for day in (1, 2)
    )
    for order in ((old, new), (new, old)):
        post = only(read(atom(*order)))
        assert (post.source_post_id, post.content) == ("1", "2")


def test_an_endless_id_is_cut_and_stays_distinct() -> None:
    long = [of_rss(f"<guid>{'x' * 5_000}{end}</guid>").source_post_id for end in "ab"]
    assert len(long[0]) < 1_100
    assert long[0] != long[1]


# ---- Time (H45) ----


def test_the_first_date_that_can_be_read_and_be_true_is_the_posts() -> None:
    post = of_rss("<pubDate>soon</pubDate><dc:date>2026-02-03T04:05:06Z</dc:date>")
    assert post.created_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert post.dated


def test_an_update_is_not_taken_for_the_publication_unless_it_is_all_there_is() -> None:
    both = of_atom("<published>2026-01-01T00:00:00Z</published><updated>2026-01-02T00:00:00Z</updated>")
    assert (both.created_at.day, both.updated_at and both.updated_at.day) == (1, 2)
    alone = of_atom("<updated>2026-01-02T00:00:00Z</updated>")
    assert alone.created_at == alone.updated_at


@pytest.mark.parametrize(
    "date",
    [
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 +0000",
        "9999-12-31T23:59:59Z",
        "2026-03-04T12:00:01Z",
        "not a date",
        "99",
        "",
    ],
)
def test_a_date_that_cannot_be_true_is_the_time_of_receipt(date: str) -> None:  # H45
    post = of_rss(f"<guid>1</guid><pubDate>{date}</pubDate>")
    assert (post.created_at, post.dated) == (NOON, False)


def test_clocks_that_run_ahead_a_little_are_believed() -> None:
    ahead = (NOON + timedelta(hours=30)).isoformat()
    assert of_atom(f"<id>1</id><published>{ahead}</published>").dated


# ---- Addresses ----


def test_relative_links_start_from_the_nearest_xml_base_or_from_the_document() -> None:
    assert of_rss("<link>post/1</link>").url == "https://a.example/blog/post/1"
    page = read(
        atom('<link href="1"/>', attributes=' xml:base="/base/"')
        .replace("<entry>", '<entry xml:base="deep/">')
        .replace("<link ", '<link xml:base="deeper/" ')
    )
    assert only(page).url == "https://a.example/base/deep/deeper/1"


def test_a_document_without_an_address_takes_its_own_word_for_it() -> None:
    feed = '<link rel="self" href="https://b.example/x/feed"/>'
    assert only(read(atom('<link href="1"/>', feed=feed), url="")).url == "https://b.example/x/1"


def test_links_and_images_in_content_become_absolute() -> None:
    post = of_rss('<description>&lt;a href="/x"&gt;x&lt;/a&gt;&lt;img src="y.png"&gt;</description>')
    assert 'href="https://a.example/x"' in post.content
    assert 'src="https://a.example/blog/y.png"' in post.content


def test_the_original_address_is_better_than_the_counting_one() -> None:
    post = of_rss(
        "<link>https://feeds.example/~r/1</link><feedburner:origLink>https://a.example/1</feedburner:origLink>"
    )
    assert post.url == "https://a.example/1"


def test_the_html_alternate_is_the_address_and_other_links_are_not() -> None:
    links = [
        ("self", "application/atom+xml", "self"),
        ("edit", "", "edit"),
        ("alternate", "application/json", "json"),
        ("alternate", "text/html", "html"),
        ("related", "", "related"),
    ]
    written = "".join(f'<link rel="{rel}" type="{kind}" href="https://a.example/{name}"/>' for rel, kind, name in links)
    assert of_atom(written).url == "https://a.example/html"


def test_a_permanent_guid_or_an_id_that_is_an_address_stands_in_for_a_missing_link() -> None:
    assert of_rss("<guid>https://a.example/1</guid>").url == "https://a.example/1"
    assert of_rss("<guid isPermaLink='false'>1</guid>").url is None
    assert of_atom("<id>https://a.example/2</id>").url == "https://a.example/2"


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"])
def test_links_and_enclosures_that_could_run_or_read_are_dropped(link: str) -> None:  # H48
    post = of_rss(f"<link>{link}</link><guid>{link}</guid><enclosure url='{link}' type='audio/mpeg'/>")
    assert (post.url, post.enclosures) == (None, ())


# ---- Words ----


@pytest.mark.parametrize(
    ("title", "read_as"),
    [
        ("Plain &amp; simple", "Plain & simple"),
        ("&lt;b&gt;Bold&lt;/b&gt; move", "Bold move"),
        ("AT&amp;amp;T &amp;#8217;s", "AT&T ’s"),
        ("1 &lt; 2", "1 < 2"),
        ("Vec&lt;T&gt; in Rust", "Vec<T> in Rust"),
        ("<![CDATA[<em>Yes</em> &amp; no]]>", "Yes & no"),
        ("  two\n lines ", "two lines"),
        ("&lt;script&gt;alert(1)&lt;/script&gt;x", "x"),
    ],
)
def test_titles_of_rss_are_read_as_their_authors_meant_them(title: str, read_as: str) -> None:  # H60
    assert of_rss(f"<title>{title}</title>").title == read_as


@pytest.mark.parametrize(
    ("title", "read_as"),
    [
        ('<title type="text">The &lt;b&gt; tag</title>', "The <b> tag"),
        ("<title>The &lt;b&gt; tag</title>", "The <b> tag"),
        ('<title type="html">The &lt;b&gt;bold&lt;/b&gt; &amp;amp; more</title>', "The bold & more"),
        ('<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>b</b> &lt;c&gt;</div></title>', "A b <c>"),
        ("<title>Half &amp;amp; half</title>", "Half & half"),
    ],
)
def test_titles_of_atom_are_what_their_type_says(title: str, read_as: str) -> None:
    assert of_atom(title).title == read_as


def test_the_fullest_text_is_the_content() -> None:
    encoded = "<content:encoded>&lt;p&gt;All&lt;/p&gt;</content:encoded>"
    description = "<description>Part</description>"
    assert of_rss(description + encoded).content == "<p>All</p>"
    assert of_rss(encoded + description).content == "<p>All</p>"
    assert of_rss(description + "<content:encoded> </content:encoded>").content == "Part"
    media = "<media:group><media:description>First &lt;line&gt;\nsecond</media:description></media:group>"
    assert of_atom(media).content == "First &lt;line&gt;<br>\nsecond"


def test_a_summary_beside_the_content_is_kept_as_text() -> None:
    post = of_atom('<summary type="html">&lt;b&gt;Short&lt;/b&gt;</summary><content type="html">Long</content>')
    assert (post.content, post.extra["summary"]) == ("Long", "Short")


@pytest.mark.parametrize(
    ("content", "read_as"),
    [
        ('<content type="text">a &lt;b&gt; c</content>', "a &lt;b&gt; c"),
        ('<content type="html">a &lt;b&gt;c&lt;/b&gt;</content>', "a <b>c</b>"),
        (
            '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>c</b><br/></div></content>',
            "a <b>c</b><br>",
        ),
        (
            '<content type="xhtml" xml:base="/deep/"><div xmlns="http://www.w3.org/1999/xhtml">'
            '<a href="x">c</a></div></content>',
            '<a href="https://a.example/deep/x" rel="noopener noreferrer">c</a>',
        ),
        ('<content type="application/octet-stream">PGI+YTwvYj4=</content>', "<b>a</b>"),
    ],
)
def test_content_of_atom_is_what_its_type_says(content: str, read_as: str) -> None:
    assert of_atom(content).content == read_as


def test_text_that_was_encoded_twice_is_read_as_it_was_meant() -> None:
    assert of_rss("<title>CinÃ©ma Ã\xa0 GenÃ¨ve â€“ lâ€™Ã©tÃ©</title>").title == "Cinéma à Genève – l’été"
    assert of_rss("<title>Ångström âge Ã</title>").title == "Ångström âge Ã"


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("<author>jo@a.example (Jo Doe)</author>", "Jo Doe"),
        ("<author>Jo Doe &lt;jo@a.example&gt;</author>", "Jo Doe"),
        ("<author>jo@a.example</author>", "jo@a.example"),
        ("<author>x@a.example (X)</author><dc:creator>Jo Doe</dc:creator>", "Jo Doe"),
        ("<dc:creator>Jo</dc:creator><dc:creator>Mo</dc:creator>", "Jo, Mo"),
        ("<itunes:author>Jo &lt;script&gt;x&lt;/script&gt;</itunes:author>", "Jo"),
        ("<author/>", None),
    ],
)
def test_authors_are_names_as_text(author: str, name: str | None) -> None:  # H60
    assert of_rss(author).author == name


def test_an_entry_of_atom_without_an_author_has_the_feeds() -> None:
    feed = "<author><name>The Feed</name><email>x@a.example</email></author>"
    assert of_atom("<id>1</id>", feed).author == "The Feed"
    assert of_atom("<author><name>Own</name></author>", feed).author == "Own"
    assert of_rss("<guid>1</guid>", "<managingEditor>x@a.example (X)</managingEditor>").author is None


def test_the_language_is_that_of_the_words_else_of_the_entry_else_of_the_feed() -> None:
    assert of_rss("<guid>1</guid>", "<language>de-AT</language>").lang == "de-AT"
    assert of_rss("<dc:language>fr</dc:language>", "<language>de</language>").lang == "fr"
    feed = atom('<content xml:lang="pt_BR">x</content>', attributes=' xml:lang="en"')
    assert only(read(feed)).lang == "pt-BR"
    assert only(read(feed.replace("pt_BR", ""))).lang is None
    assert of_rss("<guid>1</guid>", "<language>no language at all</language>").lang is None


def test_enclosures_come_from_every_place_that_has_them_once_each() -> None:
    post = of_rss(
        '<enclosure url="/a.mp3" type="audio/mpeg" length="123"/><enclosure url="/a.mp3"/>'
        '<media:content url="https://a.example/v.mp4" type="video/mp4" fileSize="9"/>'
        '<a10:link rel="enclosure" href="https://a.example/b.ogg" type="audio/ogg" length="no"/>'
    )
    assert post.enclosures == (
        Enclosure("https://a.example/a.mp3", "audio/mpeg", 123),
        Enclosure("https://a.example/v.mp4", "video/mp4", 9),
        Enclosure("https://a.example/b.ogg", "audio/ogg", None),
    )


def test_facts_about_an_entry_are_kept_as_plain_text_and_safe_links() -> None:
    post = of_rss(
        "<category>A &amp; B</category><category>A &amp; B</category><category>&lt;i&gt;C&lt;/i&gt;</category>"
        "<comments>/1#comments</comments><wfw:commentRss>javascript:x</wfw:commentRss><slash:comments>12</slash:comments>"
        '<source url="https://b.example/feed">B</source><itunes:duration>1:02</itunes:duration>'
        '<media:thumbnail url="t.jpg"/><georss:point>47.5 8.5</georss:point>'
    )
    assert post.num_comments == 12
    assert post.extra == {
        "categories": ["A & B", "C"],
        "comments_url": "https://a.example/1#comments",
        "source": {"title": "B", "url": "https://b.example/feed"},
        "duration": "1:02",
        "image": "https://a.example/blog/t.jpg",
        "place": {"type": "Point", "coordinates": [8.5, 47.5]},
    }


def test_a_place_in_another_system_says_which_and_keeps_its_numbers_as_they_are() -> None:
    gml = 'xmlns:gml="http://www.opengis.net/gml" srsName="EPSG:32632"'
    one = of_rss(f"<georss:where><gml:Point {gml}><gml:pos>464000 5247000</gml:pos></gml:Point></georss:where>")
    assert one.extra["place"] == {"type": "Point", "coordinates": [464000.0, 5247000.0], "crs": "EPSG:32632"}
    one = of_rss(f"<georss:where><gml:Point {gml}><gml:pos>nan inf</gml:pos></gml:Point></georss:where>")
    assert "place" not in one.extra


def test_a_place_that_is_nowhere_is_no_place() -> None:
    for place in ("<georss:point>north</georss:point>", "<georss:point>900 0</georss:point>", "<geo:lat>x</geo:lat>"):
        assert "place" not in of_rss(place + "<geo:long>1</geo:long>").extra
    assert of_rss("<geo:lat>1</geo:lat><geo:long>2</geo:long>").extra["place"]["coordinates"] == [2.0, 1.0]


def test_a_reply_refers_to_what_it_answers() -> None:
    assert of_atom('<thr:in-reply-to ref="tag:1"/><thr:total>3</thr:total>').reference == Reference("reply", "tag:1")


# ---- The feed itself ----


def test_facts_about_the_feed() -> None:
    channel = (
        "<link>https://a.example/</link><language>en</language><ttl>90</ttl>"
        '<a10:link rel="self" href="/feed"/><a10:link rel="hub" href="https://hub.example/"/>'
    )
    facts = read(rss(channel=channel)).facts
    assert (facts.format, facts.title, facts.link, facts.language) == ("rss20", "A", "https://a.example/", "en")
    assert (facts.ttl_seconds, facts.self_url, facts.hub) == (5_400, "https://a.example/feed", "https://hub.example/")


@pytest.mark.parametrize(
    ("header", "hub", "itself"),
    [
        ('<https://hub.example/>; rel="hub"', "https://hub.example/", "https://a.example/said"),
        ("</hub>; rel=hub, </me,1>; title=\"a, b\"; rel='x'", "https://a.example/hub", "https://a.example/said"),
        ('<https://b.example/>; rel="next",</me>;REL="Self hub"', "https://a.example/me", "https://a.example/me"),
        ("<javascript:alert(1)>; rel=hub", "https://said.example/", "https://a.example/said"),
        ('<<>;;rel="hub', "https://said.example/", "https://a.example/said"),
    ],
)
def test_a_hub_in_the_answers_header_goes_before_the_documents(header: str, hub: str, itself: str) -> None:
    channel = '<a10:link rel="self" href="/said"/><a10:link rel="hub" href="https://said.example/"/>'
    body = rss(channel=channel).encode()
    answer = Response("https://a.example/feed", 200, {"link": header}, body, NOON)
    facts = KINDS["rss"].read(Source(1, "rss", answer.url), SourceState(), answer).facts
    assert (facts.hub, facts.self_url) == (hub, itself)


def test_how_often_to_ask_may_be_said_in_words() -> None:
    said = "<sy:updatePeriod> hourly </sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>"
    assert read(rss(channel=said)).facts.ttl_seconds == 1_800
    assert read(rss(channel="<sy:updatePeriod>sometimes</sy:updatePeriod>")).facts.ttl_seconds is None


@pytest.mark.parametrize(
    ("document", "format"),
    [
        ('<rss version="0.91"><channel/></rss>', "rss091u"),
        ('<rss version="0.92"><channel/></rss>', "rss092"),
        ('<rss version="2.0"><channel/></rss>', "rss20"),
        ("<rss><channel/></rss>", "rss"),
        ('<feed xmlns="http://www.w3.org/2005/Atom"/>', "atom10"),
        ('<feed version="0.3" xmlns="http://purl.org/atom/ns#"/>', "atom03"),
        (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"/>',
            "rss10",
        ),
        (
            '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
            ' xmlns="http://channel.netscape.com/rdf/simple/0.9/"><channel/></r:RDF>',
            "rss090",
        ),
        ('<rss version="2.0" xmlns="https://somebody.example/idea-of-rss"><channel/></rss>', "rss20"),
        ('{"version": "https://jsonfeed.org/version/1.1", "items": []}', "json11"),
        ('{"version": "https://jsonfeed.org/version/1"}', "json1"),
    ],
)
def test_every_dialect_is_known(document: str, format: str) -> None:
    assert read(document).facts.format == format


def test_json_feeds_are_read_by_the_same_rules() -> None:
    item = {
        "id": 7,
        "url": "/1",
        "external_url": "https://b.example/x",
        "title": "A <b> tag",
        "content_html": "<p onclick=x>T</p>",
        "summary": "S",
        "date_published": "2026-02-01T10:00:00+01:00",
        "date_modified": "2026-02-02T10:00:00Z",
        "authors": [{"name": "Jo"}, {"name": "Mo"}],
        "tags": ["a", 3],
        "language": "de",
        "attachments": [{"url": "x.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 5}, {"url": "javascript:x"}],
    }
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "J",
        "home_page_url": "https://a.example/",
        "items": [item],
    }
    page = read(orjson.dumps(document))
    post = only(page)
    assert (post.source_post_id, post.url, post.title, post.author, post.lang) == (
        "7",
        "https://a.example/1",
        "A <b> tag",
        "Jo, Mo",
        "de",
    )
    assert post.content == "<p>T</p>"
    assert (post.created_at.hour, post.updated_at and post.updated_at.day) == (9, 2)
    assert post.enclosures == (Enclosure("https://a.example/blog/x.mp3", "audio/mpeg", 5),)
    assert post.extra == {"categories": ["a"], "summary": "S"}
    assert (page.facts.title, page.facts.link) == ("J", "https://a.example/")


def test_more_entries_than_anybody_needs_are_cut_and_said_so() -> None:  # H43
    page = read(rss(*(f"<guid>{number}</guid>" for number in range(5_001))))
    assert len(page.posts) == 5_000
    assert page.facts.truncated
    assert not read(rss("<guid>1</guid>")).facts.truncated


def test_the_kind_asks_for_feeds_and_reads_what_comes() -> None:
    kind = KINDS["rss"]
    source = Source(1, "rss", "https://a.example/feed")
    request = kind.first(source, SourceState())
    assert request.url == source.address
    assert "application/atom+xml" in dict(request.headers)["Accept"]
    headers = {"content-type": "application/rss+xml; charset=iso-8859-1", "content-language": "fr"}
    body = b"<rss><channel><item><title>\xe9t\xe9</title></item></channel></rss>"
    page = kind.read(source, SourceState(), Response(source.address, 200, headers, body, NOON))
    assert (only(page).title, only(page).lang) == ("été", "fr")
