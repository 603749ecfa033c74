"""Reading news sites: lists, articles and their metadata. `sources/news.py` is the way in."""
