"""Pages in the language that their reader chose, or that the browser asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from babel.messages.catalog import Catalog, Message
from playwright.sync_api import Browser, expect

from api.running import Running
from headwater.web import formatting, language
from headwater.web.language import LOCALES, NAMES, preferred, speaking
from headwater.web.view import ENGLISH_PAGES
from support.checkout import ROOT
from support.people import PASSWORD, a_person, browser_of
from support.posts import NOON, a_post
from support.scripts import load_script
from web.conftest import PATIENCE

messages = load_script("scripts/messages.py")
TEMPLATES = ROOT / "src" / "headwater" / "web" / "templates"


@pytest.fixture(scope="module")
def wanted() -> Catalog:
    found: Catalog = messages.template()
    return found


@pytest.mark.parametrize("code", LOCALES)
def test_no_message_is_missing_left_over_or_untranslated(wanted: Catalog, code: str) -> None:
    translated: Catalog = messages.translations(code)
    assert {one.id for one in wanted} == {one.id for one in translated}, "run `make messages`"
    for one in translated:
        strings = [one.string] if isinstance(one.string, str) else list(one.string)
        assert one.id == "" or all(strings), one.id
        assert len(strings) == (translated.num_plurals if one.pluralizable else 1), one.id
        assert not one.fuzzy, one.id


@pytest.mark.parametrize("code", LOCALES)
def test_a_translation_has_the_same_gaps_and_tags(code: str) -> None:
    pieces = re.compile(r"%\(\w+\)s|\{\w+\}|</?\w+>")

    def of(words: str) -> set[str]:
        return set(pieces.findall(words))

    def strings(one: Message) -> Iterator[tuple[str, str]]:
        if isinstance(one.id, str):
            yield one.id, one.string
        else:
            yield from ((one.id[min(place, 1)], string) for place, string in enumerate(one.string))

    for one in messages.translations(code):
        for original, string in strings(one):
            whole = of(original) | (of(one.id[1]) if one.pluralizable else set())
            assert of(string) == of(original) or of(string) == whole, one.id


def test_every_word_of_a_translated_page_is_marked_as_a_message() -> None:
    code_or_tag = re.compile(r"\{%-? *trans\b.*?endtrans *-?%\}|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>", re.S)
    spoken = re.compile(r'\b(?:title|aria-label|placeholder|data-label)="([^"{]*[a-z]{2}[^"{]*)"')
    names = {"Headwater", "headwater login", "API", "Enter", "KB", "example.org"}
    for file in sorted(TEMPLATES.glob("*.html")):
        if file.name in ENGLISH_PAGES | {"charts.html"}:
            continue
        text = file.read_text(encoding="utf-8")
        left = [piece.strip(" ·\n") for piece in code_or_tag.sub("\n", text).splitlines()] + spoken.findall(text)
        assert [one for one in left if re.search("[A-Za-z]{2}", one) and one not in names] == [], file.name


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        (None, "en"),
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr-FR,fr;q=0.9,de;q=0.5,en;q=0.4", "de"),
        ("en-GB,de;q=0.9", "en"),
        ("zh-CN,zh;q=0.9", "zh"),
        ("ZH-hans", "zh"),
        ("fr", "en"),
        ("de;q=0", "en"),
        ("de;q=2, zh;q=x, *;q=0.1", "en"),
        (",;,=;q=;" + "x," * 5000, "en"),
    ],
)
def test_the_browser_is_asked_what_it_likes_best(wishes: str | None, code: str) -> None:
    assert preferred(wishes) == code


def test_numbers_and_dates_are_written_as_in_the_language() -> None:
    long_ago = NOON - timedelta(days=400)
    said = {}
    for code in NAMES:
        with speaking(code):
            said[code] = [
                formatting.number(1234567),
                formatting.number(0.5, 1),
                formatting.ago(long_ago, NOON),
                formatting.ago(NOON - timedelta(days=3), NOON),
                formatting.day(long_ago, NOON, UTC),
                formatting.exact(datetime(2026, 3, 4, 5, 6, tzinfo=UTC), UTC),
            ]
    assert said == {
        "en": ["1,234,567", "0.5", "28 Sep 2025", "3 days ago", "Sunday, 28 September 2025",
               "Wednesday, 4 March 2026, 05:06 UTC"],
        "de": ["1.234.567", "0,5", "28. Sept. 2025", "vor 3 Tagen", "Sonntag, 28. September 2025",
               "Mittwoch, 4. März 2026, 05:06 UTC"],
        "zh": ["1,234,567", "0.5", "2025年9月28日", "3 天前", "2025年9月28日星期日", "2026年3月4日星期三, 05:06 UTC"],
    }  # fmt: skip


PAGES = ("/", "/sources", "/sources/{source}", "/posts/{post}", "/folding", "/account", "/people", "/?q=nothing", "/x")


def test_every_page_of_the_reader_is_in_the_language_that_was_chosen(on_both: Running) -> None:
    # D8
    source = on_both.source()
    [post, *_] = on_both.publish(source, a_post("one"), a_post("two"))
    browser = browser_of(on_both, a_person(on_both, "ann", "owner"))
    browser.post("/api/sources", {"address": "https://news.example/feed"})
    sayings = {"en": ("Stream", "Sources"), "de": ("Stream", "Quellen"), "zh": ("信息流", "来源")}
    tags = {"en": "en", "de": "de", "zh": "zh-Hans"}
    for code, words in sayings.items():
        assert browser.patch("/api/account", {"language": code}).json()["language"] == code
        for path in PAGES:
            # What was chosen counts, whatever the browser asks for.
            page = browser.get(path.format(source=source, post=post), Accept="text/html", Accept_Language="fr, de").text
            assert f'<html lang="{tags[code]}"' in page, path
            for word in words:
                assert f">{word}</a>" in page, (path, word)
    assert '<html lang="en"' in browser.get("/audit", Accept="text/html").text, "it is in English from top to bottom"
    assert browser.patch("/api/account", {"language": "tlh"}).status == 422
    assert browser.patch("/api/account", {"language": ""}).json()["language"] is None
    assert '<html lang="de"' in browser.get("/", Accept_Language="fr, de;q=0.8").text
    assert '<html lang="en"' in browser.get("/").text


def test_whoever_is_not_signed_in_gets_the_language_of_the_browser(shared_on_both: Running) -> None:
    a_person(shared_on_both, "ann", password=PASSWORD)
    page = shared_on_both.stranger.get("/login", Accept="text/html", Accept_Language="zh-CN").text
    assert ('<html lang="zh-Hans"' in page, "<h1>登录</h1>" in page, "密码" in page) == (True, True, True)
    form = b"email=ann%40example.org&password=wrong"
    wrong = shared_on_both.stranger.post(
        "/login", form, Content_Type="application/x-www-form-urlencoded", Accept="text/html", Accept_Language="de"
    )
    assert (wrong.status, "passen nicht zusammen" in wrong.text) == (401, True)
    problem = shared_on_both.program().get("/nowhere", Accept="text/html", Accept_Language="de").text
    assert "<h1>Hier ist nichts</h1>" in problem
    assert '<p lang="en">' in problem, "what only exists in English says so"


def test_english_needs_no_catalogue() -> None:
    language._translations.cache_clear()
    with speaking("en") as english:
        assert (formatting.ago(NOON, NOON), english.words) == ("just now", "")


def test_a_language_is_chosen_on_the_page_and_scripts_speak_it_too(headwater: Running, browser: Browser) -> None:
    # D8
    headwater.publish(headwater.source(), a_post("one"), a_post("two"))
    page = browser.new_context(locale="en-GB").new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{headwater.url}{headwater.login_link()}&next=/account")
    page.get_by_label("Language").select_option("Deutsch")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_role("heading", name="Wo du angemeldet bist")).to_be_visible()
    page.goto(headwater.url)  # unlike a click on a link, it waits for the scripts
    page.get_by_role("button", name="Seite als gelesen markieren").click()
    expect(page.get_by_role("status").filter(has_text="2 Beiträge als gelesen markiert.")).to_be_visible()
    page.context.close()
