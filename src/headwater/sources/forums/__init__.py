"""Forums: how pages of each software name threads and tell posts. `sources/forum.py` is the way in."""
