"""Vanilla Forums."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

VANILLA = Profile(
    name="vanilla",
    signs=".ItemDiscussion, .ItemComment, .MessageList.Discussion",
    thread="li.ItemDiscussion, tr.ItemDiscussion",
    thread_link=".Title a | a.Title",
    thread_id="discussion/{number} | Discussion_{number}",
    replies=".CommentCount .Number | .CommentCount",
    last=".LastCommentDate time@datetime | .CommentDate@href",
    created=".FirstUser time@datetime",
    pinned=".Announcement.ItemDiscussion, .Tag-Announcement",
    boards=".CategoryNameHeading a, .ItemCategory .Title a",
    title=".Discussion h1 | h1",
    post="[id^='Discussion_'].ItemDiscussion, .ItemDiscussion:has(.Message), .ItemComment",
    author=".Author .Username | .Username",
    date="time@datetime",
    content=".Message",
    dropped=".Signature",
    next_page="a.Next@href",
)
