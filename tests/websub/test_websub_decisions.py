"""The pure decisions: how far a hub is trusted, how long it is left alone, which signature is right."""

from __future__ import annotations

import hmac
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from headwater.crawl.record import heard_in
from headwater.follow.push import is_signed
from headwater.model import Facts, SavedVisit, StoredPost
from headwater.store.sources.hubs import MOST_TRUST, HubReport, retry_after, trust_after
from support.posts import a_post, a_visit

HUB = "https://hub.example/"
counts = st.integers(0, 1000)


def a_saved_visit(*new: str, accepted: bool = True, **facts: str) -> SavedVisit:
    posts = [a_post(id) for id in new]
    visit = a_visit(1, "lease", posts, facts=Facts(**facts) if facts else None)  # type: ignore[arg-type]
    stored = [StoredPost(place, "new", 1, post) for place, post in enumerate(posts)]
    return SavedVisit(visit, "https://news.example/feed", accepted, "ok", stored, bool(new))


@given(st.integers(1, MOST_TRUST), counts, counts)
def test_trust_stays_between_one_and_the_most(trust: int, brought: int, missed: int) -> None:
    assert 1 <= trust_after(trust, brought=brought, missed=missed) <= MOST_TRUST


@given(st.integers(1, MOST_TRUST), st.integers(1, 1000))
def test_a_push_that_brings_something_raises_trust_and_a_miss_halves_it(trust: int, posts: int) -> None:
    assert trust_after(trust, brought=posts) == min(trust + 1, MOST_TRUST)
    assert trust_after(trust, missed=posts) == max(trust // 2, 1)


def test_a_push_that_brings_nothing_and_a_poll_that_finds_nothing_leave_trust_as_it_is() -> None:
    assert [trust_after(trust) for trust in range(1, MOST_TRUST + 1)] == list(range(1, MOST_TRUST + 1))


@given(st.integers(0, 10_000))
def test_a_hub_is_left_alone_longer_with_each_failure_and_never_for_good(failures: int) -> None:
    assert timedelta(minutes=5) <= retry_after(failures) <= retry_after(failures + 1) <= timedelta(days=1)


@given(st.binary(max_size=300), st.text(max_size=80))
def test_no_other_text_than_the_signature_is_taken_for_it(body: bytes, text: str) -> None:
    assert not is_signed(body, "secret", {"x-hub-signature": text})
    right = f"sha512={hmac.digest(b'secret', body, 'sha512').hex()}"
    assert is_signed(body, "secret", {"x-hub-signature": right})
    assert not is_signed(body + b".", "secret", {"x-hub-signature": right})


def test_a_visit_tells_the_hub_its_page_offers_and_what_it_found_itself() -> None:
    topic = "https://news.example/feed"
    assert heard_in(a_saved_visit("1", hub="HTTPS://Hub.example")) == HubReport(1, HUB, topic, 1)
    assert heard_in(a_saved_visit(hub=HUB, self_url="https://news.example/?feed")) == HubReport(
        1, HUB, "https://news.example/?feed", 0
    )
    assert heard_in(a_saved_visit("1", "2", title="x")) == HubReport(1, None, topic, 2)
    assert heard_in(a_saved_visit(hub="mailto:x@y.example")) is None
    assert heard_in(a_saved_visit()) is None
    assert heard_in(a_saved_visit("1", hub=HUB, accepted=False)) is None


def test_the_password_in_an_address_is_not_told_to_a_hub() -> None:  # H16
    assert heard_in(a_saved_visit(hub=HUB, self_url="https://user:word@news.example/feed")) is None
