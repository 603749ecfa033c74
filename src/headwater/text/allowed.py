"""What clean HTML may contain. Both cleaners use it: the one in `text/__init__.py`, and `tidy`, which is compiled."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEPT = names(
    "a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del"
    " details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p"
    " pre q rp rt ruby s samp section small strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul"
    " var wbr"
)
KEPT_ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start", "reversed", "type"},
    "li": {"value"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
    "col": {"span"},
    "colgroup": {"span"},
}
# Elements that are removed with all they contain, because it is not text to read. What other removed elements (video,
# object, span) contain stays: it is content, or an alternative for programs that cannot show the element.
DROPPED_WHOLE = names(
    "frameset head iframe math noembed noframes noscript script select style svg template textarea title xmp"
)
# Elements that only carry style. Removing them first saves the HTML parser half of its work on code.
STYLE_ONLY = ("span", "font")
SCHEMES = {"http", "https", "mailto", "magnet", "ftp", "gemini", "tel", "xmpp", "irc", "ircs"}
LINK_REL = "noopener noreferrer"
