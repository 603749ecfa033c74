"""What a person sees of X's month on the page about crawling."""

from __future__ import annotations

from api.running import running
from headwater.access.x import METER, keep_token
from headwater.follow.add import follow
from headwater.store.sources import limits
from headwater.store.sources.limits import MonthlyAllowance


def test_the_page_about_crawling_says_what_x_needs_and_what_of_the_month_is_used(store_url: str) -> None:
    with running(store_url, HEADWATER_SECRET_KEY="a key") as headwater:
        parts = headwater.parts
        assert "<dt>X</dt>" not in headwater.browser().get("/crawling").text
        parts.db.write_now(follow, headwater.owner, "@hashrate", parts.now())
        assert "no token for it is set" in headwater.browser().get("/crawling").text
        parts.db.write_now(keep_token, parts.seal("a-bearer-token"), parts.now())
        parts.db.write_now(limits.count_request, METER, MonthlyAllowance(0, 0), parts.now())
        parts.db.write_now(limits.count_posts, METER, 1234, parts.now())
        page = headwater.browser().get("/crawling").text
    assert "1 of 10,000 requests and 1,234 of 10,000 posts this month" in page
    assert "a-bearer-token" not in page
