"""Posts on a page of unknown software, found by what repeats.

    every element -> how much text it has -> groups that share a class -> the group most like posts -> posts

What people wrote is text that repeats under one class, is not made of links, and has a name and a date next to it. The
element of a post is the largest one around its text that contains no other post's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from headwater.model import Item, Page, Post
from headwater.sources.dates import named_day, parse_forum_date
from headwater.sources.forums.pages import (
    MAX_POSTS,
    OTHER_DATES,
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
from headwater.sources.web_page import ForumPage

MAX_ELEMENTS = 40_000
MAX_CLASSES = 8
_FEW_LETTERS = 12  # on average; less is a label or a count
_LONG = 150  # letters; an opening post is more than a line
_LINE = 90  # letters
_DAY_LETTERS = 40  # "Wednesday, 17 September 2025 at 10:15 am"
_FRAMED = 3  # texts of posts in one element: it is the frame around them
_FIRST_LINES = 12  # elements
_CLIMB = 12  # elements between a post's text and its own element; more is the frame of the page

_DATED = re.compile(r"date|time|posted|\bago\b|when", re.IGNORECASE)
_NAMED = re.compile(r"author|user|nick|poster|member|byline|creator|handle", re.IGNORECASE)
_PROFILE_LINK = re.compile(
    r"/(?:users?|members?|profiles?|u|author|people|~|@)[/=~@]|[?&](?:u|uid|user|member)=|/~|/@", re.IGNORECASE
)
_TIME_TAGS = frozenset({"time", "relative-time", "time-ago", "faceplate-timeago"})
_LETTER = re.compile(r"[^\W_]")
# What is in the element of a name and is none: counts, labels, menus.
_NO_NAME = re.compile(
    r"^[+\-−]?\d[\d.,]*[km]?$|^[+−]\d|[:：]|\b(?:joined|posts?|member since|registered|reputation|log ?in"
    r"|sign ?(?:up|in)|reply|replies|quote|report|share|follow(?:ers?)?|points?|karma|location|author|edited)\b",
    re.IGNORECASE,
)
_AGE = re.compile(
    r"\W*\b(?:an?|\d+)\+?\s*(?:seconds?|mins?|minutes?|hours?|hrs?|days?|weeks?|months?|years?|yrs?)\s+ago\b.*$"
)
_UNREAD = frozenset(
    {"script", "style", "noscript", "template", "svg", "select", "option", "textarea", "head", "nav", "dialog"}
)
_WORDLESS = frozenset({"meta", "link"})  # what they say of a post is not what its author wrote
_NOTICE = re.compile(r"cookie|consent|onetrust|gdpr|newsletter|paywall", re.IGNORECASE)
_OPENING = re.compile(r"(?:post|topic|thread|question|op|opening)[-_]?(?:content|body|text|message)", re.IGNORECASE)
_TEXT_NAMES = re.compile(
    r"body|content|text|message|msg|(?<!col-)\bmd\b(?!-\d)|prose|markdown|comment|cooked|itemprop", re.IGNORECASE
)
_OTHER_NAMES = re.compile(
    r"head|meta|author|user|date|time|sign|quote|foot|button|btn|tool|menu|nav|side|relat|breadcrumb|avatar|title|share"
    r"|action|vote|badge|link|icon|label|card-?list|teaser|snippet|promo|advert|\bad\b|cookie|modal|sponsor|recommend",
    re.IGNORECASE,
)
_FRAME = frozenset({"html", "body", "main"})
_ID_ATTRIBUTES = ("data-post-id", "data-comment-id", "data-pid", "data-id", "id", "name")
_META = "header, footer, time, [class*='author'], [class*='user'], [class*='avatar'], [class*='button']"
_NUMBER = re.compile(r"(\d{1,20})\D*$")


class Element(NamedTuple):
    node: LexborNode
    parent: int
    classes: tuple[str, ...]
    dated: bool
    named: bool


class Tree:
    """The elements of a page in order, and for each how many letters are in it, in links and altogether."""

    def __init__(self, root: LexborNode) -> None:
        self.elements: list[Element] = []
        self.letters: list[int] = []
        self._read(root)
        self._sum_up()

    def _read(self, root: LexborNode) -> None:
        positions: dict[int, int] = {}
        for node in root.traverse(include_text=True):
            parent = positions.get(node.parent.mem_id, -1) if node.parent is not None else -1
            if node.is_text_node:
                if parent >= 0:
                    text = (node.text_content or "").strip()
                    self.letters[parent] += len(text)
                    if _is_day(text) and not self.elements[parent].dated:
                        self.elements[parent] = self.elements[parent]._replace(dated=True)
                continue
            if not node.is_element_node or _is_unread(node) or (parent < 0 and self.elements):
                continue
            if len(self.elements) == MAX_ELEMENTS:
                return
            positions[node.mem_id] = len(self.elements)
            self.elements.append(_element(node, parent))
            self.letters.append(0)

    def _sum_up(self) -> None:
        self.linked = [0] * len(self.elements)
        self.dates = [int(element.dated) for element in self.elements]
        self.names = [int(element.named) for element in self.elements]
        # How many elements before each one have a name or a date; the difference of two says what is between them.
        self.signatures = [0, *accumulate(int(element.named or element.dated) for element in self.elements)]
        for index in range(len(self.elements) - 1, 0, -1):
            parent = self.elements[index].parent
            if self.elements[index].node.tag == "a":
                self.linked[index] = self.letters[index]
            for count in (self.letters, self.linked, self.dates, self.names):
                count[parent] += count[index]

    def is_signed(self, index: int) -> bool:
        """Whether a name or a date is in the element."""
        return bool(self.names[index] or self.dates[index])

    def end(self, index: int) -> int:
        """Returns the position after the last element inside this one."""
        end = index + 1
        while end < len(self.elements) and self.elements[end].parent >= index:
            end += 1
        return end


def _is_unread(node: LexborNode) -> bool:
    """Whether an element has nothing that people wrote: what is not shown, menus, and boxes that ask for consent."""
    if node.tag in _UNREAD or node.tag in _FRAME:
        return node.tag in _UNREAD
    attributes = node.attributes
    named = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    return bool(_NOTICE.search(named)) or attributes.get("role") in ("navigation", "dialog", "alertdialog")


def _is_day(text: str) -> bool:
    """Whether a text is a date and little else."""
    return 6 <= len(text) <= _DAY_LETTERS and named_day(text) is not None and not OTHER_DATES.search(text)


def _element(node: LexborNode, parent: int) -> Element:
    attributes = node.attributes
    classes = tuple((attributes.get("class") or "").split()[:MAX_CLASSES])
    if attributes.get("itemprop") in ("text", "articleBody", "commentText"):
        classes += ("itemprop-text",)
    own = " ".join(classes)
    property = attributes.get("itemprop") or ""
    dated = (
        node.tag in _TIME_TAGS or "datetime" in attributes or property.startswith("date") or bool(_DATED.search(own))
    )
    named = bool(_NAMED.search(own)) or (node.tag == "a" and bool(_PROFILE_LINK.search(attributes.get("href") or "")))
    return Element(node, parent, classes, dated, named)


def guess_thread(page: ForumPage, item: Item, zone: int | None) -> Page | None:
    """Returns the posts on a page of a thread, found by what repeats on it; None if nothing looks like posts."""
    tree = Tree(page.root)
    group = _likeliest(tree)
    if not group:
        return None
    thread = thread_on(page, GUESSED, item, zone)
    following = next_page(page, GUESSED.selectors)
    posts = completed(page, _posts(thread, tree, group[:MAX_POSTS]), thread.zone)
    return Page(posts, following, facts_of(thread, truncated=len(group) > MAX_POSTS)) if posts else None


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
    return best


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
            if parent < 0 or count.get(parent, 2) > 1 or tree.elements[parent].node.tag in _FRAME:
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
        if post and (post.content or post.images):
            posts.setdefault(post.source_post_id, post)
    return list(posts.values())


def _raw_post(thread: ThreadPage, tree: Tree, index: int, signature: range, id: str) -> RawPost:
    body, outer = tree.elements[index].node, tree.elements[signature.start].node
    author = next((name for step in signature if (name := _name(tree, step))), "")
    dates = [text for step in signature if tree.elements[step].dated for text in _dates(tree.elements[step].node)]
    # Some write the date as the first line of the text's own element.
    lines = [*(step for step in signature if step < index), *range(index, min(tree.end(index), index + _FIRST_LINES))]
    dates = dates[:20] + [text for step in lines if (text := _written_day(tree, step))][:5]
    moments = tuple(text for text in dates if parse_forum_date(text, thread.page.received_at))[:1]
    dropped = GUESSED.selectors.dropped
    if tree.names[index] and tree.dates[index]:
        dropped = f"{dropped}, {_META}"
    return RawPost(
        id=id,
        anchor=outer.attributes.get("id") or body.attributes.get("id") or "",
        author=author,
        dates=moments,
        reply_to="",
        content=content_of(body, dropped, thread.page.base),
    )


def _name(tree: Tree, index: int) -> str:
    """Returns the name in an element; empty if it has none, or something else, such as a count or a label."""
    if not tree.elements[index].named or not 1 < tree.letters[index] <= 60:
        return ""
    name = _AGE.sub("", " ".join(tree.elements[index].node.text(separator=" ").split())).strip()
    return "" if _NO_NAME.search(name) or not _LETTER.search(name) else name


def _written_day(tree: Tree, index: int) -> str:
    """Returns a short text with a whole date in it, from an element that does not say that it has one."""
    if not 6 <= tree.letters[index] <= _LINE:
        return ""
    text = " ".join(tree.elements[index].node.text(separator=" ").split())
    return text if named_day(text) and not OTHER_DATES.search(text) else ""


def _dates(node: LexborNode) -> list[str]:
    attributes = node.attributes
    written = [attributes.get(name) for name in ("datetime", "content", "data-time", "data-timestamp", "ts", "title")]
    inside = [one.attributes.get("title") for one in node.css("[title]")[:2]]  # where the text says "2y"
    return [text for text in (*written, *inside, node.text(separator=" ")[:100]) if text]


def _ids(tree: Tree, group: list[int]) -> list[str]:
    """Returns the ids of posts, from an attribute of their elements; all empty unless each has its own."""
    for indexes in (_around(tree, group), group):
        for attribute in _ID_ATTRIBUTES:
            written = (tree.elements[index].node.attributes.get(attribute) or "" for index in indexes)
            ids = [found[1] if (found := _NUMBER.search(text)) else "" for text in written]
            if all(ids) and len(set(ids)) == len(group):
                return ids
    return [""] * len(group)
