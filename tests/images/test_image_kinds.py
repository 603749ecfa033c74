"""An image is what its first bytes say. Nothing else is saved."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.crawl.images import recognised
from headwater.errors import NotAnImage
from images.painted import HTML, SVG, avif, gif, jpeg, png, png_of_claimed_size, webp

KINDS = [
    (png(7, 5), "image/png", "png"),
    (gif(7, 5), "image/gif", "gif"),
    (jpeg(7, 5), "image/jpeg", "jpg"),
    (webp("VP8 ", 7, 5), "image/webp", "webp"),
    (webp("VP8L", 7, 5), "image/webp", "webp"),
    (webp("VP8X", 7, 5), "image/webp", "webp"),
    (avif(7, 5), "image/avif", "avif"),
]


@pytest.mark.parametrize(("data", "type", "extension"), KINDS)
def test_each_kind_is_recognised_with_its_size(data: bytes, type: str, extension: str) -> None:
    assert recognised(data) == (type, extension, 7, 5)


@pytest.mark.parametrize("data", [data for data, *_ in KINDS])
def test_a_file_that_ends_early_has_no_size_and_breaks_nothing(data: bytes) -> None:
    for end in range(12, len(data)):
        try:
            found = recognised(data[:end])
        except NotAnImage:
            continue
        assert (found.width, found.height) in ((None, None), (7, 5))


@given(st.sampled_from([data[:4] for data, *_ in KINDS] + [b"RIFF\0\0\0\0WEBPVP8 ", b"\xff\xd8\xff\xe0"]), st.binary())
def test_whatever_follows_a_beginning_is_read_or_refused(head: bytes, rest: bytes) -> None:
    with suppress(NotAnImage):
        assert recognised(head + rest).type.startswith("image/")


def test_jpeg_segments_without_end_are_given_up() -> None:
    assert recognised(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 1_000_000).width is None


def test_svg_is_refused_for_good() -> None:
    # H63
    with pytest.raises(NotAnImage, match="scripts") as refusal:
        recognised(SVG)
    assert refusal.value.facts["lasting"]


def test_a_page_instead_of_a_picture_may_be_a_picture_tomorrow() -> None:
    # H34
    with pytest.raises(NotAnImage, match="A page came") as refusal:
        recognised(HTML)
    assert not refusal.value.facts.get("lasting")


@pytest.mark.parametrize("data", [b"", b"MZ\x90\0", b"%PDF-1.7", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(NotAnImage):
        recognised(data)


def test_a_small_file_that_unpacks_to_billions_of_pixels_is_refused() -> None:
    with pytest.raises(NotAnImage, match="60,000 × 60,000"):
        recognised(png_of_claimed_size(60_000, 60_000))
