"""Answers that no API should give, with what reading them has to raise."""

from __future__ import annotations

from headwater.errors import Blocked, EmptyAnswer, NotAFeed

NO_OBJECT = ((b"", EmptyAnswer), (b"null", NotAFeed), (b"[]", NotAFeed))
BOT_WALL = (b"<html><title>Just a moment</title></html>", Blocked)
# What an API says is left of a window, when it says the next begins, and for how many seconds to wait then. With one
# left nobody asks, because two requests may be in flight.
COUNTED = (("", "", None), ("0", "300", 300), ("1", "300", 300), ("2", "300", None), ("nan", "300", None))
