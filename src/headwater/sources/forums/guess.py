"""Posts on a page of unknown software, found by what repeats.

    every element -> how much text it has -> groups that share a class -> the group most like posts -> posts

What people wrote is text that repeats under one class, is not made of links, and has a name and a date next to it. The
element of a post is the largest one around its text that contains no other post's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from headwater.model import Item, Page, Post
from headwater.sources.dates import parse_forum_date
from headwater.sources.forums.pages import (
    MAX_POSTS,
    RawPost,
    ThreadPage,
    completed,
    content_of,
    facts_of,
    next_page,
    post_of,
    thread_on,
)
from headwater.sources.forums.profile import GUESSED
from headwater.sources.forums.signature import dates_in, name_in
from headwater.sources.forums.tree import FRAME, Tree
from headwater.sources.web_page import ForumPage
from headwater.text import plain

_FEW_LETTERS = 12  # on average; less is a label or a count
_LONG = 150  # letters; an opening post is more than a line
_MOST = 0.7  # of the posts
_FRAMED = 3  # texts of posts in one element: it is the frame around them
_CLIMB = 12  # elements between a post's text and its own element; more is the frame of the page

_WORDLESS = frozenset({"meta", "link"})  # what they say of a post is not what its author wrote
_OPENING = re.compile(r"(?:post|topic|thread|question|op|opening)[-_]?(?:content|body|text|message)", re.IGNORECASE)
_TEXT_NAMES = re.compile(
    r"body|content|text|message|msg|(?<!col-)\bmd\b(?!-\d)|prose|markdown|comment|cooked|itemprop", re.IGNORECASE
)
_OTHER_NAMES = re.compile(
    r"head|meta|author|user|date|time|sign|quote|foot|button|btn|tool|menu|nav|side|relat|breadcrumb|avatar|title|share"
    r"|action|vote|badge|link|icon|label|card-?list|teaser|snippet|promo|advert|\bad\b|cookie|modal|sponsor|recommend",
    re.IGNORECASE,
)
_ID_ATTRIBUTES = ("data-post-id", "data-comment-id", "data-pid", "data-id", "id", "name")
_META = "header, footer, time, [class*='author'], [class*='user'], [class*='avatar'], [class*='button']"
_HEAD = "[class*='post_head'], [class*='post-head'], [class*='posthead'], [class*='postHead'], [class*='post-meta']"
_NUMBER = re.compile(r"(\d{1,20})\D*$")


def guess_thread(page: ForumPage, item: Item, zone: int | None) -> Page | None:
    """Returns the posts on a page of a thread, found by what repeats on it; None if nothing looks like posts."""
    tree = Tree(page.root)
    group = _likeliest(tree)
    if not group:
        # What a script draws is at times written once more, for those that have none.
        tree = Tree(page.root, with_noscript=True)
        group = _likeliest(tree)
    if not group:
        return None
    thread = thread_on(page, GUESSED, item, zone)
    following = next_page(page, GUESSED.selectors)
    posts = _signed_alike(completed(page, _posts(thread, tree, group[:MAX_POSTS]), thread.zone))
    return Page(posts, following, facts_of(thread, truncated=len(group) > MAX_POSTS)) if posts else None


def _signed_alike(posts: list[Post]) -> list[Post]:
    """Returns the posts without what stands between them: if most have a name and a date, what has neither is no post.

    A long text at the start is one: openings are often signed elsewhere.
    """
    signed = sum(post.dated and post.author is not None for post in posts)
    if signed < _MOST * len(posts):
        return posts
    return [
        post
        for place, post in enumerate(posts)
        if post.dated or post.author or (place == 0 and len(plain(post.content)) >= _LONG)
    ]


def _likeliest(tree: Tree) -> list[int]:
    groups: dict[str, list[int]] = {}
    for index, element in enumerate(tree.elements):
        for name in element.classes if element.node.tag not in _WORDLESS else ():
            groups.setdefault(name, []).append(index)
    best: list[int] = []
    best_score = 0.0
    for name, group in groups.items():
        outer = _not_nested(tree, group)
        score = _score(tree, name, outer)
        if score > best_score:
            best, best_score = outer, score
    best = _with_kin(tree, groups, _unframed(tree, groups, best))
    opening = _opening(tree, best) if best else None
    return best if opening is None else [opening, *best]


def _unframed(tree: Tree, groups: dict[str, list[int]], best: list[int]) -> list[int]:
    """Returns the texts of posts inside of one of the group, if that is the frame around all of them: it has most of
    the group's text, and they have most of its."""
    frame = max(best, key=lambda index: tree.letters[index], default=None)
    if frame is None or len(best) > _FRAMED or tree.letters[frame] < 0.8 * sum(tree.letters[index] for index in best):
        return best
    inside = range(frame + 1, tree.end(frame))
    found, most = best, 0.5 * tree.letters[frame]
    for name, group in groups.items():
        framed = [index for index in group if index in inside and tree.letters[index] >= _FEW_LETTERS]
        letters = sum(tree.letters[index] for index in framed)
        if len(framed) >= _FRAMED and letters > most and _is_text(name) and framed == _not_nested(tree, framed):
            found, most = framed, letters
    return found


