"""The forum software we know, and which of it made a page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headwater.sources.forums.bbpress import BBPRESS
from headwater.sources.forums.discourse_pages import DISCOURSE
from headwater.sources.forums.discuz import DISCUZ
from headwater.sources.forums.flarum_pages import FLARUM
from headwater.sources.forums.fluxbb import FLUXBB
from headwater.sources.forums.invision import INVISION
from headwater.sources.forums.mybb import MYBB
from headwater.sources.forums.nodebb import NODEBB
from headwater.sources.forums.page import HtmlPage
from headwater.sources.forums.phpbb import PHPBB
from headwater.sources.forums.profile import Profile
from headwater.sources.forums.smf import SMF
from headwater.sources.forums.stackexchange import STACKEXCHANGE
from headwater.sources.forums.v2ex import V2EX
from headwater.sources.forums.vanilla import VANILLA
from headwater.sources.forums.vbulletin import VBULLETIN
from headwater.sources.forums.xenforo import XENFORO

# Those with names of their own for everything come first; phpBB's are words that others use too.
_IN_ORDER = (
    DISCOURSE,
    XENFORO,
    DISCUZ,
    INVISION,
    NODEBB,
    FLARUM,
    STACKEXCHANGE,
    V2EX,
    VBULLETIN,
    SMF,
    MYBB,
    FLUXBB,
    VANILLA,
    BBPRESS,
    PHPBB,
)
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _IN_ORDER})


def maker_of(page: HtmlPage) -> Profile | None:
    """The software that made a page; None: none that we know."""
    return next((profile for profile in _IN_ORDER if page.root.css_first(profile.signs) is not None), None)
