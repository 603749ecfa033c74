"""XenForo 1 and 2."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

XENFORO = Profile(
    name="xenforo",
    signs="html#XF, html#XenForo, html[data-xf], article.message[data-content^='post-'], .structItem--thread",
    thread=".structItem--thread, li.discussionListItem",
    thread_link=(
        ".structItem-title a[data-tp-primary] | .structItem-title a:not(.labelLink) | .title a.PreviewTooltip"
        " | .title a:not(.prefixLink)"
    ),
    thread_id="threads/*.{number} | threads/{number} | thread-{number} | threadListItem-{number}",
    replies=".structItem-cell--meta dd | .stats .major dd",
    last=".structItem-latestDate@datetime | .lastPostInfo .DateTime@data-time | .lastPostInfo .DateTime@title",
    created=".structItem-startDate time@datetime | .posterDate .DateTime@data-time | .posterDate .DateTime@title",
    pinned=".structItem-status--sticky, .structItemContainer-group--sticky .structItem, .discussionListItem.sticky",
    boards=".node--forum .node-title a, .node.forum .nodeTitle a",
    title="h1.p-title-value | .titleBar h1",
    post=(
        "article.message[data-content^='post-'], article.message--post, article.js-post, .js-messageCard,"
        " li.message[id^='post-']"
    ),
    post_id="@data-content | @id",
    author="@data-author | .message-name | .MessageCard__user-info__name | .username",
    date=(
        ".message-attribution time@datetime | time.u-dt@datetime | .messageMeta .DateTime@data-time"
        " | .messageMeta .DateTime@title | .messageMeta .DateTime"
    ),
    content=".message-body .bbWrapper | .message-body | .message-content .bbWrapper | .messageText",
    reply_to=".bbCodeBlock--quote@data-source | .bbCodeQuote .AttributionLink@href",
    dropped=".bbCodeBlock-expandLink, .quoteExpand, .message-signature, .messageTextEndMarker, .js-selectToQuoteEnd",
    next_page="a.pageNav-jump--next@href | .PageNav a.text:last-child@href",
)
