"""What pages say about times, states and texts, and their bar charts. Data in, words and bars out.

The words are those of the language in which the page is shown (`web/language.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headwater.app.shapes import iso
from headwater.app.tellings import MOST_COUNTED, MOST_NEW_REPLIES, MOST_REPLIES, FirstTold, Told
from headwater.store.posts.stream import Story
from headwater.store.posts.threads import Thread
from headwater.store.sources import WatchedSource
from headwater.store.stories import PastDecision
from headwater.store.stories.folded import ShownMember
from headwater.store.stories.partings import PartedStory
from headwater.store.visits.checkpoints import CheckpointRow
from headwater.text import EXCERPT_CHARACTERS as EXCERPT_CHARACTERS
from headwater.text import excerpt as excerpt
from headwater.text import headline as headline
from headwater.web.language import gettext as _
from headwater.web.language import long_date, moment, ngettext, noted, short_date
from headwater.web.language import number as number

CHART_WIDTH = 600
CHART_HEIGHT = 80


class StateLabel(NamedTuple):
    """How a source is doing: a word, its tone (which colour) and its icon."""

    word: str
    tone: str
    icon: str


_STATES = {
    "new": StateLabel(noted("Looking for the feed…"), "busy", "search"),
    "ok": StateLabel(noted("Working"), "good", "check"),
    "empty": StateLabel(noted("Empty"), "quiet", "circle"),
    "silent": StateLabel(noted("Silent"), "quiet", "circle"),
    "failing": StateLabel(noted("Failing"), "bad", "alert"),
    "blocked": StateLabel(noted("Blocked"), "bad", "block"),
    "retired": StateLabel(noted("Gone for good"), "quiet", "archive"),
}


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"), ("Mac OS", "macOS"),
            ("Linux", "Linux"))  # fmt: skip


def browser(agent: str | None) -> str:
    """Says which browser a session belongs to."""
    found = next((name for sign, name in _BROWSERS if sign in (agent or "")), None)
    system = next((name for sign, name in _SYSTEMS if sign in (agent or "")), None)
    if found and system:
        return _("{browser} on {system}").format(browser=found, system=system)
    return found or system or _("A browser")


def role_of(role: str, tenant: str) -> str:
    """Says what somebody is in a tenant."""
    return _("{role} of {tenant}").format(role=sentence(_(role)), tenant=tenant)


def as_role(role: str) -> str:
    """Says as what somebody was invited."""
    return {
        "owner": _("an owner"), "operator": _("an operator"), "member": _("a member"), "viewer": _("a viewer"),
    }.get(role, role)  # fmt: skip


def sentence(words: str) -> str:
    """Begins a sentence with these words. The rest of them stays as it is."""
    return words[:1].upper() + words[1:]


def state_of(source: WatchedSource) -> StateLabel:
    found = _STATES.get(source.status, StateLabel(source.status, "quiet", "circle"))
    return found._replace(word=_(found.word))


def name_of(source: WatchedSource) -> str:
    """Returns its title, or its address without the scheme until it has one."""
    return source.title.partition("://")[2].rstrip("/") if source.title == source.address else source.title


def progress(checkpoint: CheckpointRow) -> str:
    """Says how far the crawl of a list got."""
    page = checkpoint.current_page
    pages = ngettext("{count} page of the list read", "{count} pages of the list read", page).format(count=number(page))
    if checkpoint.status == "completed":
        return _("complete, {pages}").format(pages=pages)
    if checkpoint.status == "error":
        return _("stopped by an error, {pages}").format(pages=pages)
    return _("under way, {pages}").format(pages=pages)


def crawl_stats(stats: Mapping[str, int]) -> str:
    """Says what a crawl did, the most important first."""
    named = {
        "new": _("{count} new posts"), "updated": _("{count} updated"), "done": _("{count} read"),
        "failed": _("{count} failed"), "item_pages": _("{count} pages of items"), "images": _("{count} images"),
    }  # fmt: skip
    told = [words.format(count=number(stats[name])) for name, words in named.items() if stats.get(name)]
    return ", ".join(told) or _("nothing new")


def is_settled(source: WatchedSource, now: datetime) -> bool:
    """Whether nothing is about to change: no visit under way, none due."""
    return not source.active or (not source.checking and source.next_check_at > now and source.status != "new")


def next_check(source: WatchedSource, now: datetime) -> str:
    if not source.active:
        return _("no longer checked")
    if source.checking:
        return _("being checked now")
    when = _("due now") if source.next_check_at <= now else until(source.next_check_at, now)
    if source.waits_for is None:
        return when
    if not source.waits_for.startswith(("its ", "our ")):
        return f"{source.waits_for}, {when}"
    return _("waits for {what}, {when}").format(what=source.waits_for, when=when)


def intervals(chosen: int | None) -> list[tuple[int, str, bool]]:
    """Returns the intervals that a reader can choose, in minutes and in words, and which one is chosen."""
    offered = sorted({5, 15, 30, 60, 120, 360, 720, 1440, 10080, *([chosen] if chosen else [])})
    return [(minutes, _exact_span(minutes), minutes == chosen) for minutes in offered]


def _exact_span(minutes: int) -> str:
    """Says how long it is, in the largest unit that it is a multiple of."""
    if minutes % (24 * 60) == 0:
        return _days(minutes // (24 * 60))
    return _hours(minutes // 60) if minutes % 60 == 0 else _minutes(minutes)


def _days(count: int) -> str:
    return ngettext("{count} day", "{count} days", count).format(count=count)


def _hours(count: int) -> str:
    return _("{count} h").format(count=count)


def _minutes(count: int) -> str:
    return _("{count} min").format(count=count)


def ago(then: datetime, now: datetime) -> str:
    """Says how long ago it was, briefly. For more than a week ago, gives the date."""
    if then > now + timedelta(minutes=1):
        return until(then, now)
    passed = now - then
    if passed < timedelta(minutes=1):
        return _("just now")
    if passed < timedelta(days=1):
        return _("{span} ago").format(span=_span(passed))
    if passed < timedelta(days=7):
        return ngettext("{count} day ago", "{count} days ago", passed.days).format(count=passed.days)
    return short_date(then.date(), with_year=then.year != now.year)


def until(then: datetime, now: datetime) -> str:
    left = then - now
    if left < timedelta(minutes=1):
        return _("in a moment")
    if left < timedelta(days=1):
        return _("in {span}").format(span=_span(left))
    return ngettext("in {count} day", "in {count} days", left.days).format(count=left.days)


def exact(then: datetime, zone: tzinfo) -> str:
    return moment(then, zone)


def day(then: datetime, now: datetime, zone: tzinfo) -> str:
    """Returns the heading of the day that a post belongs to."""
    date, today = then.astimezone(zone).date(), now.astimezone(zone).date()
    if date > today:
        return _("Upcoming")
    if date == today:
        return _("Today")
    if date == today - timedelta(days=1):
        return _("Yesterday")
    return long_date(date, with_year=date.year != today.year)


def zone_named(name: str | None) -> tzinfo:
    """Returns the browser's time zone, or UTC if it names none that we know."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{number(count / 1024)} KB" if count < 1024 * 1024 else f"{number(count / 1024 / 1024, 1)} MB"


