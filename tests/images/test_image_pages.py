"""Images in pages: saved ones come from here, others only for a reader who agreed, and none of them can do harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.running import Client, Running, running
from headwater import wire
from headwater.model import Image
from headwater.store.images import files, queue
from headwater.store.images.queue import ImageOutcome, SavedFile
from headwater.text import clean_html
from headwater.web.images import ShownImages
from images.painted import png
from support.posts import a_post
from webhooks.sending import a_reader

SPRING, LAKE = "https://spring.example/spring.png?a=1&b=2", "https://pictures.example/lake.png"
HASH = files.hash_of(png())


@pytest.fixture
def shown(sqlite_url: str, tmp_path: Path) -> Iterator[Running]:
    """A post with two pictures in its text, of which the first is saved, and one beside it."""
    with running(sqlite_url, HEADWATER_DATA_DIR=str(tmp_path), HEADWATER_IMAGES="on") as made:
        publish(made)
        yield made


def publish(headwater: Running) -> None:
    content = clean_html(f'<p><img src="{SPRING.replace("&", "&amp;")}" alt="Spring"> and <img src="{LAKE}"></p>', None)
    pictures = (Image(SPRING, "Spring"), Image(LAKE), Image("https://other.example/map.png", 'A "map" <b>'))
    headwater.publish(headwater.source(), a_post("1", content=content, images=pictures))
    save(headwater, "spring.example")


def save(headwater: Running, host: str) -> None:
    db, now = headwater.parts.db, headwater.parts.now()
    claims = db.write_now(
        queue.claim, db.read_now(queue.due, now, 10), now=now, lease="x", lease_for=now - now, gap=now - now
    )
    path = files.path_of(HASH, "png")
    files.save(wire.image_folder(headwater.parts.settings), path, png())
    for claim in claims:
        if claim.host == host:
            file = SavedFile(HASH, path, "image/png", len(png()), 4, 3)
            db.write_now(queue.record_outcome, claim, ImageOutcome("saved", file), now, 0.0)


@pytest.fixture
def reader(shown: Running) -> Client:
    return shown.browser()


def test_a_saved_picture_is_served_so_that_it_can_do_nothing(reader: Client) -> None:
    # H34, H63
    answer = reader.get(f"/images/{HASH}")
    assert (answer.status, answer.body) == (200, png())
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == f'inline; filename="{HASH[:16]}.png"'
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    again = reader.get(f"/images/{HASH}", If_None_Match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_only_readers_who_follow_a_source_that_shows_it_get_a_picture(shown: Running) -> None:
    assert shown.stranger.get(f"/images/{HASH}").status in (303, 401)
    other = shown.parts.db.write_now(a_reader, "other")
    shown.owner = other
    assert shown.browser().get(f"/images/{HASH}").status == 404


@pytest.mark.parametrize("name", ["0" * 64, HASH.upper(), "..%2F..%2Fheadwater.db", HASH[:-1]])
def test_names_that_are_no_picture_of_ours_open_nothing(reader: Client, name: str) -> None:
    # H51
    assert reader.get(f"/images/{name}").status in (404, 422)


def test_a_file_that_is_missing_is_said(shown: Running, reader: Client) -> None:
    files.delete(wire.image_folder(shown.parts.settings), files.path_of(HASH, "png"))
    assert reader.get(f"/images/{HASH}").status == 404


@pytest.mark.parametrize("path", ["/posts/1", "/posts/1/content"])
def test_a_page_names_no_other_server_until_the_reader_asks(reader: Client, path: str) -> None:
    # H59
    answer = reader.get(path)
    assert f'<img src="/images/{HASH}" alt="Spring" loading="lazy" width="4" height="3">' in answer.text
    assert 'src="http' not in answer.text
    assert '<span class="withheld" title="pictures.example">Image</span>' in answer.text
    assert '<span class="withheld" title="other.example">Image: A &quot;map&quot; &lt;b&gt;</span>' in answer.text
    assert '<a class="button" href="/posts/1?images=1">Show 2 images</a>' in answer.text
    assert "img-src 'self';" in answer.headers["content-security-policy"]


def test_a_reader_who_asks_gets_the_pictures_of_that_post_and_no_others(reader: Client) -> None:
    answer = reader.get("/posts/1?images=1")
    assert f'<img src="/images/{HASH}"' in answer.text
    assert f'<img src="{LAKE}" loading="lazy">' in answer.text
    assert "withheld" not in answer.text
    assert "img-src 'self' https: http:;" in answer.headers["content-security-policy"]
    assert "img-src 'self';" in reader.get("/").headers["content-security-policy"]


def test_remote_pictures_may_be_shown_at_once(sqlite_url: str, tmp_path: Path) -> None:
    with running(sqlite_url, HEADWATER_DATA_DIR=str(tmp_path), HEADWATER_REMOTE_IMAGES="show") as headwater:
        publish(headwater)
        answer = headwater.browser().get("/posts/1")
    assert f'<img src="{LAKE}" loading="lazy">' in answer.text
    assert "img-src 'self' https: http:;" in answer.headers["content-security-policy"]


def test_the_api_tells_what_became_of_each_picture(shown: Running) -> None:
    # B7
    program = shown.program()
    found = program.get("/api/posts/1/images").json()
    assert [(one["url"], one["state"]) for one in found["images"]] == [
        (SPRING, "saved"),
        (LAKE, "waiting"),
        ("https://other.example/map.png", "waiting"),
    ]
    first = found["images"][0]
    assert (first["content_hash"], first["size"], first["type"]) == (HASH, len(png()), "image/png")
    assert first["path"] == files.path_of(HASH, "png")
    assert program.get("/api/images").json() == {
        "waiting": 2,
        "saved": 1,
        "failed": 0,
        "skipped": 0,
        "bytes": len(png()),
    }
    assert program.get("/api/posts/99/images").status == 404


@pytest.mark.parametrize(
    "hostile",
    [
        '<img src="https://a.example/x" alt="&lt;script&gt;alert(1)&lt;/script&gt;">',
        "<img src='https://a.example/x' alt='\"><script>alert(1)</script>'>",
        '<img src="https://a.example/&quot;onerror=&quot;alert(1)" alt="x">',
        '<img src="https://[bad" alt="x">',
        '<img src="https://a.example/x" srcset="https://t.example/1x.gif 1x" onerror="alert(1)">',
        '<a href="https://b.example/"><img src="https://a.example/x"></a>',
    ],
)
def test_hostile_markup_stays_clean_however_pictures_are_shown(hostile: str) -> None:
    # H55, H56, H59, H60
    content = clean_html(hostile, "https://news.example/")
    for remote in (False, True):
        page = str(ShownImages([], remote).shown(content))
        assert "<script" not in page
        assert 'onerror="' not in page
        assert "srcset" not in page
        if not remote:
            assert "<img" not in page
            assert "https://a.example" not in page


def test_a_text_without_pictures_is_shown_as_it_is() -> None:
    content = "<p>Most rivers start as a spring.</p>"
    assert ShownImages([], remote=False).shown(content) == content
