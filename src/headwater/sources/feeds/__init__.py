"""Reading feeds: from bytes to a raw feed, and from there to posts. `sources/rss.py` is the way in."""
