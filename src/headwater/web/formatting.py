"""What pages say about times, states and texts, and their bar charts. Pure: data in, words and bars out."""

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

CHART_WIDTH = 600
CHART_HEIGHT = 80


class StateLabel(NamedTuple):
    """How a source is doing: a word, its tone (which colour) and its icon."""

    word: str
    tone: str
    icon: str


_STATES = {
    "new": StateLabel("Looking for the feed…", "busy", "search"),
    "ok": StateLabel("Working", "good", "check"),
    "empty": StateLabel("Empty", "quiet", "circle"),
    "silent": StateLabel("Silent", "quiet", "circle"),
    "failing": StateLabel("Failing", "bad", "alert"),
    "blocked": StateLabel("Blocked", "bad", "block"),
    "retired": StateLabel("Gone for good", "quiet", "archive"),
}


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"), ("Mac OS", "macOS"),
            ("Linux", "Linux"))  # fmt: skip


def browser(agent: str | None) -> str:
    """Says which browser a session belongs to."""
    found = next((name for sign, name in _BROWSERS if sign in (agent or "")), None)
    system = next((name for sign, name in _SYSTEMS if sign in (agent or "")), None)
    return " on ".join(one for one in (found, system) if one) or "A browser"


def state_of(source: WatchedSource) -> StateLabel:
    return _STATES.get(source.status, StateLabel(source.status, "quiet", "circle"))


def name_of(source: WatchedSource) -> str:
    """Returns its title, or its address without the scheme until it has one."""
    return source.title.partition("://")[2].rstrip("/") if source.title == source.address else source.title


def progress(checkpoint: CheckpointRow) -> str:
    """Says how far the crawl of a list got."""
    pages = f"{checkpoint.current_page:,} {'page' if checkpoint.current_page == 1 else 'pages'} of the list read"
    if checkpoint.status == "completed":
        return f"complete, {pages}"
    return f"{'stopped by an error' if checkpoint.status == 'error' else 'under way'}, {pages}"


def crawl_stats(stats: Mapping[str, int]) -> str:
    """Says what a crawl did, the most important first."""
    named = (("new", "new posts"), ("updated", "updated"), ("done", "read"), ("failed", "failed"),
             ("item_pages", "pages of items"), ("images", "images"))  # fmt: skip
    return ", ".join(f"{stats[name]:,} {word}" for name, word in named if stats.get(name)) or "nothing new"


def is_settled(source: WatchedSource, now: datetime) -> bool:
    """Whether nothing is about to change: no visit under way, none due."""
    return not source.active or (not source.checking and source.next_check_at > now and source.status != "new")


def next_check(source: WatchedSource, now: datetime) -> str:
    if not source.active:
        return "no longer checked"
    if source.checking:
        return "being checked now"
    when = "due now" if source.next_check_at <= now else until(source.next_check_at, now)
    if source.waits_for is None:
        return when
    waits = f"waits for {source.waits_for}" if source.waits_for.startswith(("its ", "our ")) else source.waits_for
    return f"{waits}, {when}"


def intervals(chosen: int | None) -> list[tuple[int, str, bool]]:
    """Returns the intervals that a reader can choose, in minutes and in words, and which one is chosen."""
    offered = sorted({5, 15, 30, 60, 120, 360, 720, 1440, 10080, *([chosen] if chosen else [])})
    return [(minutes, _exact_span(minutes), minutes == chosen) for minutes in offered]


def _exact_span(minutes: int) -> str:
    """Says how long it is, in the largest unit that it is a multiple of."""
    if minutes % (24 * 60) == 0:
        return "1 day" if minutes == 24 * 60 else f"{minutes // (24 * 60)} days"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def ago(then: datetime, now: datetime) -> str:
    """Says how long ago it was, briefly. For more than a week ago, gives the date."""
    if then > now + timedelta(minutes=1):
        return until(then, now)
    passed = now - then
    if passed < timedelta(minutes=1):
        return "just now"
    if passed < timedelta(days=7):
        return f"{_span(passed)} ago"
    return f"{then.day} {then:%b}" if then.year == now.year else f"{then.day} {then:%b %Y}"


def until(then: datetime, now: datetime) -> str:
    left = then - now
    return "in a moment" if left < timedelta(minutes=1) else f"in {_span(left)}"


