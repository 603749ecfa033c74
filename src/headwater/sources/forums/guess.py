"""Posts on a page of software that we do not know: found by what repeats.

    every element -> how much it says -> groups that share a class -> the group that looks most like posts -> posts

What people wrote is the text that repeats under one class, is not made of links, and has a name and a date beside it.
The element of a post is the largest one around its text that has no other post's text in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from headwater.model import Item, Page, Post
from headwater.sources.forums.dates import moment_of
from headwater.sources.forums.page import HtmlPage
from headwater.sources.forums.profile import Profile
from headwater.sources.forums.threads import (
    MAX_POSTS,
    Thread,
    Told,
    content_of,
    facts_of,
    next_page,
    post_of,
    thread_on,
)
from headwater.sources.forums.tree import Tree

GUESSED = Profile("guessed", title="h1", dropped="[class*='signature'], [class*='Signature']")
_FEW_LETTERS = 12  # on average: less is a label or a count
_LONG = 150  # letters: an opening post is more than a line
_CLIMB = 12  # elements between a post's text and its own element; more is the page's frame

_SAYS = re.compile(
    r"body|content|text|message|msg|(?<!col-)\bmd\b(?!-\d)|prose|markdown|comment|cooked|itemprop", re.IGNORECASE
)
_NEVER = re.compile(
    r"head|meta|author|user|date|time|sign|quote|foot|button|btn|tool|menu|nav|side|relat|breadcrumb|avatar|title|share"
    r"|action|vote|badge|link|icon|label|card-?list|teaser|snippet|promo|advert|\bad\b|cookie|modal|sponsor|recommend",
    re.IGNORECASE,
)
_FRAME = frozenset({"html", "body", "main"})
_ID_ATTRIBUTES = ("data-post-id", "data-comment-id", "data-pid", "data-id", "id", "name")
_META = "header, footer, time, [class*='author'], [class*='user'], [class*='avatar'], [class*='button']"
_NUMBER = re.compile(r"(\d{1,20})\D*$")


def read_guessed(page: HtmlPage, item: Item, zone: int | None) -> Page | None:
    """The posts of a thread's page, found by what repeats on it; None where nothing looks like posts."""
    tree = Tree(page.root)
    group = _likeliest(tree)
    if not group:
        return None
    thread = thread_on(page, GUESSED, item, zone)
    following = next_page(page, GUESSED)
    posts = _posts(thread, tree, group[:MAX_POSTS])
    return Page(posts, following, facts_of(thread, truncated=len(group) > MAX_POSTS)) if posts else None


def _likeliest(tree: Tree) -> list[int]:
    groups: dict[str, list[int]] = {}
    for index, element in enumerate(tree.elements):
        for name in element.classes:
            groups.setdefault(name, []).append(index)
    best: list[int] = []
    best_score = 0.0
    for name, group in groups.items():
        outer = _not_nested(tree, group)
        score = _score(tree, name, outer)
        if score > best_score:
            best, best_score = outer, score
    opening = _opening(tree, best) if best else None
    return best if opening is None else [opening, *best]


def _opening(tree: Tree, group: list[int]) -> int | None:
    """The text that the others answer, which often has a look of its own: the longest before the first of them."""
    above: set[int] = set()
    step = group[0]
    while step >= 0:
        above.add(step)
        step = tree.elements[step].parent
    best, most = None, _LONG
    for index in range(group[0]):
        said = tree.letters[index] - tree.linked[index]
        element = tree.elements[index]
        name = f"{element.node.attributes.get('id') or ''} {' '.join(element.classes)}"
        if said > most and index not in above and tree.linked[index] < said / 3 and _is_text(name):
            best, most = index, said
    return best


def _is_text(name: str) -> bool:
    return _SAYS.search(name) is not None and _NEVER.search(name) is None


def _not_nested(tree: Tree, group: list[int]) -> list[int]:
    """The group without elements that contain others of it: those are not one post's text."""
    inner = set(group)
    nesting: set[int] = set()
    for index in group:
        parent = tree.elements[index].parent
        for _ in range(_CLIMB):
            if parent < 0 or parent in nesting:
                break
            if parent in inner:
                nesting.add(parent)
            parent = tree.elements[parent].parent
    return [index for index in group if index not in nesting]


