"""One short name for each element, whatever namespace address and letter case a feed uses."""

from __future__ import annotations

# Formats whose elements mean the same. They share the names without a prefix.
_BARE = (
    "backend.userland.com/rss",
    "blogs.law.harvard.edu/tech/rss",
    "channel.netscape.com/rdf/simple/0.9",
    "example.com/newformat#",
    "hacks.benhammersley.com/rss/streaming",
    "my.netscape.com/rdf/simple/0.9",
    "my.netscape.com/publish/formats/rss-0.91.dtd",
    "purl.org/atom/ns",
    "purl.org/net/rss1.1",
    "purl.org/rss/1.0",
    "purl.org/rss/2.0",
    "w3.org/2005/atom",
)
_PREFIXES = {
    "bing.com/atom": "",
    "podlove.org/simple-chapters": "psc",
    "purl.org/dc/elements/1.0": "dc",
    "purl.org/dc/elements/1.1": "dc",
    "purl.org/dc/terms": "dcterms",
    "purl.org/rss/1.0/modules/content": "content",
    "purl.org/rss/1.0/modules/slash": "slash",
    "purl.org/rss/1.0/modules/syndication": "sy",
    "purl.org/rss/1.0/modules/threading": "thr",
    "purl.org/syndication/thread/1.0": "thr",
    "rssnamespace.org/feedburner/ext/1.0": "feedburner",
    "search.yahoo.com/mrss": "media",
    "video.search.yahoo.com/mrss": "media",
    "tools.search.yahoo.com/mrss": "media",
    "georss.org/georss": "georss",
    "opengis.net/gml": "gml",
    "w3.org/2003/01/geo/wgs84_pos": "geo",
    "wellformedweb.org/commentapi": "wfw",
    "itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "itunes.com/dtds/podcast": "itunes",
    "itunes.apple.com/dtds/podcast-1.0.dtd": "itunes",
    "podcastindex.org/namespace/1.0": "podcast",
    "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": "podcast",
    "google.com/schemas/play-podcasts/1.0": "googleplay",
    "w3.org/1999/xhtml": "xhtml",
    "w3.org/1999/02/22-rdf-syntax-ns": "rdf",
    "web.resource.org/cc": "cc",
    "backend.userland.com/creativecommonsrssmodule": "cc",
    "source.scripting.com": "source",
    "youtube.com/xml/schemas/2015": "yt",
    "w3.org/xml/1998/namespace": "xml",
}
PREFIX_OF = dict.fromkeys(_BARE, "") | _PREFIXES

# For documents that use a prefix and do not declare it.
USUAL_ADDRESS = {
    "atom": "http://www.w3.org/2005/Atom",
    "cc": "http://web.resource.org/cc/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "creativecommons": "http://backend.userland.com/creativeCommonsRssModule",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "psc": "http://podlove.org/simple-chapters",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "source": "http://source.scripting.com/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}


def prefix_of(namespace: str) -> str | None:
    """The short name of a namespace; None if we do not read it."""
    address = namespace.strip().lower().removeprefix("http://").removeprefix("https://").removeprefix("www.")
    return PREFIX_OF.get(address.rstrip("/#"))


class Names(dict[str, str]):
    """The short names of the elements of one document, each worked out when it is first looked up.

    The namespace of a feed's root is that of the format, whatever address the feed gives it.
    """

    def __init__(self, root: str) -> None:
        super().__init__()
        namespace, _, local = root.rpartition("}")
        self._own = namespace if local.lower() in {"rss", "feed", "channel"} else None

    def __missing__(self, tag: str) -> str:
        namespace, _, local = tag.rpartition("}")
        local = local.lower()
        prefix = "" if not namespace or namespace == self._own else prefix_of(namespace[1:])
        self[tag] = name = f"?{local}" if prefix is None else f"{prefix}:{local}" if prefix else local
        return name
