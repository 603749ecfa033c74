"""What came instead of a feed: an ordinary page, or a page that keeps programs out."""

from __future__ import annotations

import re

from headwater.errors import Blocked, NotAFeed, ReadFailed

_PAGE = re.compile(
    rb"(?:\s|\xef\xbb\xbf|<\?xml[^>]*+>|<!--(?>.*?-->))*+<(?:!doctype\s+html|html|head|body)\b",
    re.DOTALL | re.IGNORECASE,
)
# Words that stand on no page except one that tests its visitor: markup of the services that make them, and titles.
_BOT_WALL = re.compile(
    rb"cf-chl-|cf_chl_|challenge-platform|cf-browser-verification|g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api"
    rb"|px-captcha|perimeterx|_incapsula_resource|captcha-delivery\.com|datadome|within\.website/x/cmd/anubis"
    rb"|sucuri_cloudproxy|ddos protection by|unusual traffic from|enable javascript and cookies to continue"
    rb"|awswafcookiedomainlist|aws-waf-token|/_sec/cp_challenge|id=[\"']?captcha|class=[\"'][^\"'<>]*captcha"
    rb"|<title>\s*(?:just a moment|attention required|access denied|please wait|checking your browser|security check"
    rb"|are you (?:a )?(?:robot|human)|robot check|verify(?:ing)? you are human|making sure you|ddos-guard"
    rb"|403 forbidden|one moment, please|pardon our interruption|bot verification|request rejected|human verification)",
    re.IGNORECASE,
)
_LOGIN = re.compile(rb"<input[^<>]+type\s*=\s*[\"']?password", re.IGNORECASE)
_LOOKED_AT = 262_144


def is_page(body: bytes) -> bool:
    return _PAGE.match(body, 0, 65_536) is not None


def checks_for_robots(page: bytes) -> bool:
    return _BOT_WALL.search(page, 0, _LOOKED_AT) is not None


def has_login(page: bytes) -> bool:
    return _LOGIN.search(page, 0, _LOOKED_AT) is not None


def instead_of_a_feed(page: bytes) -> ReadFailed:
    """What a page means for somebody who asked for a feed."""
    if checks_for_robots(page):
        return Blocked("The server answered with a page that checks for robots instead of the feed.")
    if has_login(page):
        return Blocked("The server answered with a login page instead of the feed.")
    return NotAFeed("The address is a web page, not a feed.")
