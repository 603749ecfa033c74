"""The decision about stories as it is meant: no index, no bounds, every story looked at. Slow, and easy to read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from headwater.dedup.index import Posting
from headwater.dedup.stories_kernel import Rules
from headwater.dedup.stories_terms import LEAD_WEIGHT, TITLE_WEIGHT, Vocabulary


@dataclass
class Story:
    leader: int
    first: float
    posts: int = 0
    weights: Counter[int] = field(default_factory=Counter)


class ReferenceStories:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.vocabulary = Vocabulary()
        self.seen: Counter[int] = Counter()
        self.posts = 0
        self.stories: list[Story] = []

    def add(self, post: Posting) -> tuple[int, float]:
        """The post that leads the story, itself if it is new, and the score."""
        terms, in_title = self.vocabulary.read(post.title, post.text)
        weights = self.weighed(list(terms), in_title)
        score, story = max(
            ((self.score(weights, story, post.created_at), story) for story in self.stories),
            key=lambda found: found[0],
            default=(0.0, None),
        )
        if story is None or score < self.rules.threshold:
            score, story = 0.0, Story(post.id, post.created_at)
            self.stories.append(story)
        story.posts += 1
        story.weights.update(weights)
        self.seen.update(list(terms))
        self.posts += 1
        return story.leader, score

    def weighed(self, terms: list[int], in_title: int) -> dict[int, float]:
        stood = [TITLE_WEIGHT] * in_title + [LEAD_WEIGHT] * (len(terms) - in_title)
        total = self.posts + self.rules.background
        raw = {term: at * math.log(total / (self.seen[term] + 1)) for term, at in zip(terms, stood, strict=True)}
        length = math.sqrt(sum(weight * weight for weight in raw.values()))
        return {term: weight / length for term, weight in raw.items()}

    def score(self, weights: dict[int, float], story: Story, time: float) -> float:
        rules = self.rules
        shared = [term for term in weights if story.weights[term] > 0]
        evidence = sum(self.vocabulary.evidence(0)[term] for term in shared)
        if story.posts >= rules.most_posts or abs(time - story.first) > rules.window:
            return 0.0
        if not shared or (story.posts < rules.small_story and evidence < rules.least_evidence):
            return 0.0
        share = min(max((len(weights) - rules.few_terms) / (rules.many_terms - rules.few_terms), 0.0), 1.0)
        likeness = sum(weights[term] * story.weights[term] for term in shared)
        length = math.sqrt(sum(weight * weight for weight in story.weights.values()))
        value = likeness / (length ** (1 - share) * story.posts**share)
        asked = rules.short + (rules.long - rules.short) * share
        return min(value, 1.0) ** (math.log(0.5) / math.log(asked))