def _score(tree: Tree, name: str, group: list[int]) -> float:
    said = sum(tree.letters[index] - tree.linked[index] for index in group)
    if len(group) < 2 or said < _FEW_LETTERS * len(group):
        return 0.0
    linked = sum(tree.linked[index] for index in group)
    score = said * (said / (said + linked + 1)) ** 2
    if _NEVER.search(name):
        score *= 0.1
    elif _SAYS.search(name):
        score *= 1.6
    score *= 0.15 + _signed(tree, group) / len(group)
    # A name and a date within it: this is a post with all that stands around its text.
    holding = sum(1 for index in group if tree.names[index] and tree.dates[index]) / len(group)
    return score * (1 - 0.55 * holding)


def _signed(tree: Tree, group: list[int]) -> int:
    """How many texts have a name or a date beside them."""
    count, before = 0, 0
    for index, around in zip(group, _around(tree, group), strict=True):
        start = max(tree.elements[around].parent, before)
        if _has_mark(tree, around) or tree.marks[index] > tree.marks[start]:
            count += 1
        before = index + 1
    return count


def _has_mark(tree: Tree, index: int) -> bool:
    return bool(tree.names[index] or tree.dates[index])


def _beside(tree: Tree, group: list[int]) -> Iterator[range]:
    """Where the name and date of each text may stand: in its own element, or, where answers stand in that as well,
    between the text before it and itself."""
    before = 0
    for index, around in zip(group, _around(tree, group), strict=True):
        if _has_mark(tree, around):
            yield range(around, _end(tree, around))
        else:
            yield range(max(tree.elements[around].parent, before, 0), index)
        before = _end(tree, index)


def _around(tree: Tree, group: list[int]) -> list[int]:
    """For each text the largest element around it that has no other text of the group in it."""
    count: dict[int, int] = {}
    for index in group:
        step = index
        for _ in range(_CLIMB + 1):
            count[step] = count.get(step, 0) + 1
            step = tree.elements[step].parent
            if step < 0:
                break
    found = []
    for index in group:
        step = index
        for _ in range(_CLIMB):
            parent = tree.elements[step].parent
            if parent < 0 or count.get(parent, 2) > 1 or tree.elements[parent].node.tag in _FRAME:
                break
            step = parent
        found.append(step)
    return found


def _posts(thread: Thread, tree: Tree, group: list[int]) -> list[Post]:
    numbers = _numbers(tree, group)
    read: dict[str, Post] = {}
    for place, (index, beside) in enumerate(zip(group, list(_beside(tree, group)), strict=True)):
        told = _told(thread, tree, index, beside, numbers[place])
        post = post_of(thread, told, opens=place == 0)
        if post and (post.content or post.images):
            read.setdefault(post.source_post_id, post)
    return list(read.values())


def _told(thread: Thread, tree: Tree, index: int, beside: range, number: str) -> Told:
    body, outer = tree.elements[index].node, tree.elements[beside.start].node
    author = next((name for step in beside if (name := _name(tree, step))), "")
    dates = [text for step in beside if tree.elements[step].dated for text in _dates(tree.elements[step].node)]
    moments = tuple(text for text in dates[:20] if moment_of(text, thread.page.received_at))[:1]
    dropped = f"{GUESSED.dropped}, {_META}" if tree.names[index] and tree.dates[index] else GUESSED.dropped
    return Told(
        number=number,
        anchor=outer.attributes.get("id") or body.attributes.get("id") or "",
        author=author,
        dates=moments,
        answers="",
        content=content_of(body, dropped, thread.page.base),
    )


def _end(tree: Tree, index: int) -> int:
    """The place after the last element within one."""
    end = index + 1
    while end < len(tree.elements) and tree.elements[end].parent >= index:
        end += 1
    return end


def _name(tree: Tree, index: int) -> str:
    if not tree.elements[index].named or not 1 < tree.letters[index] <= 60:
        return ""
    return " ".join(tree.elements[index].node.text(separator=" ").split())


def _dates(node: LexborNode) -> list[str]:
    attributes = node.attributes
    said = [attributes.get(name) for name in ("datetime", "data-time", "data-timestamp", "title")]
    return [text for text in (*said, node.text(separator=" ")[:100]) if text]


def _numbers(tree: Tree, group: list[int]) -> list[str]:
    """The ids of posts, as an attribute of their elements has them; empty where not each has one of its own."""
    around = _around(tree, group)
    for places in (around, group):
        for attribute in _ID_ATTRIBUTES:
            written = (tree.elements[index].node.attributes.get(attribute) or "" for index in places)
            numbers = [found[1] if (found := _NUMBER.search(text)) else "" for text in written]
            if all(numbers) and len(set(numbers)) == len(group):
                return numbers
    return [""] * len(group)
