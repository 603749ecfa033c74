"""Sources, their visits, and what came of following, importing and refreshing."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from headwater.app.shapes.shape import Example, Time


class SourceJson(TypedDict):
    """Something watched, how it is doing, and when it was and will be checked."""

    id: Annotated[int, Example(12)]
    kind: Annotated[str, Example("rss")]
    address: Annotated[str, Example("https://example.org/feed.xml")]
    title: Annotated[str, Example("Example Journal")]
    folder: Annotated[str | None, Example("Science")]
    site_url: Annotated[str | None, Example("https://example.org/")]
    status: Annotated[str, Example("ok", "new, ok, silent, empty, failing, blocked or retired")]
    active: Annotated[bool, Example(True, "false: it is no longer visited")]
    created_at: Annotated[Time, Example("2026-01-05T08:00:00Z")]
    last_crawled_at: Annotated[Time | None, Example("2026-01-07T09:30:00Z")]
    next_check_at: Annotated[Time, Example("2026-01-07T10:00:00Z")]
    checking: Annotated[bool, Example(False, "true: it is being visited at this moment")]
    waits_for: Annotated[str | None, Example(None, "why a due source is not visited yet")]
    newest_post_at: Annotated[Time | None, Example("2026-01-07T09:12:00Z")]
    interval_seconds: Annotated[int | None, Example(1800)]
    consecutive_failures: Annotated[int, Example(0)]
    failing_since: Annotated[Time | None, Example(None)]
    last_error_code: Annotated[str | None, Example(None)]
    last_error: Annotated[str | None, Example(None)]
    truncated: Annotated[bool, Example(False, "true: its page has more, or broke off; only its first part is read")]
    note: Annotated[str, Example("", "what to know about how it is read; empty: nothing")]
    gap_at: Annotated[Time | None, Example(None, "when posts were last missed between two visits")]


class VisitJson(TypedDict):
    """One visit of a source."""

    started_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    seconds: Annotated[float, Example(0.21)]
    outcome: Annotated[str, Example("ok", "ok, unchanged, empty or failed")]
    http_status: Annotated[int | None, Example(200)]
    bytes: Annotated[int, Example(18230)]
    new: Annotated[int, Example(2)]
    updated: Annotated[int, Example(0)]
    duplicates: Annotated[int, Example(18)]
    truncated: Annotated[bool, Example(False)]
    gap: Annotated[bool, Example(False, "true: posts were missed since the visit before")]
    error: Annotated[str | None, Example(None)]


class SourceDetailJson(SourceJson):
    """A source with the number of its posts and its latest visits."""

    pushed_since: Annotated[
        Time | None, Example("2026-01-06T07:00:00Z", "since when a hub pushes it (WebSub); null: it is polled")
    ]
    posts: Annotated[int, Example(120)]
    visits: list[VisitJson]


class Refresh(TypedDict):
    status: Annotated[Literal["queued", "already_running"], Example("queued")]


class RefreshAll(TypedDict):
    asked: Annotated[int, Example(204)]


class Scheduled(TypedDict):
    task_id: Annotated[str, Example("visit-12-1767778200")]
    status: Annotated[Literal["queued", "already_running"], Example("queued")]
    delay_seconds: Annotated[int, Example(540)]


class Refused(TypedDict):
    address: Annotated[str, Example("ftp://example.org/")]
    reason: Annotated[str, Example("Only http:// and https:// addresses can be used.")]


class ImportReport(TypedDict):
    added: Annotated[int, Example(12)]
    already: Annotated[int, Example(3)]
    refused: list[Refused]
