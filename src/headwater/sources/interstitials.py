"""Web pages that arrive instead of what was requested: an ordinary page, a bot check, a login form."""

from __future__ import annotations

import re

from headwater.errors import Blocked, NotAFeed, ReadFailed

_PAGE = re.compile(
    rb"(?:\s|\xef\xbb\xbf|<\?xml[^>]*+>|<!--(?>.*?-->))*+<(?:!doctype\s+html|html|head|body)\b",
    re.DOTALL | re.IGNORECASE,
)
# These are only on pages that test the visitor: markup of the services that make such pages, and their titles.
_BOT_CHECK = re.compile(
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
_SEARCHED = 262_144  # bytes


def is_html(body: bytes) -> bool:
    return _PAGE.match(body, 0, 65_536) is not None


def is_bot_check(page: bytes) -> bool:
    return _BOT_CHECK.search(page, 0, _SEARCHED) is not None


def has_login_form(page: bytes) -> bool:
    return _LOGIN.search(page, 0, _SEARCHED) is not None


def page_instead(page: bytes, wanted: str = "the feed") -> ReadFailed:
    """The failure to report when a web page arrived and something else was wanted."""
    return blocked(page, wanted) or NotAFeed("The address is a web page, not a feed.")


def blocked(page: bytes, wanted: str) -> Blocked | None:
    """The failure to report if a page keeps programs out; None if it does not."""
    if is_bot_check(page):
        return Blocked(f"The server answered with a bot check instead of {wanted}.")
    if has_login_form(page):
        return Blocked(f"The server answered with a login page instead of {wanted}.")
    return None
