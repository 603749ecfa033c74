"""The simulated newsroom: the same seed tells the same, and each story in several places."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest

from headwater.dedup.engine import Engine
from headwater.fleet.mentions import model_name, vocabulary
from headwater.model import PostText
from headwater.sim import news_world
from headwater.sim.fleet import MACHINES
from headwater.sim.internet import PLACES, RHYTHM, _as_article, _as_thread, internet
from headwater.sim.newsroom import CHATTER, FRAMES, MINING, history, told_in
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
    assert len(by_story) == len(FRAMES) + len(MINING)
    for tellings in by_story.values():
        places = [telling.place for telling in tellings]
        assert len(places) == len(set(places))
        assert {place.lang for place in places} == {"en", "zh"}
    assert any(telling.edited for telling in told)
    assert any(telling.title.startswith(("BREAKING: ", "Just in: ")) for telling in told)
    assert sum(telling.story is None for telling in told) == len(CHATTER)
    assert [telling.at for telling in told] == sorted(telling.at for telling in told)
    assert sum(len(told_in(place, told)) for place in PLACES) == len(told)


@pytest.mark.parametrize("seed", range(1, 21))
def test_from_the_first_minute_there_is_news_of_what_the_demo_s_operator_has(seed: int) -> None:  # F5
    looked_for = vocabulary([(one.model, "") for one in MACHINES])
    owned = {("coin", "Bitcoin"), *(("model", model_name(one.model)) for one in MACHINES)}
    begins = [one for one in history(PLACES, NOON, HOUR, seed, RHYTHM) if one.at <= NOON + RHYTHM.spread]

    found = [one for telling in begins for one in looked_for.mentions(f"{telling.title}\n{telling.text}")]
    named = {(one.subject.kind, one.subject.name) for one in found}

    assert ("model", "Antminer S21 Pro") in named & owned
    assert ("coin", "Bitcoin") in named & owned


def shown_by_sites(seed: int) -> list[tuple[PostText, tuple[int, str] | None]]:
    """Returns what the demo's sites show, oldest first, each with the story that it tells and its language."""
    shown = []
    for number, place in enumerate(PLACES):
        for one in told_in(place, history(PLACES, NOON, HOUR, seed, RHYTHM)):
            truth = None if one.story is None else (one.story, place.lang)
            title, text = one.title, one.text
            if place.kind == "news":
                text = " ".join(part.strip() for part in _as_article(one).versions[0].paragraphs)
            if place.kind == "x":
                title, text = "", f"{title}\n\n{text}"
            shown.append((title, text, one.at, number, truth))
            if place.kind == "forum":
                replies = _as_thread(place.name, one, place.lang).posts[1:]
                shown += [(f"Re: {title}", reply.versions[0].text, reply.created_at, number, None) for reply in replies]
        if place.kind == "news":
            for older in news_world.simulated(before=12, after=0, begins=NOON, language=place.lang).articles:
                version = older.versions[0]
                shown.append((version.title, " ".join(version.paragraphs), older.published_at, number, None))
    shown.sort(key=lambda post: post[2])
    return [
        (PostText(id, source + 1, title, text, None, at), truth)
        for id, (title, text, at, source, truth) in enumerate(shown, 1)
    ]


# F6, C2: what a newcomer sees in the first minute is right
@pytest.mark.parametrize("seed", range(1, 21))
def test_every_story_of_the_demo_folds_as_it_was_told_and_nothing_else_does(seed: int) -> None:
    engine, group = Engine(window_seconds=72 * 3600), {}
    stories: dict[tuple[int, str], set[int]] = defaultdict(set)
    for post, truth in shown_by_sites(seed):
        [found] = engine.decide([post])
        group[post.id] = group[found.with_id] if found else post.id
        if truth:
            stories[truth].add(post.id)
    folded = defaultdict(set)
    for post_id, leader in group.items():
        folded[leader].add(post_id)
    told = {frozenset(posts) for posts in stories.values() if len(posts) > 1}
    assert {frozenset(posts) for posts in folded.values() if len(posts) > 1} == told


def test_the_whole_internet_is_on_loopback_and_has_every_kind_of_source() -> None:
    with internet() as there:
        assert {site.kind for site in there.sites} == {"rss", "reddit", "forum", "news", "x", "market"}
        addresses = [site.address for site in there.sites if site.address.startswith("http")]
        assert all(address.startswith("http://127.0.0.1:") for address in addresses)
        assert all(str(there.settings[name]).startswith("http://127.0.0.1:") for name in ("reddit_url", "x_api_url"))
