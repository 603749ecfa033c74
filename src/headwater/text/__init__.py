"""Text from outside, made safe to store and to show: clean HTML, plain text, printable characters, a hash."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache
from hashlib import blake2b
from html import escape, unescape
from typing import TYPE_CHECKING

from headwater.text.allowed import DROPPED_WHOLE, KEPT, KEPT_ATTRIBUTES, LINK_REL, SCHEMES, STYLE_ONLY, names
from headwater.urls import safe_link

if TYPE_CHECKING:
    import nh3
EXCERPT_CHARACTERS = 280
HEADLINE_CHARACTERS = 90
_EXCERPT_MARKUP = 4000
# In clean HTML a bracket is always a tag's.
_TAG = re.compile(r"<[^>]*+>")


def untagged_uncompiled(html: str, gap: str) -> str:
    """Returns clean HTML with `gap` in place of each tag."""
    return _TAG.sub(gap, html)


def _left_to_parser(html: str, base: str | None) -> str | None:
    return None


try:
    from headwater.text.tidy import tidied, untagged
except ImportError:  # it was installed without a C compiler; nh3 cleans all HTML then
    tidied, untagged = _left_to_parser, untagged_uncompiled

IS_COMPILED = tidied.__module__ == "headwater.text.tidy"

# nh3 removes these as well. Without them it needs half the time for code.
_STYLE_ONLY = re.compile(rf"</?(?:{'|'.join(STYLE_ONLY)})(?:\s[^<>\"]*+(?:\"[^<>\"]*+\"[^<>\"]*+)*+)?>")

# Images that are there to be counted, not seen, in nh3's output, which has no bracket within a tag: tiny ones, those of
# known counters, and those that have nothing to show.
_COUNTERS = (
    r"feeds\.[^/]+/~(?:r|ff|4)/|pixel\.|stats\.wordpress\.com/|medium\.com/_/stat|rss\.buysellads\.com/"
    r"|(?:[^/]+\.)?(?:feedsportal|doubleclick|scorecardresearch|google-analytics|feedblitz|statcounter)\.(?:com|net)/"
    r"|feeds\.feedburner\.com/|blogger\.googleusercontent\.com/tracker/|[^/]*/(?:b|pixel|blank|spacer)\.gif"
)
_COUNTING_IMAGE = re.compile(
    rf'<img(?:(?=[^>]* (?:width|height)="\s*[01](?:px)?\s*")|(?![^>]* src="[^"])|(?=[^>]* src="https?://(?:{_COUNTERS})))[^>]*>'
)

_PRINTABLE = re.compile(
    "[ -~\n\t\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*+"
)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")
# None of these patterns looks at a character twice, whatever the input is.
_MARKUP = re.compile(r"<!--(?>.*?(?:-->|\Z))|<[a-zA-Z/!?][^<>]*+>", re.DOTALL)
_BREAK = re.compile(r"</?(?:p|div|br|li|tr|td|th|h[1-6]|blockquote|pre|hr|dd|dt|figcaption)\b[^<>]*+>", re.IGNORECASE)
_UNREAD = re.compile(r"<(script|style|head|title)\b(?>.*?(?:</\1\s*>|\Z))", re.DOTALL | re.IGNORECASE)
_KNOWN_MARKUP = re.compile(
    r"</?(?:a|abbr|acronym|address|applet|article|aside|audio|b|base|bdi|bdo|big|blink|blockquote|body|br|button|canvas"
    r"|caption|center|cite|code|col|colgroup|dd|del|details|dfn|dir|div|dl|dt|em|embed|fieldset|figcaption|figure|font"
    r"|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map"
    r"|mark|marquee|math|menu|meta|nav|noembed|noframes|noscript|object|ol|option|p|param|picture|plaintext|pre|q|rp|rt"
    r"|ruby|s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td"
    r"|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr|xmp)(?=[\s/>])"
    r"|<!--|&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});",
    re.IGNORECASE,
)
_NESTING_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NOT_NESTING = names(
    "area base br col dd dt embed hr img input li link meta option p param source tbody td tfoot th thead tr track wbr"
)
_FEW_TAGS = 3_000
_MAX_LOOKS = 20_000_000
_SHORT = 50_000
_ENDLESS_TAG = re.compile(r"<[a-zA-Z](?:[^<>\s]*+\s++){1000}")
# What the C1 controls stand for in text that came from Windows.
_C1 = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}


def printable(text: str) -> str:
    """Returns the text without characters that cannot be stored or must not be shown.

    These are NUL, controls, lone surrogates and bidi overrides.
    """
    if _PRINTABLE.fullmatch(text):
        return text
    return _UNPRINTABLE.sub("", text.translate(_C1))


def looks_like_html(text: str) -> bool:
    """Whether a text that may be plain or HTML is HTML: it has a tag or a character reference that HTML knows."""
    return _KNOWN_MARKUP.search(text) is not None


def plain(text: str) -> str:
    """Returns the words of an HTML fragment, on one line."""
    if "<" in text:
        text = _MARKUP.sub("", _BREAK.sub(" ", _UNREAD.sub(" ", text)))
    if "&" in text:
        text = unescape(text)
    return " ".join(printable(text).split())


def clean_html(html: str, base: str | None) -> str:
    """Returns the fragment without anything that could run, track, or break out of the page that shows it.

    Links and images become absolute by `base`. Without a base, relative ones are removed.
    """
    if "<" not in html:
        return printable(_escaped(unescape(html) if "&" in html else html))
    clean = tidied(html, base)
    if clean is None:
        clean = printable(cleaned_by_parser(html, base))
    return _COUNTING_IMAGE.sub("", clean) if "<img" in clean else clean


def without_tags(html: str, gap: str) -> str:
    """Returns clean HTML with `gap` in place of each tag; references stay."""
    return untagged(html, gap)


def text_as_html(text: str) -> str:
    """Returns plain text as a fragment of clean HTML that keeps its lines."""
    return printable(_escaped(text)).replace("\n", "<br>\n")


def text_hash(title: str, content: str) -> bytes:
    """Returns a hash of what a reader sees in a title and in clean HTML. Markup and white space do not count."""
    digest = blake2b(_folded(title), digest_size=16)
    digest.update(b"\0")
    if "<" in content:
        content = without_tags(content, "")
    if "&nbsp;" in content:
        content = content.replace("&nbsp;", " ")
    digest.update(_folded(content))
    return digest.digest()


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\xa0", "&nbsp;")


def _folded(text: str) -> bytes:
    if not text.isascii():
        # These two alone would send most texts through the slow part of normalize.
        text = unicodedata.normalize("NFKC", text.replace("\xa0", " ").replace("…", "..."))
    return text.encode("utf-8", "ignore").translate(None, b" \t\r\n\f\v")


def cleaned_by_parser(html: str, base: str | None) -> str:
    """Does the same as `clean_html` for HTML that only a parser understands."""
    if "<span" in html or "<font" in html:
        html = _STYLE_ONLY.sub("", html)
    if not _is_tame(html):
        return text_as_html(plain(html))
    _here.base = base
    try:
        return _cleaner().clean(html)
    except UnicodeEncodeError:
        # A lone surrogate, which nh3 cannot be given.
        return _cleaner().clean(printable(html))


def _is_tame(html: str) -> bool:
    """Whether the HTML parser ends in reasonable time. For each start tag it may look at all elements that are open."""
    return not nests_deeply(html) and (len(html) < _SHORT or not _ENDLESS_TAG.search(html))


def nests_deeply(html: str) -> bool:
    """Whether so many elements are open at once that an HTML parser would take far too long."""
    tags = html.count("<")
    return tags > _FEW_TAGS and tags * _depth(html) > _MAX_LOOKS


def _depth(html: str) -> int:
    """Returns the greatest number of open elements, without those that end when the next one begins."""
    depth = deepest = 0
    for closing, name in _NESTING_TAG.findall(html):
        if name.lower() not in _NOT_NESTING:
            depth = max(0, depth - 1) if closing else depth + 1
            deepest = max(deepest, depth)
    return deepest


def headline(title: str, content: str, url: str | None = None) -> str:
    """Returns the title of a post, or its first words if it has none."""
    return title or _shortened(_beginning(content), HEADLINE_CHARACTERS) or url or "Without a title"


def excerpt(content: str, title: str) -> str:
    """Returns the first words of a post's text, without its title if the text begins with it."""
    words, title = _beginning(content), title.removesuffix("…")
    if title and words.startswith(title):
        words = words[len(title) :].lstrip(" .:–—-|")
    return _shortened(words, EXCERPT_CHARACTERS)


def _beginning(content: str) -> str:
    head = content[:_EXCERPT_MARKUP]
    if len(content) > len(head) and head.rfind("<") > head.rfind(">"):
        head = head[: head.rfind("<")]  # half of a tag is not text
    return plain(head)


def _shortened(words: str, length: int) -> str:
    """Cuts at a space. Chinese has none, and is cut at the length."""
    if len(words) <= length:
        return words
    return words[:length].rsplit(" ", 1)[0].rstrip(" ,.;:，。；：") + "…"


class _Here(threading.local):
    """The base of the fragment that is being cleaned on this thread. Making a cleaner per fragment would be slower."""

    base: str | None = None


_here = _Here()


@cache
def _cleaner() -> nh3.Cleaner:
    import nh3  # parsers clean; others do not need it

    return nh3.Cleaner(
        tags=KEPT,
        clean_content_tags=DROPPED_WHOLE,
        attributes=KEPT_ATTRIBUTES,
        link_rel=LINK_REL,
        url_schemes=SCHEMES,
        url_relative=lambda link: safe_link(link, _here.base),
    )
