"""Two stories that turn out to be one become one; posts that only follow one pattern do not make them one."""

from __future__ import annotations

import pytest

from headwater.dedup.repeats import Posting, RepeatDecision
from headwater.dedup.stories import StoryIndex

DAM = (
    "Dam bursts above Halvorsen valley",
    "Halvorsen dam bursts, valley flooded",
    "Halvorsen valley flooded after dam bursts overnight",
)
COPPER = (
    "Copper prices jump on Lindal mine closure",
    "Lindal mine closure lifts copper prices",
    "Copper prices climb as Lindal mine stays closed",
)
BRIDGES = (
    "Halvorsen dam bursts, Lindal mine closure",
    "Lindal mine closed: Halvorsen valley flooded",
    "Halvorsen dam bursts, copper prices of Lindal",
    "Valley of Halvorsen flooded and Lindal mine closure",
)
ALL = (*DAM, *COPPER, *BRIDGES)
# Other posts, by which it is known that the words of the stories are rare.
OTHERS = tuple(f"item{n} about subject{n} and matter{n}" for n in range(600))


def index_of_others() -> StoryIndex:
    index = StoryIndex()
    index.add_many(
        Posting(-1 - n, title, created_at=1e9 + n / 100, source=1_000_000 + n) for n, title in enumerate(OTHERS)
    )
    return index


def told(*titles: str, source: int | None = None) -> list[Posting]:
    """Posts of a source of their own, unless one is named, a minute after each other."""
    return [
        Posting(number, title, created_at=1e9 + 60 * number, source=source or number)
        for number, title in enumerate(titles, 1)
    ]


def met(index: StoryIndex) -> list[tuple[int, int]]:
    return [(one.post, one.leader) for one in index.take_meetings()]


# C2
def test_two_stories_become_one_once_several_posts_could_be_in_either() -> None:
    index = index_of_others()
    index.add_many(told(*DAM, *COPPER))
    assert {index.story(post) for post in range(1, 7)} == {1, 4}
    assert met(index) == []
    index.add_many(told(*ALL)[6:])
    assert {index.story(post) for post in range(1, 11)} == {1}
    assert met(index) == [(4, 1)]  # the younger moved, and this is said once
    assert met(index) == []
    later = index.add(Posting(99, "Lindal mine closure: copper prices climb", created_at=1e9 + 900, source=99))
    assert isinstance(later, RepeatDecision)
    assert later.leader == 1


def test_one_bridge_is_not_enough() -> None:
    index = index_of_others()
    index.add_many(told(*DAM, *COPPER, BRIDGES[0]))
    assert met(index) == []
    assert {index.story(post) for post in range(1, 7)} == {1, 4}


# C2: one paper's series, and other papers that tell each event of it by the same pattern
def test_events_that_are_told_by_one_pattern_do_not_become_one() -> None:
    places = ("Halvorsen", "Brekke", "Lindal", "Osterby", "Tamsund", "Virrat", "Kolstad", "Mirador", "Sundvik")
    ways = (
        "Fire at the copper mine of {} stops all work until further notice",
        "Copper mine of {} on fire, all work stopped until further notice",
        "All work stopped at {} copper mine: fire until further notice",
    )
    posts = told(*(way.format(place) for way in ways for place in places))
    of_papers = [post._replace(source=1 + number // len(places)) for number, post in enumerate(posts)]
    index = index_of_others()
    index.add_many(of_papers)
    assert met(index) == []
    assert len({index.story(post.id) for post in posts}) == len(places)


# C5
def test_a_story_with_posts_that_were_told_apart_meets_no_other() -> None:
    index = index_of_others()
    index.keep_apart(2, 5)
    index.add_many(told(*ALL))
    assert met(index) == []
    assert index.story(2) != index.story(5)
    others = index_of_others()
    others.add_many(told(*DAM, *COPPER))
    others.keep_apart(2, 5)  # when both are known already
    others.add_many(told(*ALL)[6:])
    assert met(others) == []


def test_two_stories_of_one_and_the_same_source_stay_two() -> None:
    index = index_of_others()
    index.add_many(told(DAM[0], COPPER[0], source=7))
    index.add_many(
        Posting(10 + number, title, created_at=1e9 + 60 * number, source=7) for number, title in enumerate(BRIDGES)
    )
    assert met(index) == []


def test_stories_meet_alike_one_by_one_and_in_batches() -> None:
    at_once, one_by_one = index_of_others(), index_of_others()
    assert at_once.add_many(told(*ALL)) == [one_by_one.add(post) for post in told(*ALL)]
    assert met(at_once) == met(one_by_one) != []


@pytest.mark.parametrize("forgotten", range(1, 11))
def test_a_post_can_be_taken_out_after_stories_met(forgotten: int) -> None:
    index = index_of_others()
    posts = told(*ALL)
    index.add_many(posts)
    index.forget(posts[forgotten - 1])
    assert index.story(forgotten) is None
    rest = {post.id for post in posts} - {forgotten}
    assert {index.story(post) for post in rest} == {min(rest)}


def test_what_met_is_found_after_the_memory_grew() -> None:
    index = index_of_others()
    index.add_many(told(*ALL))
    filler = (
        Posting(1000 + n, f"filler{n} words{n} about{n}", created_at=1e9 + 700, source=1000 + n) for n in range(9000)
    )
    index.add_many(filler)
    assert {index.story(post) for post in range(1, 11)} == {1}
    later = index.add(Posting(99, "Lindal mine closure: copper prices climb", created_at=1e9 + 900, source=99))
    assert isinstance(later, RepeatDecision)
    assert later.leader == 1
