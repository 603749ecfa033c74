"""What clean HTML may consist of. `text` cleans by it, and so does `tidy`, its quicker half."""

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
# Elements that go with all they contain: it is not for reading, or was never meant as text. What others that go (video,
# object, span) contain stays: it is content, or made for readers that cannot show the element.
DROPPED_WHOLE = names(
    "frameset head iframe math noembed noframes noscript script select style svg template textarea title xmp"
)
# Elements that only carry style. They go anyway; taking them out first spares the HTML parser half its work on code.
STYLE_ONLY = ("span", "font")
SCHEMES = {"http", "https", "mailto", "magnet", "ftp", "gemini", "tel", "xmpp", "irc", "ircs"}
LINK_REL = "noopener noreferrer"
