"""A first set of sources for somebody who has none: well-known public feeds, in a few groups."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.follow.opml import Outline

GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Technology": (
        ("Hacker News", "https://news.ycombinator.com/rss"),
        ("Ars Technica", "https://feeds.arstechnica.com/arstechnica/index"),
        ("The Verge", "https://www.theverge.com/rss/index.xml"),
        ("Lobsters", "https://lobste.rs/rss"),
        ("LWN.net", "https://lwn.net/headlines/rss"),
    ),
    "World": (
        ("BBC News: World", "https://feeds.bbci.co.uk/news/world/rss.xml"),
        ("The Guardian: World", "https://www.theguardian.com/world/rss"),
        ("Al Jazeera", "https://www.aljazeera.com/xml/rss/all.xml"),
        ("NPR: World", "https://feeds.npr.org/1004/rss.xml"),
    ),
    "Business and markets": (
        ("CNBC: Top news", "https://www.cnbc.com/id/100003114/device/rss/rss.html"),
        ("The Economist: Finance", "https://www.economist.com/finance-and-economics/rss.xml"),
        ("Federal Reserve: Press releases", "https://www.federalreserve.gov/feeds/press_all.xml"),
        ("ECB: Press releases", "https://www.ecb.europa.eu/rss/press.html"),
    ),
    "Science": (
        ("Nature", "https://www.nature.com/nature.rss"),
        ("Quanta Magazine", "https://www.quantamagazine.org/feed/"),
        ("Phys.org", "https://phys.org/rss-feed/"),
        ("NASA: News releases", "https://www.nasa.gov/news-release/feed/"),
    ),
    "Bitcoin and mining": (
        ("CoinDesk", "https://www.coindesk.com/arc/outboundfeeds/rss/"),
        ("Bitcoin Optech", "https://bitcoinops.org/feed.xml"),
        ("Bitcoin Magazine", "https://bitcoinmagazine.com/feed"),
        ("Hashrate Index", "https://hashrateindex.com/blog/rss/"),
    ),
}


def outlines(groups: Sequence[str]) -> list[Outline]:
    """Returns the sources of these groups, each in a folder named after its group. The feeds give their own titles."""
    return [Outline(address, folder=group) for group in GROUPS if group in groups for _, address in GROUPS[group]]
