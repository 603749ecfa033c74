"""Reading forums: profiles of their software, and the pages of lists and threads. `sources/forum.py` is the way in."""
