"""Who told a story first (F8): by the date of a post where it can be believed, otherwise by when it was first seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headwater.dedup.first import FAR, SLACK, Appearance, first, leads, told

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
MINUTES = st.integers(-5000, 5000).map(lambda minutes: NOON + timedelta(minutes=minutes))
APPEARANCES = st.lists(
    st.builds(
        Appearance,
        post_id=st.integers(1, 10_000),
        source_id=st.integers(1, 5),
        claimed_at=MINUTES | st.none(),
        seen_at=MINUTES,
        missed_at=MINUTES | st.none(),
    ),
    max_size=8,
    unique_by=lambda one: one.post_id,
)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_the_earliest_date_wins_although_it_arrived_later() -> None:  # F8
    found = first([Appearance(1, 1, at(0), at(1), at(-30)), Appearance(2, 2, at(-14), at(40), at(-20))])
    assert found is not None
    assert (found.telling.post_id, found.telling.is_claimed, found.lead) == (2, True, timedelta(minutes=14))


def test_a_date_before_a_visit_that_did_not_show_the_post_is_not_believed() -> None:  # F8
    honest = Appearance(1, 1, at(0), at(1), at(-30))
    copy = Appearance(2, 2, at(-120), at(40), at(30))  # visited at +30, and it was not there
    found = first([honest, copy])
    assert found is not None
    assert (found.telling.post_id, found.lead) == (1, timedelta(minutes=40))


def test_a_date_that_is_older_than_the_story_by_far_is_not_believed() -> None:  # F8
    story = [Appearance(n, n, at(n), at(n + 1), None) for n in (1, 2, 3)]
    [winner, *_] = told([*story, Appearance(9, 9, at(-60 * 40), at(20), None)])
    assert winner.post_id == 1
    [winner, *_] = told([Appearance(1, 1, at(-60 * 40), at(0), None), Appearance(2, 2, at(-60 * 39), at(0), None)])
    assert (winner.post_id, winner.is_claimed) == (1, True), "an import of old posts: both are as old"


def test_a_date_in_the_future_or_none_counts_as_when_it_was_seen() -> None:  # F8
    tellings = told([Appearance(1, 1, at(600), at(5), None), Appearance(2, 2, None, at(3), None)])
    assert [(one.post_id, one.at, one.is_claimed) for one in tellings] == [(2, at(3), False), (1, at(5), False)]


def test_sources_are_compared_over_stories_that_several_told() -> None:  # F8
    stories = [[Appearance(n, 1, at(0), at(1), None), Appearance(n + 50, 2, at(n), at(n), None)] for n in (2, 4, 6)]
    stories.append([Appearance(99, 2, at(0), at(1), None)])
    stories.append([Appearance(97, 2, at(0), at(1), None), Appearance(98, 1, at(10), at(11), None)])
    one, two = leads(stories)
    assert one == (1, 4, 3, timedelta(minutes=4))
    assert two == (2, 4, 1, timedelta(minutes=10))


@given(APPEARANCES)
def test_every_telling_has_a_time_that_its_post_gives_reason_for(appearances: list[Appearance]) -> None:
    tellings = told(appearances)
    assert [one.at for one in tellings] == sorted(one.at for one in tellings)
    assert sorted(one.post_id for one in tellings) == sorted(one.post_id for one in appearances)
    by_id = {one.post_id: one for one in appearances}
    for one in tellings:
        post = by_id[one.post_id]
        assert one.at == (post.claimed_at if one.is_claimed else post.seen_at)
        if one.is_claimed and post.missed_at is not None:
            assert one.at >= post.missed_at - SLACK
    if len(tellings) > 1 and tellings[0].is_claimed:
        assert tellings[1].at - tellings[0].at <= FAR


@given(APPEARANCES)
def test_nobody_gets_ahead_by_a_date_from_before_a_visit(appearances: list[Appearance]) -> None:
    lying = Appearance(20_000, 77, at(-5000), at(6000), at(5900))
    assert next(one for one in told([*appearances, lying]) if one.post_id == 20_000).at == lying.seen_at


@given(APPEARANCES)
def test_the_order_of_the_posts_does_not_matter(appearances: list[Appearance]) -> None:
    assert told(appearances) == told(appearances[::-1])
    found = first(appearances)
    assert (found is None) == (not appearances)
    assert found is None or found.lead is None or found.lead >= timedelta(0)
