"""Stack Exchange: questions are threads, answers are posts."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

STACKEXCHANGE = Profile(
    name="stackexchange",
    signs="body.question-page #question, .s-post-summary[data-post-id], #question[data-questionid]",
    thread=".s-post-summary[data-post-id]",
    thread_link=".s-post-summary--content-title a | h3 a",
    thread_id="questions/{number}",
    replies=".s-post-summary--stats-item[title*='answer'] .s-post-summary--stats-item-number",
    last=".s-user-card--time .relativetime@title",
    title="#question-header h1",
    post="#question, .answer",
    post_id="@data-answerid | @data-questionid | @id",
    author=".post-signature:last-child .user-details a | .user-details a | .user-details [itemprop='name']",
    date="[itemprop='dateCreated']@datetime | .post-signature:last-child .relativetime@title | .relativetime@title",
    content=".js-post-body | .post-text",
    dropped=".js-post-notice",
    next_page="a[rel='next']@href",
)