def exact(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local:%A}, {local.day} {local:%B %Y, %H:%M %Z}"


def day(moment: datetime, now: datetime, zone: tzinfo) -> str:
    """Returns the heading of the day that a post belongs to."""
    date, today = moment.astimezone(zone).date(), now.astimezone(zone).date()
    if date > today:
        return "Upcoming"
    if date == today:
        return "Today"
    if date == today - timedelta(days=1):
        return "Yesterday"
    return f"{date:%A}, {date.day} {date:%B}" + (f" {date.year}" if date.year != today.year else "")


def zone_named(name: str | None) -> tzinfo:
    """Returns the browser's time zone, or UTC if it names none that we know."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"


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
    if tellings > len(members):
        return f"told {'more than ' if tellings >= MOST_COUNTED else ''}{others:,} more times"
    sources = len({member.source_id for member in members[1:]} - {members[0].source_id})
    if not sources:
        return f"told {others} more time{'s' if others > 1 else ''} by the same source"
    told = f"also told by {sources} other source{'s' if sources > 1 else ''}"
    return told if others == sources else f"{told}, {others} times in all"


def first_of(first: FirstTold) -> str:
    """Says who told a story first, and how long before the next."""
    by_sight = "" if first.is_claimed else " (by when it was first seen)"
    if first.lead_seconds is None:
        return f"First: {first.source}{by_sight}"
    lead = timedelta(seconds=first.lead_seconds)
    ahead = "moments" if lead < timedelta(minutes=1) else _span(lead)
    return f"First: {first.source}, {ahead} before the next{by_sight}"


def key_of(story: Story) -> str:
    """Names an entry of the stream as it stands: one that was updated has another name."""
    return f"{story.post.id}@{iso(story.at.created_at)}"


def replies(count: int) -> str:
    """Says how many replies a thread has."""
    most = MOST_REPLIES - 1
    return f"more than {most:,} replies" if count >= most else f"{count:,} {'reply' if count == 1 else 'replies'}"


def new_replies(thread: Thread) -> str:
    """Says how many replies are new, or that all are."""
    new = thread.new_replies
    if new == thread.replies and not thread.first_is_read:
        return "all new" if new > 1 else "new"
    most = f"{MOST_NEW_REPLIES} or more" if new >= MOST_NEW_REPLIES else f"{new}"
    return f"{most} new {'reply' if new == 1 else 'replies'}"


def updated(news: Sequence[Told]) -> str:
    """Says how much is new in a story that was read."""
    facts = sum(len(one.sentences) or len(one.numbers) + len(one.names) for one in news)
    if not facts:
        return f"Updated: {_several(len(news), 'new telling')}"
    return f"Updated: {_several(facts, 'new fact')}"


def new_facts(one: Told) -> list[str]:
    """Returns what a telling says that is new: its sentences, or else the numbers and names."""
    return [*one.sentences] or [" ".join(["new:", ", ".join([*one.numbers, *one.names])])]


def source_among(members: Sequence[ShownMember], post_id: int) -> str:
    """Returns the name of the source of a member, or what to call it if it is not among these."""
    return next((member.source for member in members if member.post_id == post_id), "An earlier telling")


def _several(count: int, thing: str) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return f"{words[count] if count < len(words) else count} {thing}{'' if count == 1 else 's'}"


def why_folded(member: ShownMember) -> str:
    """Says why a post is in a story."""
    return member.why or "the first that arrived"


def undone_by(parted: PartedStory) -> str:
    """Says who took a story apart, and for whom."""
    what = "Undone" if parted.action == "undone" else "Taken apart"
    return f"{what} by {parted.by or 'those who run this server'}{' for everybody' if parted.for_everybody else ''}"


def past_decision(one: PastDecision) -> str:
    """Writes a decision as a line of a story's history."""
    if one.action == "undone":
        return "The story was undone by hand."
    if one.action == "parted":
        return f"Post {one.post_id} was taken out by hand."
    if one.action == "met":
        return f"The story of post {one.post_id} became part of this one: {one.why} ({one.score:.2f})."
    return f"Post {one.post_id} joined: {one.why} ({one.rule}, {one.score:.2f})."


def _span(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h"
    days = minutes // (24 * 60)
    return "1 day" if days == 1 else f"{days} days"


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
