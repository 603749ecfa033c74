"""The pages without script: links and forms alone do everything."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from api.running import Answer, Client, Running
from headwater.accounts import tokens
from headwater.app.sources import STARTER_GROUPS
from headwater.follow.add import follow
from headwater.store import sources
from headwater.store.posts import stream
from headwater.web.stream import PAGE
from support.posts import NOON, a_claim, a_post

STATIC = Path(__file__).resolve().parents[2] / "src" / "headwater" / "web" / "static"


class Person:
    """Somebody with a browser that runs no script."""

    def __init__(self, headwater: Running) -> None:
        self.session = headwater.session()
        self.client: Client = headwater.browser(self.session)

    def see(self, path: str) -> str:
        answer = self.client.get(path, Accept="text/html")
        assert answer.status == 200
        return answer.text

    def send(self, path: str, **fields: object) -> Answer:
        body = urlencode({"form_key": tokens.form_key(self.session), **fields}, doseq=True).encode()
        return self.client.post(path, body, Content_Type="application/x-www-form-urlencoded", Accept="text/html")

    def upload(self, path: str, document: bytes) -> Answer:
        lines = [
            b"--limit\r\nContent-Disposition: form-data; name=form_key\r\n\r\n"
            + tokens.form_key(self.session).encode(),
            b"--limit\r\nContent-Disposition: form-data; name=document; filename=list.opml\r\n\r\n" + document,
            b"--limit--\r\n",
        ]
        kind = "multipart/form-data; boundary=limit"
        return self.client.post(path, b"\r\n".join(lines), Content_Type=kind, Accept="text/html")


@pytest.fixture
def person(headwater: Running) -> Person:
    return Person(headwater)


def test_the_first_page_explains_itself_and_offers_three_ways_to_begin(person: Person) -> None:
    page = person.see("/")
    assert "Follow everything; read each story once." in page
    for action in ("/sources", "/sources/opml", "/sources/starter"):
        assert f'action="{action}"' in page


def test_a_source_is_followed_by_a_form(headwater: Running, person: Person) -> None:
    # D10
    answer = person.send("/sources", address="news.example", folder="World", next="/")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    page = person.see("/sources")
    assert "news.example" in page
    assert "Looking for the feed…" in page
    assert "Nothing here yet." in person.see("/")


def test_a_form_with_a_mistake_comes_back_with_the_reason_and_what_was_typed(person: Person) -> None:
    answer = person.send("/sources", address="ftp://<x>")
    assert answer.status == 422
    assert "Only http:// and https:// addresses can be used." in answer.text
    assert 'value="ftp://&lt;x&gt;"' in answer.text
    person.send("/sources", address="news.example")
    again = person.send("/sources", address="news.example")
    assert again.status == 409
    assert "You follow this address already." in again.text


def test_the_starter_set_is_added_with_one_button(headwater: Running, person: Person) -> None:
    answer = person.send("/sources/starter", groups=["Science", "World", "no such group"])
    assert answer.status == 303
    watched = headwater.parts.db.read_now(sources.watched, headwater.owner, headwater.parts.now())
    assert {source.folder for source in watched} == {"Science", "World"}
    assert len(watched) == len(STARTER_GROUPS["Science"]) + len(STARTER_GROUPS["World"])


def test_the_starter_set_can_be_followed_whole(headwater: Running, person: Person) -> None:
    person.send("/sources/starter", groups=list(STARTER_GROUPS))
    count = len(headwater.parts.db.read_now(sources.followed_ids, headwater.owner))
    assert count == sum(map(len, STARTER_GROUPS.values())) >= 20


def test_a_list_is_imported_with_a_report(headwater: Running, person: Person) -> None:
    document = b"<opml><body><outline xmlUrl='https://one.example/'/><outline xmlUrl='gopher://&lt;b>'/></body></opml>"
    answer = person.upload("/sources/opml", document)
    assert answer.status == 200
    assert "1 source added, 1 refused." in " ".join(answer.text.split())
    assert "gopher://&lt;b&gt;" in answer.text
    broken = person.upload("/sources/opml", b"<html>")
    assert broken.status == 422
    assert "This document cannot be read" in broken.text


def test_posts_are_starred_and_read_by_buttons_and_one_comes_back_to_the_same_page(
    headwater: Running, person: Person
) -> None:
    [post_id] = headwater.publish(headwater.source(), a_post("1"))
    answer = person.send(f"/posts/{post_id}/mark", starred=1, next="/?unread=1")
    assert (answer.status, answer.headers["location"]) == (303, "/?unread=1")
    person.send(f"/posts/{post_id}/mark", read=1)
    post = headwater.parts.db.read_now(stream.one_post, headwater.owner, post_id)
    assert post is not None
    assert (post.read, post.starred) == (True, True)
    assert person.send(f"/posts/{post_id}/mark", read=0, next="//evil.example").headers["location"] == "/"  # H70
    assert person.send("/posts/mark", ids=[post_id], next="/").status == 303


def test_older_posts_are_one_link_away(headwater: Running, person: Person) -> None:
    headwater.publish(headwater.source(), *[a_post(f"{number:03}") for number in range(PAGE + 5)])
    first = person.see("/?unread=1")
    older = re.search(r'href="(/\?[^"]*cursor=[^"]+)"', first)
    assert older
    second = person.see(older[1].replace("&amp;", "&"))
    shown = re.findall(r'id="post-(\d+)"', first + second)
    assert len(shown) == len(set(shown)) == PAGE + 5
    assert 'rel="next"' not in second


def test_a_post_has_a_page_with_its_whole_text(headwater: Running, person: Person) -> None:
    [post_id] = headwater.publish(
        headwater.source(), a_post("1", "Rivers", content="<p>Text <b>in bold</b></p>", author="A & B")
    )
    page = person.see(f"/posts/{post_id}")
    assert "<p>Text <b>in bold</b></p>" in page
    assert "By A &amp; B" in page


def test_posts_without_title_or_address_still_can_be_opened(headwater: Running, person: Person) -> None:
    words = a_post("1", content="<p>Only words</p>")._replace(title="", url=None)
    nothing = a_post("2", content="")._replace(title="", url=None)
    first, second = headwater.publish(headwater.source(), words, nothing)
    page = person.see("/")
    assert f'href="/posts/{first}">Only words</a>' in page
    assert f'href="/posts/{second}">Without a title</a>' in page
    assert '<h1 dir="auto">Only words</h1>' in person.see(f"/posts/{first}")
    assert "Without a title" in person.see(f"/posts/{second}")


def test_how_each_source_is_doing_is_said_in_words(headwater: Running, person: Person) -> None:
    # F4
    told = {
        "failing": ("failed", "Failing"),
        "blocked": ("failed", "Blocked"),
        "retired": ("failed", "Gone for good"),
        "empty": ("empty", "Empty"),
        "ok": ("ok", "Working"),
    }
    for status, (outcome, _) in told.items():
        error = f"The {status} reason." if outcome == "failed" else None
        headwater.publish(headwater.source(f"https://{status}.example/"), status=status, outcome=outcome, error=error)
    busy = headwater.source("https://busy.example/")
    headwater.parts.db.write_now(a_claim, busy, headwater.parts.now())
    page = person.see("/sources")
    for status, (outcome, word) in told.items():
        row = re.search(rf"<tr[^>]*https://{status}\.example/.*?</tr>", page, re.DOTALL)
        assert row
        assert word in row[0]
        assert (f"The {status} reason." in row[0]) == (outcome == "failed")
    assert "being checked now" in page
    assert "no longer checked" in page
    assert "4 need attention" in page
    troubled = person.see("/sources?attention=1")
    assert "https://blocked.example/" in troubled
    assert "https://ok.example/" not in troubled


def test_a_source_page_tells_its_past_visits(headwater: Running, person: Person) -> None:
    source_id = headwater.source()
    headwater.publish(source_id, a_post("1"), http_status=200, bytes=2048)
    headwater.publish(source_id, status="failing", outcome="failed", error="It <hangs>.", facts=None)
    page = person.see(f"/sources/{source_id}")
    assert page.count("<tr>") == 3
    assert "It &lt;hangs&gt;." in page
    assert "2 KB" in page
    assert person.send(f"/sources/{source_id}/refresh", next=f"/sources/{source_id}").status == 303
    assert "due now" in person.see(f"/sources/{source_id}")
    assert person.send("/sources/refresh").status == 303
    assert person.send(f"/sources/{source_id}/unfollow").headers["location"] == "/sources"
    assert person.client.get(f"/sources/{source_id}").status == 404


def test_folders_and_sources_narrow_the_stream(headwater: Running, person: Person) -> None:
    db, owner = headwater.parts.db, headwater.owner
    inside = db.write_now(follow, owner, "https://in.example/", headwater.parts.now(), folder="A & B").source_id
    headwater.publish(inside, a_post("1", "Inside"))
    headwater.publish(headwater.source(), a_post("2", "Outside"))
    assert 'href="/?folder=A+%26+B"' in person.see("/")
    page = person.see("/?folder=A+%26+B")
    assert "Inside" in page
    assert "Outside" not in page
    assert "Outside" not in person.see(f"/?source_id={inside}")
    assert "https://in.example/" in person.see("/sources?folder=A+%26+B")


def test_many_sources_are_listed_by_title_page_by_page(on_both: Running) -> None:
    person = Person(on_both)
    now = on_both.parts.now()
    for number in range(205):
        name = f"{'ÄbB'[number % 3]}{number:03}"
        on_both.parts.db.write_now(follow, on_both.owner, f"https://h{number}.example/", now, title=name)
    first = person.see("/sources")
    link = re.search(r'href="(/sources\?cursor=[^"]+)"', first)
    assert link
    second = person.see(link[1])
    names = [re.findall(r'class="name"[^>]*>([^<]+)<', page) for page in (first, second)]
    assert [len(page) for page in names] == [200, 5]
    assert len(set(names[0] + names[1])) == 205


def test_times_are_those_of_the_readers_zone(headwater: Running, person: Person) -> None:
    headwater.publish(headwater.source(), a_post("1", created_at=NOON))
    cookie = person.client.headers["Cookie"]
    for zone, shown in (
        ("Asia/Shanghai", "20:00 CST"),
        ("nowhere/land", "12:00 UTC"),
        ("../../etc/passwd", "12:00 UTC"),
    ):
        page = person.client.get("/", Accept="text/html", Cookie=f"{cookie}; headwater_zone={zone}").text
        assert f"Monday, 2 November 2026, {shown}" in page


def test_nothing_is_loaded_from_elsewhere_and_the_style_is_small() -> None:
    templates = STATIC.parent / "templates"
    for file in [*templates.glob("*.html"), *STATIC.rglob("*.css"), *STATIC.rglob("*.js")]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file
        assert "https://" not in text, file
    assert (STATIC / "headwater.css").stat().st_size < 20_000


def test_text_has_enough_contrast_in_both_schemes() -> None:
    sheet = (STATIC / "headwater.css").read_text(encoding="utf-8")
    named = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", sheet)
    for place in (1, 2):
        colours = {one[0]: one[place] for one in named}
        pairs = [(ink, paper) for ink in ("ink", "soft", "water", "good", "bad", "busy") for paper in ("paper", "card")]
        pairs += [
            ("on-water", "water"),
            ("water", "water-wash"),
            ("bad", "bad-wash"),
            ("soft", "wash"),
            ("soft", "bad-wash"),
        ]
        for ink, paper in pairs:
            assert contrast(colours[ink], colours[paper]) >= 4.5, f"{ink} on {paper}"


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
