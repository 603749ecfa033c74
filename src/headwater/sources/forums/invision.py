"""Invision Community (IP.Board 3 to 5)."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

INVISION = Profile(
    name="invision",
    signs=(
        "body.ipsApp, .ipsComment[id^='elComment_'], .ipsEntry, .post_block[id^='post_id_'], .ipsDataItem[data-rowid]"
    ),
    thread=".ipsDataItem[data-rowid], .ipsData__item[data-rowid], tr.__topic",
    thread_link=".ipsDataItem_title a[href*='topic'] | .ipsData__title a | a.topic_title",
    thread_id="topic/{number}- | topic/{number} | showtopic={number}",
    replies=".ipsDataItem_stats_number | .ipsData__stats [data-statType='forums_comments'] | .ipsData__stats li",
    last=".ipsDataItem_lastPoster time@datetime | .ipsData__last time@datetime | .last_post a@title",
    created=".ipsDataItem_meta time@datetime | .ipsData__meta time@datetime",
    pinned=".fa-thumb-tack, .fa-thumbtack, .ipsBadge--pinned, .ipsDataItem_pinned",
    boards=".cForumRow .ipsDataItem_title a, .ipsData__item--forum .ipsData__title a, h4.forum_name a",
    title=".ipsType_pageTitle | .ipsPageHeader__title | h1.ipsType_pagetitle",
    post="article.ipsComment, article.ipsEntry, .post_block[id^='post_id_']",
    post_id="@data-commentid | [data-commentid]@data-commentid | @id",
    author=(
        ".cAuthorPane_author | .ipsComment_author h3 | .ipsEntry__username | .ipsEntry__author h3 | [itemprop='name']"
        " | .author"
    ),
    date=".ipsComment_meta time@datetime | .ipsEntry__date time@datetime | time@datetime | .published@title",
    content="[data-role='commentContent'] | .ipsEntry__content .ipsRichText | .entry-content",
    reply_to="[data-ipsquote-contentcommentid]@data-ipsquote-contentcommentid",
    dropped=".ipsQuote_citation, [data-role='memberSignature'], .ipsEntry__signature, .edit",
    next_page=".ipsPagination_next:not(.ipsPagination_inactive) a@href | .ipsPagination__next a@href",
)
