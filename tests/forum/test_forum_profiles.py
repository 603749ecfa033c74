"""The same board and thread as each forum software writes them: they are read the same."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from written import NO_PINS, SITE, WRITTEN, Written

from headwater.model import Image, Item, Page, Reference, Response, Source, SourceState
from headwater.sources import KINDS, forum
from headwater.sources.forums import profile
from headwater.sources.forums.profile import SOFTWARE, check_pattern, check_selectors, profiles
from support.posts import NOON

EVERY = [pytest.param(name, written, id=name) for name, written in WRITTEN.items()]
SOURCE = Source(1, "forum", f"{SITE}/")
THREAD = Item("12", f"{SITE}/12")


def page(url: str, html: str) -> Response:
    return Response(url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode(), NOON)


def read_list(written: Written) -> Page:
    return forum.read(SOURCE, SourceState(), page(written.list_url, written.list_page))


def read_thread(written: Written) -> Page:
    return forum.read_item(SOURCE, THREAD, page(written.thread_url, written.thread_page))


def test_every_profile_is_shown_here() -> None:
    assert set(WRITTEN) == set(profiles())


def test_every_profile_is_a_file_that_ships_with_the_package() -> None:
    folder = Path(profile.__file__).parent / "profiles"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.toml" for name in SOFTWARE)


@pytest.mark.parametrize("name", SOFTWARE)
def test_a_profile_passes_the_checks_of_a_sources_settings(name: str) -> None:
    found = profiles()[name]
    check_selectors("signs", found.signs)
    for line_name, line in found.selectors.lines().items():
        is_pattern = line_name in ("thread_id", "post_id_pattern")
        (check_pattern if is_pattern else check_selectors)(line_name, line)
    forum.check({"selectors": found.selectors.lines(), "utc_offset": found.utc_offset})


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_what_a_profile_says_can_be_said_in_settings_instead(name: str, written: Written) -> None:
    """A shipped profile and a source's settings have one format."""
    found = profiles()[name]
    settings = {"profile": "generic", "selectors": found.selectors.lines(), "utc_offset": found.utc_offset}
    own = SOURCE._replace(settings=settings)
    listed = forum.read(own, SourceState(), page(written.list_url, written.list_page))
    assert listed.items == read_list(written).items
    thread = forum.read_item(own, THREAD, page(written.thread_url, written.thread_page))
    assert thread.posts == read_thread(written).posts


def test_profiles_are_not_read_before_the_first_forum_page() -> None:
    """A parser process that reads no forum does not pay for them when it starts."""
    program = (
        "import sys\n"
        "from headwater.sources import KINDS\n"
        "from headwater.sources.forums.profile import profiles\n"
        "print('tomllib' in sys.modules, profiles.cache_info().currsize)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "0"]


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_the_software_is_recognised_by_its_pages(name: str, written: Written) -> None:
    for url, html in ((written.list_url, written.list_page), (written.thread_url, written.thread_page)):
        assert forum.recognise(SOURCE, page(url, html)) == {"profile": name}


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_a_board_names_its_threads(name: str, written: Written) -> None:  # B5
    listed = read_list(written)
    assert [item.id for item in listed.items] == ["11", "12"]
    assert [item.title for item in listed.items] == ["Rules of the board", "Which fan is quiet?"]
    assert [item.pinned for item in listed.items] == [name not in NO_PINS, False]
    assert all(item.url.startswith(SITE) and "#" not in item.url and "sid" not in item.url for item in listed.items)
    assert listed.next is not None
    assert listed.next.url == written.next_list
    assert listed.facts.format == name


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_a_thread_tells_its_posts(name: str, written: Written) -> None:  # B5
    read = read_thread(written)
    assert [post.source_post_id for post in read.posts] == ["12/501", "12/502"]
    assert [post.author for post in read.posts] == ["alder", "birch"]
    assert [post.title for post in read.posts] == ["Which fan is quiet?", "Re: Which fan is quiet?"]
    assert [post.created_at for post in read.posts] == [
        datetime(2024, 3, 5, 12, 30, tzinfo=UTC),
        datetime(2024, 3, 5, 13, 0, tzinfo=UTC),
    ]
    assert all(post.dated for post in read.posts)
    assert read.next is None


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_a_post_has_only_what_its_author_said_and_nothing_that_runs(name: str, written: Written) -> None:  # H55 H56
    first, second = read_thread(written).posts
    assert "Which fan is <b>quiet</b>?" in first.content
    assert first.images == (Image(f"{SITE}/fan.png", "a fan"),)
    assert "slow" in second.content
    for post in (first, second):
        assert not any(word in post.content for word in ("evil", "script", "buy my fans", "编辑"))


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_a_post_says_which_one_it_answers_where_the_page_does(name: str, written: Written) -> None:
    first, second = read_thread(written).posts
    assert first.reference is None
    assert second.reference == (Reference("reply", "12/501") if written.answers else None)


@pytest.mark.parametrize(("name", "written"), [every for every in EVERY if every.id != "flarum"])
def test_the_mark_of_a_thread_stays_while_nothing_happens_and_changes_with_a_reply(name: str, written: Written) -> None:
    again = written.list_page.replace("半小时前", "1 小时前").replace("sid=abc", "sid=xyz").replace("93", "94")
    before, after = read_list(written), read_list(written._replace(list_page=again))
    assert [item.mark for item in before.items] == [item.mark for item in after.items]
    assert before.items[1].mark not in ("", "/")
    for count in (">1<", 'title="2"', ">1 Replies<"):
        again = again.replace(count, count.replace("2", "3").replace("1", "2"))
    replied = read_list(written._replace(list_page=again))
    assert replied.items[1].mark != before.items[1].mark


@pytest.mark.parametrize(("name", "written"), EVERY)
def test_a_chosen_profile_reads_what_a_found_one_does(name: str, written: Written) -> None:
    chosen = SOURCE._replace(settings={"profile": name})
    listed = forum.read(chosen, SourceState(), page(written.list_url, written.list_page))
    assert listed == read_list(written)


def test_a_page_in_another_charset_is_read_by_what_it_declares() -> None:  # H33
    html = (
        WRITTEN["discuz"].thread_page.replace("Which fan is", "哪个风扇").replace("<head>", "<head><meta charset=gbk>")
    )
    answer = Response(WRITTEN["discuz"].thread_url, 200, {"content-type": "text/html"}, html.encode("gbk"), NOON)
    assert "哪个风扇" in forum.read_item(SOURCE, THREAD, answer).posts[0].content


def test_the_kind_is_crawled_page_by_page() -> None:
    kind = KINDS["forum"]
    assert kind.is_list
    assert kind.read_item is not None
    assert kind.first(SOURCE, SourceState()).url == SOURCE.address
