"""The simulated newsroom: the same seed tells the same, and each story in several places."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from headwater.dedup.engine import Engine
from headwater.model import PostText
from headwater.sim.internet import PLACES, internet
from headwater.sim.newsroom import CHATTER, FRAMES, history, told_in
from support.posts import NOON

HOUR = timedelta(hours=1)


def test_a_seed_decides_what_happens() -> None:
    assert history(PLACES, NOON, HOUR, seed=3) == history(PLACES, NOON, HOUR, seed=3)
    assert history(PLACES, NOON, HOUR, seed=3) != history(PLACES, NOON, HOUR, seed=4)


def test_each_event_is_told_in_several_places_once_in_each_with_reposts_edits_and_noise() -> None:
    told = history(PLACES, NOON, HOUR, seed=1)
    by_story = defaultdict(list)
    for telling in told:
        if telling.story is not None:
            by_story[telling.story].append(telling)
    assert len(by_story) == len(FRAMES)
    for tellings in by_story.values():
        places = [telling.place for telling in tellings]
        assert len(places) == len(set(places))
        assert {place.lang for place in places} == {"en", "zh"}
    assert any(telling.edited for telling in told)
    assert any(telling.title.startswith(("BREAKING: ", "Just in: ")) for telling in told)
    assert sum(telling.story is None for telling in told) == len(CHATTER)
    assert [telling.at for telling in told] == sorted(telling.at for telling in told)
    assert sum(len(told_in(place, told)) for place in PLACES) == len(told)


def test_folding_finds_the_stories_in_what_is_told() -> None:
    told = history(PLACES, NOON, HOUR, seed=1)
    engine, story_of, folded = Engine(window_seconds=72 * 3600), {}, 0
    for telling in told:
        source = PLACES.index(telling.place) + 1
        [found] = engine.decide([PostText(telling.id, source, telling.title, telling.text, None, telling.at)])
        story_of[telling.id] = telling.story
        if found:
            folded += 1
            assert telling.story is not None, f"noise was folded: {telling.title}"
            assert story_of[found.with_id] == telling.story, f"{telling.title} is another story"
    assert folded >= 0.8 * (sum(telling.story is not None for telling in told) - 2 * len(FRAMES))


def test_the_whole_internet_is_on_loopback_and_has_every_kind_of_source() -> None:
    with internet() as there:
        assert {site.kind for site in there.sites} == {"rss", "reddit", "forum", "news", "x"}
        addresses = [site.address for site in there.sites if site.address.startswith("http")]
        assert all(address.startswith("http://127.0.0.1:") for address in addresses)
        assert all(str(there.settings[name]).startswith("http://127.0.0.1:") for name in ("reddit_url", "x_api_url"))
