"""The decision about stories as it is meant: no index, no bounds, every story looked at. Slow, and easy to read."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from unicodedata import normalize

from headwater.dedup import normal as lists
from headwater.dedup import story_rules
from headwater.dedup.normal import CJK, COMMON, normal, spelled
from headwater.dedup.repeats import Posting
from headwater.dedup.story_rules import StoryRules

LINK = re.compile(r"https?:\S+|www\.\S+")
SIGN = re.compile(f"[{CJK}]")
# Before a post was seen, each word is thought to be in so many; after so many posts, in half as many.
UNKNOWN, FEW_SEEN = 15.0, 100.0
LISTED = lists.EVERYDAY | lists.OCCASIONS
EVERYDAY = LISTED | {word.removesuffix("s") for word in LISTED}
# Dots that set thousands apart make no version.
VERSION = re.compile(r"(?!\d+(\.\d{3})+$)\d+(\.\d+){2,}")
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


def terms_of(title: str, text: str) -> dict[str, float]:
    """The terms of a post, each with what it counts by where it stands. Without a title the text is one."""
    lead = LINK.sub(" ", normalize("NFKC", text[: story_rules.LEAD]).lower())
    of_title, of_lead = terms_in(normal(title).core), terms_in(spelled(lead))
    if not of_title:
        return dict.fromkeys(of_lead[: story_rules.MOST_TERMS], story_rules.TITLE_WEIGHT)
    of_both = dict.fromkeys(of_title, story_rules.TITLE_WEIGHT)
    of_both |= dict.fromkeys((term for term in of_lead if term not in of_both), story_rules.LEAD_WEIGHT)
    return dict(list(of_both.items())[: story_rules.MOST_TERMS])


def terms_in(core: str) -> list[str]:
    """Stems as they come, neighbouring signs in pairs. A sign that stands alone is nothing."""
    terms = []
    before = ""
    for word in core.split():
        is_sign = bool(SIGN.fullmatch(word))
        term = before + word if is_sign else stem(word)
        if is_sign and not before:
            term = ""
        before = word if is_sign else ""
        if term and term not in COMMON and (len(term) > 1 or term.isdigit()):
            terms.append(term)
    return list(dict.fromkeys(terms))


def language(title: str, text: str) -> int:
    """The language that most words mark, if they are two and more than mark any other; 0 if nobody knows."""
    lead = LINK.sub(" ", normalize("NFKC", text[: story_rules.LEAD]).lower())
    words = [word for word in (*normal(title).core.split(), *spelled(lead).split()) if len(word) > 1]
    marks = [sum(word in listed.split() for word in words) for listed in story_rules.LANGUAGES]
    second, most = sorted(marks)[-2:]
    return marks.index(most) + 1 if most >= 2 and most > second else 0


def is_unlisted(title: str, text: str) -> bool:
    """Whether a post has many words and hardly one of them is a small word that we know."""
    lead = LINK.sub(" ", normalize("NFKC", text[: story_rules.LEAD]).lower())
    words = [word for word in (*normal(title).core.split(), *spelled(lead).split()) if not SIGN.fullmatch(word)]
    some = [word for word in words if len(word) > 1 or word.isdigit()]
    is_marked = any(word in listed.split() for word in some for listed in story_rules.LANGUAGES)
    return len(some) >= 8 and not is_marked and sum(word in COMMON for word in some) <= 1


def stem(word: str) -> str:
    """The word without the ending of a plural or of a verb's third person, if it is an English one and not short."""
    if word in COMMON or len(word) < 4 or not word.endswith("s") or not word.isascii():
        return word
    if word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def evidence(term: str) -> float:
    if len(term) == 2 and SIGN.match(term):
        return story_rules.PAIR_EVIDENCE
    if term[0].isdigit():
        return story_rules.NUMBER_EVIDENCE
    if term in EVERYDAY or (len(term) >= 6 and term.endswith("day")):
        return story_rules.EVERYDAY_EVIDENCE
    return (
        story_rules.PHRASE_EVIDENCE
        if len(term) >= story_rules.PHRASE_LETTERS and UNSPACED.match(term)
        else story_rules.WORD_EVIDENCE
    )


@dataclass
class Story:
    leader: int
    first: float
    posts: int = 0
    language: int = 0
    weights: Counter[str] = field(default_factory=Counter)