def amount(value: float | None, unit: str) -> str:
    """Formats a value for people."""
    if value is None:
        return "–"
    if unit == "seconds":
        return _length(value)
    if unit == "bytes":
        return size(int(value))
    return f"{value:.2%}" if unit == "share" else f"{value:,.0f}"


def _length(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for length, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def also_in(members: Sequence[ShownMember], tellings: int) -> str:
    """Says how often a story was told, apart from the post that is shown."""
    others = tellings - 1
    if tellings >= MOST_COUNTED:
        return _("told more than {count} more times").format(count=number(others))
    if tellings > len(members):
        return _("told {count} more times").format(count=number(others))
    sources = len({member.source_id for member in members[1:]} - {members[0].source_id})
    if not sources:
        told = ngettext(
            "told {count} more time by the same source", "told {count} more times by the same source", others
        )
        return told.format(count=others)
    told = ngettext("also told by {count} other source", "also told by {count} other sources", sources)
    told = told.format(count=sources)
    return told if others == sources else _("{told}, {count} times in all").format(told=told, count=others)


def first_of(first: FirstTold) -> str:
    """Says who told a story first, and how long before the next."""
    by_sight = "" if first.is_claimed else " " + _("(by when it was first seen)")
    if first.lead_seconds is None:
        return _("First: {source}").format(source=first.source) + by_sight
    lead = timedelta(seconds=first.lead_seconds)
    if lead < timedelta(minutes=1):
        return _("First: {source}, moments before the next").format(source=first.source) + by_sight
    return _("First: {source}, {span} before the next").format(source=first.source, span=_span(lead)) + by_sight


def key_of(story: Story) -> str:
    """Names an entry of the stream as it stands: one that was updated has another name."""
    return f"{story.post.id}@{iso(story.at.created_at)}"


def replies(count: int) -> str:
    """Says how many replies a thread has."""
    most = MOST_REPLIES - 1
    if count >= most:
        return _("more than {count} replies").format(count=number(most))
    return ngettext("{count} reply", "{count} replies", count).format(count=number(count))


def new_replies(thread: Thread) -> str:
    """Says how many replies are new, or that all are."""
    new = thread.new_replies
    if new == thread.replies and not thread.first_is_read:
        return _("all new") if new > 1 else _("new")
    if new >= MOST_NEW_REPLIES:
        return _("{count} or more new replies").format(count=MOST_NEW_REPLIES)
    return ngettext("{count} new reply", "{count} new replies", new).format(count=new)


def updated(news: Sequence[Told]) -> str:
    """Says how much is new in a story that was read."""
    facts = sum(len(one.sentences) or len(one.numbers) + len(one.names) for one in news)
    if not facts:
        told = ngettext("Updated: {count} new telling", "Updated: {count} new tellings", len(news))
        return told.format(count=_few(len(news)))
    return ngettext("Updated: {count} new fact", "Updated: {count} new facts", facts).format(count=_few(facts))


def new_facts(one: Told) -> list[str]:
    """Returns what a telling says that is new: its sentences, or else the numbers and names."""
    return [*one.sentences] or [_("new: {facts}").format(facts=", ".join([*one.numbers, *one.names]))]


def source_among(members: Sequence[ShownMember], post_id: int) -> str:
    """Returns the name of the source of a member, or what to call it if it is not among these."""
    return next((member.source for member in members if member.post_id == post_id), _("An earlier telling"))


def _few(count: int) -> str:
    words = (
        _("no"), _("one"), _("two"), _("three"), _("four"), _("five"), _("six"), _("seven"), _("eight"), _("nine"),
    )  # fmt: skip
    return words[count] if count < len(words) else number(count)


def why_folded(member: ShownMember) -> str:
    """Says why a post is in a story."""
    if not member.why:
        return _("the first that arrived")
    return _why_told(member.why, member.score) if member.rule == "story" else member.why


def _why_told(why: str, score: float) -> str:
    """Says why a post tells a story. What is stored is `shares: WORDS; SCORE`, or why two stories became one."""
    reason, percent = why.rpartition("; ")[0] or why, f"{number(100 * score)} %"
    if reason.startswith("shares: "):
        words = _("shares {words} ({percent} likely the same event)")
        return words.format(words=reason.removeprefix("shares: "), percent=percent)
    return _("several posts could be in either of two stories ({percent} likely one event)").format(percent=percent)


def undone_by(parted: PartedStory) -> str:
    """Says who took a story apart, and for whom."""
    who = parted.by or _("those who run this server")
    if parted.for_everybody:
        words = (
            _("Undone by {who} for everybody") if parted.action == "undone" else _("Taken apart by {who} for everybody")
        )
    else:
        words = _("Undone by {who}") if parted.action == "undone" else _("Taken apart by {who}")
    return words.format(who=who)


def past_decision(one: PastDecision) -> str:
    """Writes a decision as a line of a story's history."""
    if one.action == "undone":
        return _("The story was undone by hand.")
    if one.action == "parted":
        return _("Post {post} was taken out by hand.").format(post=one.post_id)
    why, score = one.why or "", one.score or 0
    if one.action == "met":
        words = _("The story of post {post} became part of this one: {why}.")
        return words.format(post=one.post_id, why=_why_told(why, score))
    if one.rule == "story":
        return _("Post {post} joined: {why}.").format(post=one.post_id, why=_why_told(why, score))
    words = _("Post {post} joined: {why} ({rule}, {score}).")
    return words.format(post=one.post_id, why=why, rule=one.rule, score=number(score, 2))


def _span(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    if minutes < 60:
        return _minutes(minutes)
    return _hours(minutes // 60) if minutes < 24 * 60 else _days(minutes // (24 * 60))


class Bar(NamedTuple):
    """A bar of a chart, in the units of the chart."""

    label: str
    value: float
    x: float
    y: float
    width: float
    height: float


def bars(
    values: Sequence[tuple[str, float]], width: int = CHART_WIDTH, height: int = CHART_HEIGHT, top: float = 0
) -> list[Bar]:
    """Returns bars side by side. The tallest, or one of `top`, has the full height; any value above 0 can be seen."""
    most = max((value for _, value in values), default=0)
    most = max(most, top) or 1
    room = width / max(1, len(values))
    found = []
    for place, (label, value) in enumerate(values):
        tall = max(2.0, value / most * height) if value else 0.0
        found.append(Bar(label, value, round(place * room, 2), round(height - tall, 2), round(room * 0.8, 2), tall))
    return found
