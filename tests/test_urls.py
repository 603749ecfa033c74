"""Addresses: which we accept, how they are written down, and when two of them are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import urls
from headwater.errors import BadAddress


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080/", "http://example.com:8080/"),
        ("https://example.com./feed", "https://example.com/feed"),
        ("https://bücher.example/ä?q=ü", "https://xn--bcher-kva.example/%C3%A4?q=%C3%BC"),
        ("http://[::0001]:8080/x", "http://[::1]:8080/x"),
        (
            "https://user:secret@example.com/feed",
            "https://user:secret@example.com/feed",
        ),  # H16: kept for whoever encrypts it
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),  # H7: the guard then sees what would be connected to
    ],
)
def test_an_address_has_one_way_of_being_written(written: str, canonical: str) -> None:
    assert urls.canonical(written) == canonical
    assert urls.canonical(canonical) == canonical


@pytest.mark.parametrize(
    "address",
    [
        "http://good.example\\@evil.example/",  # H8
        "http://a@b@evil.example/",  # H8
        "http://evil.example%2f@good.example%00/",  # H8
        "http://a..example/",  # H7
        "http://exa mple.example/",
        "http://\u2025.example/",  # H7
        "file:///etc/passwd",  # H13
        "file:/etc/passwd",  # H13
        "source:file:///etc/passwd",  # H13
        "gopher://example.com/",  # H13
        "javascript:alert(1)",
        "http://example.com/\r\nX-Header: 1",  # H18
        "http://example.com/\tx",  # H18
        "http://example.com/\0",  # H18
        "http://example.com/" + "a" * 1_000_000,  # H19
        "http://example.com:99999/",
        "http://[::1%25eth0]/",
        "http://[::zz]/",
        "http:///path",
        "//example.com/",
        "example.com",
        "",
    ],
)
def test_an_address_that_two_programs_could_read_differently_is_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        urls.canonical(address)


@given(st.text(max_size=200) | st.text(max_size=60).map(lambda text: f"http://{text}"))
def test_any_text_is_an_address_for_good_or_is_refused(text: str) -> None:
    try:
        address = urls.canonical(text)
    except BadAddress:
        return
    assert address.isascii()
    assert urls.canonical(address) == address


@pytest.mark.parametrize(
    ("link", "base", "safe"),
    [
        ("https://a.example/x?y=1#z", None, "https://a.example/x?y=1#z"),
        ("/x", "https://a.example/b/c", "https://a.example/x"),
        ("x", "https://a.example/b/c", "https://a.example/b/x"),
        ("//b.example/x", "https://a.example/", "https://b.example/x"),
        ("  https://a.example/with space ", None, "https://a.example/with%20space"),
        ('https://a.example/"><script>', None, "https://a.example/%22%3E%3Cscript%3E"),
        ("magnet:?xt=urn:btih:1", None, "magnet:?xt=urn:btih:1"),
        ("mailto:a@b.example", None, "mailto:a@b.example"),
        ("https://a.example/ü", None, "https://a.example/ü"),
    ],
)
def test_a_link_is_made_absolute_and_harmless(link: str, base: str | None, safe: str) -> None:
    assert urls.safe_link(link, base) == safe


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",  # H48
        " JaVaScRiPt:alert(1)",  # H48
        "java\nscript:alert(1)",  # H48
        "\x01javascript:alert(1)",  # H48
        "java\u200bscript:alert(1)",  # H48
        "data:text/html,<script>",  # H48
        "vbscript:x",
        "file:///etc/passwd",
        "http:\\\\evil.example\\x",
        "http://[bad",
        "https://",
        "x" * 10_000,
        "",
        None,
    ],
)
def test_a_link_that_could_run_or_mislead_is_none(link: str | None) -> None:
    assert urls.safe_link(link, "https://a.example/") is None


@given(st.text(max_size=100), st.sampled_from([None, "https://a.example/b/", "nonsense"]))
def test_whatever_is_written_a_safe_link_has_a_safe_scheme_and_nothing_that_ends_an_attribute(
    link: str, base: str | None
) -> None:
    safe = urls.safe_link(link, base)
    if safe is not None:
        assert safe.partition(":")[0].lower() in urls.LINK_SCHEMES
        assert not set(safe) & set('"<>` \n\t\r\0')
        safe.encode()


def test_tracking_parameters_go_and_others_stay_in_their_order() -> None:
    assert (
        urls.without_tracking("https://a.example/x?b=2&utm_source=rss&a=1&fbclid=zz&mc_cid=1#part")
        == "https://a.example/x?b=2&a=1#part"
    )
    assert urls.without_tracking("https://a.example/x?utm_source=rss") == "https://a.example/x"
    assert urls.without_tracking("https://a.example/x?a=1") == "https://a.example/x?a=1"


@pytest.mark.parametrize(
    "other",
    [
        "http://a.example/story",
        "https://www.a.example/story/",
        "https://a.example:443/story",
        "https://a.example/story?utm_source=rss&gclid=1",
        "https://A.EXAMPLE/story#comments",
        " https://a.example./story ",
    ],
)
def test_an_article_that_moved_is_the_same_article(other: str) -> None:
    assert urls.identity(other) == urls.identity("https://a.example/story")


@pytest.mark.parametrize(
    "other",
    [
        "https://a.example/story2",
        "https://b.example/story",
        "https://a.example/story?id=2",
        "https://a.example/story#!/2",
    ],
)
def test_another_article_is_another_article(other: str) -> None:
    assert urls.identity(other) != urls.identity("https://a.example/story")


@given(st.text(max_size=100))
def test_every_text_has_an_identity(text: str) -> None:
    assert isinstance(urls.identity(text), str)
    assert isinstance(urls.without_tracking(text), str)