class ReferenceStories:
    def __init__(self, rules: StoryRules) -> None:
        self.rules = rules
        self.seen: Counter[str] = Counter()
        self.posts = self.joined = 0
        self.stories: list[Story] = []

    def add(self, post: Posting) -> tuple[int, float]:
        """The post that leads the story, itself if it is new, and the score."""
        terms = terms_of(post.title, post.text)
        weights, spoken = self.weighed(terms), language(post.title, post.text)
        unlisted = is_unlisted(post.title, post.text)
        compared = [
            (*self.compared(terms, weights, story, post.created_at, unlisted), story)
            for story in self.stories
            if 0 in (spoken, story.language) or spoken == story.language
        ]
        highest = max((likeness for likeness, _, _ in compared), default=0.0)
        least = highest * (self.rules.nearly + (1 - self.rules.nearly) * min(highest, 1.0))
        score, story = max(
            ((score, story) for likeness, score, story in compared if likeness >= least),
            key=lambda found: found[0],
            default=(0.0, None),
        )
        if story is None or score < self.rules.threshold:
            score, story = 0.0, Story(post.id, post.created_at)
            self.stories.append(story)
        else:
            self.joined += 1
        story.posts += 1
        story.language = story.language or spoken
        story.weights.update(weights)
        self.seen.update(list(terms))
        self.posts += 1
        return story.leader, score

    def weighed(self, terms: dict[str, float]) -> dict[str, float]:
        total = self.posts + self.rules.background
        raw = {term: stood * math.log(total / (self.seen[term] + 1)) for term, stood in terms.items()}
        length = math.sqrt(sum(weight * weight for weight in raw.values()))
        return {term: weight / length for term, weight in raw.items()}

    def told(self, terms: dict[str, float], shared: list[str], posts: int, unlisted: bool) -> float:
        """The evidence of shared words that are neither everyday nor parts of one name."""
        rules, told, before = self.rules, 0.0, False
        most = min(max(rules.everyday_share * len(self.stories), rules.least_everyday), rules.most_everyday)
        for term in terms:
            value = evidence(term)
            if value == story_rules.EVERYDAY_EVIDENCE:
                value = min(rules.everyday + posts / rules.everyday_posts, 1.0)
            if sum(story.weights[term] > 0 for story in self.stories) > most:
                value = 0.0
            if unlisted and self.posts < FEW_SEEN and len(shared) < 0.7 * len(terms) and len(term) <= 5:
                value *= 0.25 if len(term) > 3 else 0.0
            if (
                before
                and self.posts < FEW_SEEN
                and len(shared) < 0.7 * len(terms)
                and evidence(term) != story_rules.PAIR_EVIDENCE
            ):
                value *= rules.side_by_side
            told += value if term in shared else 0.0
            before = term in shared
        return told

    def compared(
        self, terms: dict[str, float], weights: dict[str, float], story: Story, time: float, unlisted: bool
    ) -> tuple[float, float]:
        """How like a story a post is, and how probable it is that it belongs to it; 0 if it may not."""
        rules = self.rules
        shared = [term for term in weights if story.weights[term] > 0]
        if story.posts >= rules.most_posts or abs(time - story.first) > rules.window:
            return 0.0, 0.0
        if sum(map(evidence, shared)) < rules.least_evidence:
            return 0.0, 0.0
        signs = sum(evidence(term) == story_rules.PAIR_EVIDENCE for term in weights) / len(weights)
        asked = 1.0 if self.posts < FEW_SEEN else signs
        least = rules.least_evidence + asked * (rules.least_at_first - rules.least_evidence)
        if self.told(terms, shared, story.posts, unlisted) < least:
            return 0.0, 0.0
        versions = {term for term in terms if VERSION.fullmatch(term) and terms[term] == story_rules.TITLE_WEIGHT}
        if versions and not versions & set(shared):
            return 0.0, 0.0
        share = min(max((len(weights) - rules.few_terms) / (rules.many_terms - rules.few_terms), 0.0), 1.0)
        likeness = sum(weights[term] * story.weights[term] for term in shared)
        length = math.sqrt(sum(weight * weight for weight in story.weights.values()))
        value = likeness / (length ** (1 - share) * story.posts**share)
        asked = rules.short + (rules.long + (rules.signs - rules.long) * signs - rules.short) * share
        if value < asked:
            return 0.0, 0.0
        likeness = min(value, 1.0) ** (math.log(0.5) / math.log(asked))
        # About so many posts of the story have each shared term, and so many others.
        seen = {term: self.seen[term] + UNKNOWN / (1 + self.posts / FEW_SEEN) for term in shared}
        inside = {term: max(min(story.weights[term] / weights[term], seen[term]), 1.0) for term in shared}
        outside = sorted(max(seen[term] - inside[term], 0.0) for term in shared if evidence(term) > 0)
        specific = sum(
            terms[term] * (min(evidence(term), 1.0) or 0.25) * inside[term] / (seen[term] + 1) for term in shared
        ) / sum(map(evidence, shared))
        words = math.log(sum(map(evidence, shared)))
        logs = [
            math.log(likeness / (1.001 - likeness)),
            words,
            math.log(story.posts),
            math.log(len(weights)),
            math.log(story.posts) * words,
            math.log(1 + min(outside[1] if len(outside) > 1 else 150.0, 150.0)),
            min(specific, 1.0),
            # How much more seldom posts join a story than usual: one in four, as of 200 posts.
            min(math.log((self.joined + 50) / (self.posts - self.joined + 150)) - math.log(1 / 3), 0.0),
        ]
        base, *by = (
            short + share * (1 - signs) * (long - short)
            for short, long in zip(rules.odds, rules.long_odds, strict=True)
        )
        odds = base + sum(weight * log for weight, log in zip(by, logs, strict=True))
        return value, 1 / (1 + math.exp(-odds))
