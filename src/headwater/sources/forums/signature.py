"""Who wrote a post of unknown software, and when: the best of the names and dates around its text.

A post has more than one of each. Names are also those of ranks and of people who are quoted; dates are also those on
which its author joined or edited it. So each is judged by what its element is called and where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from headwater.sources.dates import named_day
from headwater.sources.forums.pages import OTHER_DATES
from headwater.sources.forums.tree import DATED_BY, NAMED_BY, PROFILE_LINK, TIME_TAGS, Tree

MAX_NAME = 60  # letters
MAX_DATES = 20
LINE = 90  # letters
_AROUND_NAME = " \t\r\n·•|,»–—-"
FIRST_LINES = 12  # elements
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
_LEADS_ON = re.compile(
    r"\b(?:for|on|at|in|of|since|from|by|posted|submitted|created|started|asked|answered|updated)$", re.IGNORECASE
)
# What elements are called that have a name and nothing else; and what those are called that have something else.
_EXACT = re.compile(
    r"(?:user|author|member|poster|creator|display|nick)[-_]?name|(?:^|[\s_-])nick\b|username", re.IGNORECASE
)
_NOT_EXACT = re.compile(
    r"title|rank|role|group|banner|stat|count|extra|badge|reputation|avatar|status|online|menu|button|icon|signature|flair",
    re.IGNORECASE,
)


def name_in(tree: Tree, index: int, signature: range) -> str:
    """Returns the name of a text's author; empty if there is none.

    `index` is the text's element, and `signature` the elements around it in which a name may be.
    """
    text = range(index, tree.end(index))
    named = [(_name_rank(tree, step), step) for step in signature if tree.elements[step].named and step not in text]
    inside = [(rank + 10, step) for step in text if tree.elements[step].named for rank in (_name_rank(tree, step),)]
    found = next((name for _, step in sorted(named + inside) if (name := _name(tree, step))), "")
    return found or _before_date(tree, [step for step in signature if step not in text and _is_date(tree, step)])


def _is_date(tree: Tree, index: int) -> bool:
    return tree.elements[index].dated or bool(_written_day(tree, index))


def _before_date(tree: Tree, dated: list[int]) -> str:
    """Returns the short text right before a date, which is a name where nothing says so: “Ada · 5 March 2024”."""
    for step in dated:
        before = tree.elements[step].node.prev
        while before is not None and before.is_text_node and not (before.text_content or "").strip(_AROUND_NAME):
            before = before.prev
        if before is not None:
            written = (before.text_content if before.is_text_node else before.text(separator=" ")) or ""
            name = " ".join(written.split()).strip(_AROUND_NAME)
            if 1 < len(name) <= MAX_NAME and _is_name(name) and not _LEADS_ON.search(name):
                return name
    return ""


def _name_rank(tree: Tree, index: int) -> int:
    """Returns how sure it is that an element has a name and nothing else; lower is surer."""
    element = tree.elements[index]
    attributes = element.node.attributes
    if any(map(attributes.get, NAMED_BY)):
        return 0
    own = " ".join(element.classes)
    property = attributes.get("itemprop") or ""
    if _NOT_EXACT.search(own):
        return 4
    if property == "name" or attributes.get("rel") == "author" or _EXACT.search(own):
        return 0
    if element.node.tag == "a" and PROFILE_LINK.search(attributes.get("href") or ""):
        return 1
    return 2 if element.node.tag == "a" or not tree.names_inside(index) else 3


def _name(tree: Tree, index: int) -> str:
    """Returns the name in an element; empty if it has none, or something else, such as a count or a label."""
    attributes = tree.elements[index].node.attributes
    declared = next((value for name in NAMED_BY if (value := attributes.get(name))), "")
    if declared and len(declared) <= MAX_NAME:
        return declared
    if not 1 < tree.letters[index] <= MAX_NAME:
        return ""
    name = _AGE.sub("", " ".join(tree.elements[index].node.text(separator=" ").split())).strip()
    return name if _is_name(name) else ""


def _is_name(text: str) -> bool:
    return not _NO_NAME.search(text) and _LETTER.search(text) is not None


def dates_in(tree: Tree, index: int, signature: range) -> Iterator[str]:
    """Yields what may be the date of a text, the likeliest first."""
    text = range(index, tree.end(index))
    dated = [step for step in signature if tree.elements[step].dated and step not in text and not _is_other(tree, step)]
    ranked = sorted(dated, key=lambda step: (_is_of_author(tree, step, signature), not _is_declared(tree, step)))
    inside = [step for step in text if tree.elements[step].dated and not _is_other(tree, step)]
    for step in [*ranked, *inside][:MAX_DATES]:
        yield from _dates(tree.elements[step].node)
    # Some write the date as the first line of the text's own element.
    lines = [*(step for step in signature if step < index), *range(index, min(tree.end(index), index + FIRST_LINES))]
    yield from [line for step in lines if (line := _written_day(tree, step))][:5]


def _is_declared(tree: Tree, index: int) -> bool:
    """Whether the markup says that an element is a date, not only the words in it."""
    element = tree.elements[index]
    return element.node.tag in TIME_TAGS or any(map(element.node.attributes.__contains__, DATED_BY))


def _is_other(tree: Tree, index: int) -> bool:
    """Whether the words of a date say that it is not that of the post but of its edit, or of its author."""
    parent = tree.elements[index].parent
    for step in (index, parent):
        if step >= 0 and tree.letters[step] <= LINE and OTHER_DATES.search(_line(tree.elements[step].node)):
            return True
    return False


def _line(node: LexborNode) -> str:
    return f"{node.attributes.get('class') or ''} {node.text(separator=' ')}"


def _is_of_author(tree: Tree, index: int, signature: range) -> bool:
    """Whether a date is inside an element about the author, where the date of joining is."""
    step = tree.elements[index].parent
    while step > signature.start:
        element = tree.elements[step]
        if element.node.tag != "a" and (element.named or "profile" in " ".join(element.classes).lower()):
            return True
        step = tree.elements[step].parent
    return False


def _written_day(tree: Tree, index: int) -> str:
    """Returns a short text with a whole date in it, from an element that does not say that it has one."""
    if not 6 <= tree.letters[index] <= LINE:
        return ""
    text = " ".join(tree.elements[index].node.text(separator=" ").split())
    return text if named_day(text) and not OTHER_DATES.search(text) else ""


def _dates(node: LexborNode) -> list[str]:
    attributes = node.attributes
    written = [attributes.get(name) for name in (*DATED_BY, "content", "data-time", "data-timestamp", "ts", "title")]
    inside = [one.attributes.get("title") for one in node.css("[title]")[:2]]  # where the text says "2y"
    texts = [one.text_content or "" for one in node.iter(include_text=True) if one.is_text_node]
    days = [text.strip(" »·-,") for text in texts[:10] if named_day(text)]  # "by Ada » 5 March 2024"
    return [text for text in (*written, *inside, *days, node.text(separator=" ")[:100]) if text]