def _with_kin(tree: Tree, groups: dict[str, list[int]], best: list[int]) -> list[int]:
    """Returns the group with the few others that share a class with all of it: the first post lacks one at times."""
    shared = set.intersection(*(set(tree.elements[index].classes) for index in best)) if best else set()
    kin = [_not_nested(tree, groups[name]) for name in shared]
    wider = [group for group in kin if set(best) < set(group) and len(group) <= len(best) + max(1, len(best) // 4)]
    return min(wider, key=len, default=best)


def _opening(tree: Tree, group: list[int]) -> int | None:
    """Returns the text that the others answer: the longest one before the first of them.

    It often has a style of its own.
    """
    above: set[int] = set()
    step = group[0]
    while step >= 0:
        above.add(step)
        step = tree.elements[step].parent
    best, most = None, _LONG
    for index in range(group[0]):
        unlinked = tree.letters[index] - tree.linked[index]
        element = tree.elements[index]
        name = f"{element.node.attributes.get('id') or ''} {' '.join(element.classes)}"
        # What is called the text of a post may be a list of links.
        links = unlinked * 3 if _OPENING.search(name) else unlinked / 3
        if unlinked > most and index not in above and tree.linked[index] < links and _is_text(name):
            best, most = index, unlinked
    return best if best is not None and _is_post(tree, best, above, group[0]) else None


def _is_post(tree: Tree, index: int, above: set[int], first: int) -> bool:
    """Whether a text before the first post is one: it is called so, or dated, and it does not say the same again."""
    element = tree.elements[index]
    name = f"{element.node.attributes.get('id') or ''} {' '.join(element.classes)}"
    around = index
    while tree.elements[around].parent not in above:
        around = tree.elements[around].parent
    is_said_again = _start(element.node) == _start(tree.elements[first].node)
    return not is_said_again and bool(_OPENING.search(name) or tree.dates[around])


def _start(node: LexborNode) -> str:
    return " ".join(node.text(separator=" ").split())[:_LONG]


def _is_text(name: str) -> bool:
    return _TEXT_NAMES.search(name) is not None and _OTHER_NAMES.search(name) is None


def _not_nested(tree: Tree, group: list[int]) -> list[int]:
    """Returns the group without elements that contain others of it: those are more than one post's text."""
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
    unlinked = sum(tree.letters[index] - tree.linked[index] for index in group)
    if len(group) < 2 or unlinked < _FEW_LETTERS * len(group):
        return 0.0
    linked = sum(tree.linked[index] for index in group)
    score = unlinked * (unlinked / (unlinked + linked + 1)) ** 2
    if _OTHER_NAMES.search(name):
        score *= 0.1
    elif _TEXT_NAMES.search(name):
        score *= 1.6
    score *= 0.15 + _signed(tree, group) / len(group)
    # A name and a date inside it: this is a whole post, not only its text.
    holding = sum(1 for index in group if tree.names[index] and tree.dates[index]) / len(group)
    return score * (1 - 0.55 * holding)


def _signed(tree: Tree, group: list[int]) -> int:
    """Returns how many texts have a name or a date next to them."""
    count, before = 0, 0
    for index, around in zip(group, _around(tree, group), strict=True):
        start = max(tree.elements[around].parent, before)
        if tree.is_signed(around) or tree.signatures[index] > tree.signatures[start]:
            count += 1
        before = index + 1
    return count


def _signature_ranges(tree: Tree, group: list[int]) -> Iterator[range]:
    """Yields where the name and date of each text may be: in its own element.

    If that also contains the answers, they are between the text before it and itself.
    """
    before = 0
    for index, around in zip(group, _around(tree, group), strict=True):
        if tree.is_signed(around):
            yield range(around, tree.end(around))
        else:
            yield range(max(tree.elements[around].parent, before, 0), index)
        before = tree.end(index)


def _around(tree: Tree, group: list[int]) -> list[int]:
    """Returns, for each text, the largest element around it that contains no other text of the group."""
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
            if parent < 0 or count.get(parent, 2) > 1 or tree.elements[parent].node.tag in FRAME:
                break
            step = parent
        found.append(step)
    return found


def _posts(thread: ThreadPage, tree: Tree, group: list[int]) -> list[Post]:
    ids = _ids(tree, group)
    posts: dict[str, Post] = {}
    for position, (index, signature) in enumerate(zip(group, list(_signature_ranges(tree, group)), strict=True)):
        raw = _raw_post(thread, tree, index, signature, ids[position])
        post = post_of(thread, raw, is_first=position == 0)
        if post and (post.content or post.images) and plain(post.content) != post.author:
            posts.setdefault(post.source_post_id, post)
    return list(posts.values())


def _raw_post(thread: ThreadPage, tree: Tree, index: int, signature: range, id: str) -> RawPost:
    body, outer = tree.elements[index].node, tree.elements[signature.start].node
    dates = (text for text in dates_in(tree, index, signature) if parse_forum_date(text, thread.page.received_at))
    dropped = f"{GUESSED.selectors.dropped}, {_HEAD}"
    if tree.names[index] and tree.dates[index]:
        dropped = f"{dropped}, {_META}"
    return RawPost(
        id=id,
        anchor=outer.attributes.get("id") or body.attributes.get("id") or "",
        author=name_in(tree, index, signature),
        dates=tuple(islice(dates, 1)),
        reply_to="",
        content=content_of(body, dropped, thread.page.base),
    )


def _ids(tree: Tree, group: list[int]) -> list[str]:
    """Returns the ids of posts, from an attribute of their elements; all empty unless each has its own."""
    for indexes in (_around(tree, group), group):
        for attribute in _ID_ATTRIBUTES:
            written = (tree.elements[index].node.attributes.get(attribute) or "" for index in indexes)
            ids = [found[1] if (found := _NUMBER.search(text)) else "" for text in written]
            if all(ids) and len(set(ids)) == len(group):
                return ids
    return [""] * len(group)
