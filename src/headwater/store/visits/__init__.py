"""Visits: what they write, in one transaction that is fenced by the lease, and the record of past ones.

A visit writes posts, the state of its source, and a row of its own. The rest of the package: `checkpoints` and `items`
say how far the crawl of a list got, and `metrics` counts visits and raises alerts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.ids import trace_id
from headwater.model import Facts, Post, SavedVisit, StoredPost, Visit
from headwater.store import posts, sources
from headwater.store.sources import leases, schedule
from headwater.store.sources.pool import QUIET, UNSEEN_FOR
from headwater.store.sources.schedule import FinishedTask
from headwater.store.sql import Prepared, columns, insert_into, json_text, json_value, portable

ROLLING = 8.0  # how many visits an average covers
TASK_RETRIES = 3
LATELY = timedelta(hours=24)
RATED_VISITS = 100  # over which the share of known posts is taken
GOOD = ("ok", "unchanged", "empty")


class PastVisit(NamedTuple):
    started_at: datetime
    seconds: float
    outcome: str
    http_status: int | None
    bytes: int
    new: int
    updated: int
    duplicates: int
    truncated: bool
    gap: bool
    error: str | None


class VisitHits(NamedTuple):
    """How the visits of a source went since it was added, the number of posts in its cached listing, and the share of
    known posts in what its latest visits read. None: they read nothing."""

    success_hit: int
    empty_hit: int
    failure_hit: int
    posts_cached: int
    dedup_rate: float | None


class VisitElsewhere(NamedTuple):
    """A visit that another process made, as a report shows it."""

    source: str
    source_id: int
    outcome: str
    new: int = 0
    updated: int = 0
    duplicates: int = 0
    watermark_updated: bool = False
    truncated: bool = False
    gap: bool = False
    unfinished: bool = False
    seconds: float = 0.0
    error: str | None = None


class _LeasedSource(NamedTuple):
    """A source as its visit finds it before it is written. `visits` counts the successful ones."""

    id: int
    address: str
    lease_owner: str | None
    lease_until: datetime | None
    status: str
    visits: int
    last_seen_created_at: datetime | None
    task_id: str | None


_select_leased = portable(
    """SELECT id, address, lease_owner, lease_until, status, success_hit + empty_hit, last_seen_created_at, task_id
    FROM sources WHERE id IN (?)""",
    postgresql=" ORDER BY id FOR UPDATE",
    row=_LeasedSource,
)
_settle = portable(
    f"""UPDATE sources SET
        etag = :etag, last_modified = :last_modified, body_hash = :body_hash, validated_at = :validated_at,
        last_crawled_at = :started_at, last_seen_post_id = :last_seen_post_id,
        last_seen_created_at = :last_seen_created_at, next_check_at = :next_check_at, waits_for = :waits_for,
        not_before = :not_before, lease_owner = NULL, lease_until = NULL,
        asked_at = CASE WHEN :keeps_task THEN asked_at END, task_id = CASE WHEN :keeps_task THEN task_id END,
        status = :status, active = CASE WHEN :status = 'retired' THEN FALSE
            WHEN status = 'retired' THEN EXISTS (SELECT 1 FROM subscriptions f WHERE f.source_id = sources.id)
            ELSE active END,
        success_hit = success_hit + :success, failure_hit = failure_hit + :failure,
        empty_hit = empty_hit + CASE WHEN :is_empty OR (:is_failure AND pooled_at IS NOT NULL
            AND avg_valid_posts < {QUIET} AND last_crawled_at < :unseen_since) THEN 1 ELSE 0 END,
        consecutive_failures = CASE WHEN :is_good THEN 0 ELSE consecutive_failures + :failure END,
        failing_since = CASE WHEN :is_good THEN NULL ELSE COALESCE(failing_since, :started_at) END,
        last_error_code = :error_code, last_error = :error,
        avg_valid_posts = COALESCE(avg_valid_posts + (:valid_posts - avg_valid_posts) / {ROLLING},
            :valid_posts, avg_valid_posts),
        quality_score = COALESCE(quality_score + (:quality - quality_score) / {ROLLING}, :quality, quality_score)
    WHERE id = :source_id"""
)
_published = portable(
    "SELECT source_id, count(*) FROM posts WHERE source_id IN (?) AND created_at >= ? GROUP BY source_id"
)
_put_back = portable(
    "UPDATE sources SET next_check_at = ?, waits_for = ?, lease_owner = NULL, lease_until = NULL WHERE id = ?"
)
_set_facts = portable(
    """UPDATE sources SET title = CASE WHEN :title <> '' THEN :title ELSE title END,
        site_url = COALESCE(:link, site_url), language = COALESCE(:language, language), truncated = :truncated,
        note = :note, gap_at = CASE WHEN :gap THEN :started_at ELSE gap_at END
    WHERE id = :source_id"""
)
_settings = portable("SELECT settings FROM sources WHERE id = ?")
_set_settings = portable("UPDATE sources SET settings = ? WHERE id = ?")
_become = portable("UPDATE sources SET kind = ?, settings = ? WHERE id = ?")
_insert_crawl = portable(
    insert_into(
        "crawls",
        (
            *("source_id", "started_at", "seconds", "outcome", "http_status", "bytes", "new", "updated"),
            *("duplicates", "watermark_updated", "truncated", "gap", "error_code", "error", "trace"),
        ),
    )
)
_forget_crawls = portable(
    "DELETE FROM crawls WHERE id IN (SELECT id FROM crawls WHERE started_at < ? ORDER BY id LIMIT ?)"
)
_past_visits = portable(
    f"SELECT {columns(PastVisit)} FROM crawls WHERE source_id = ? ORDER BY id DESC LIMIT ?", row=PastVisit
)
_HITS = """SELECT s.success_hit, s.empty_hit, s.failure_hit, COALESCE({length}(c.posts), 0),
        (SELECT CAST(sum(duplicates) AS FLOAT) / NULLIF(sum(new + updated + duplicates), 0)
        FROM (SELECT new, updated, duplicates FROM crawls WHERE source_id = s.id ORDER BY id DESC LIMIT ?) AS latest)
    FROM sources s LEFT JOIN cached_listings c ON c.source_id = s.id WHERE s.id = ?"""
_hits = Prepared(
    sqlite=_HITS.format(length="json_array_length"),
    postgresql=_HITS.format(length="jsonb_array_length"),
    row=VisitHits,
)
_visited_since = portable(
    """SELECT s.address, c.source_id, c.outcome, c.new, c.updated, c.duplicates, c.watermark_updated, c.truncated,
        c.gap, EXISTS (SELECT 1 FROM checkpoints p WHERE p.source_id = c.source_id AND p.status = 'running'),
        c.seconds, c.error
    FROM crawls c JOIN sources s ON s.id = c.source_id
    WHERE c.id IN (SELECT max(id) FROM crawls WHERE source_id IN (?) AND started_at >= ? GROUP BY source_id)""",
    row=VisitElsewhere,
)
_failures_of_task = portable(
    """SELECT count(c.id) FROM visit_tasks t LEFT JOIN crawls c
        ON c.source_id = t.source_id AND c.outcome = 'failed' AND c.started_at >= t.created_at
    WHERE t.id = ? GROUP BY t.id"""
)
_existing = portable("SELECT id FROM sources WHERE id IN (?)")


def save(conn: Connection, visits: Sequence[Visit], now: datetime) -> list[SavedVisit]:
    """Writes these visits, except those that do not hold the lease of their source any more."""
    rows = {row.id: row for row in _select_leased.all(conn, [visit.source_id for visit in visits])}
    held = [visit for visit in visits if _holds(rows.get(visit.source_id), visit, now)]
    merged = _move_sources(conn, held, rows)
    held = [_with_retry(conn, visit, rows[visit.source_id]) for visit in held if visit.source_id not in merged]
    stored = _write_posts(conn, held, rows, now)
    saved = {visit.source_id: _saved(visit, rows[visit.source_id], stored[visit.source_id]) for visit in held}
    _write_state(conn, list(saved.values()), now)
    saved.update(merged)
    saved = {id: _with_task(one, rows[id].task_id) for id, one in saved.items()}
    schedule.finish_tasks(conn, [task_result(one, one.task_id) for one in saved.values() if one.task_id], now)
    return [saved.get(visit.source_id) or _refused(visit, rows.get(visit.source_id)) for visit in visits]


def forget_before(conn: Connection, before: datetime, limit: int = 10_000) -> int:
    return _forget_crawls.once(conn, before, limit)


def _holds(row: _LeasedSource | None, visit: Visit, now: datetime) -> bool:
    if row is None or row.lease_until is None:
        return False
    return row.lease_owner == visit.lease and row.lease_until > now


def _move_sources(conn: Connection, visits: list[Visit], rows: dict[int, _LeasedSource]) -> dict[int, SavedVisit]:
    """Writes new addresses. Returns the visits of sources that were merged into another one."""
    merged = {}
    for visit in visits:
        if visit.moved_to is None:
            continue
        row = rows[visit.source_id]
        if sources.move(conn, visit.source_id, visit.moved_to, newcomer=row.visits == 0) != visit.source_id:
            merged[visit.source_id] = SavedVisit(visit, visit.moved_to, True, row.status, [], False)
    return merged


def _write_posts(
    conn: Connection, visits: list[Visit], rows: dict[int, _LeasedSource], now: datetime
) -> dict[int, list[StoredPost]]:
    found = []
    for visit in visits:
        came = [*visit.posts, *visit.comments]
        if came:
            first = rows[visit.source_id].visits == 0
            known = [] if first else posts.known_posts(conn, visit.source_id, came)
            found += [(visit.source_id, change) for change in posts.changes(came, known)]
    stored: dict[int, list[StoredPost]] = {visit.source_id: [] for visit in visits}
    for (source_id, _), post in zip(found, posts.write_changes(conn, found, now), strict=True):
        stored[source_id].append(post)
    return stored


def _write_state(conn: Connection, saved: list[SavedVisit], now: datetime) -> None:
    settled = [one for one in saved if one.visit.outcome != "deferred"]
    valid = _valid_posts(conn, [one.visit.source_id for one in settled if one.visit.outcome in GOOD], now)
    _settle.many(conn, [_settled(one, valid.get(one.visit.source_id)) for one in settled])
    deferred = [one.visit for one in saved if one.visit.outcome == "deferred"]
    _put_back.many(conn, [(visit.next_check_at, visit.waits_for, visit.source_id) for visit in deferred])
    _set_facts.many(conn, [_learned(one.visit, one.visit.facts) for one in saved if one.visit.facts])
    changed = [(one.visit.source_id, one.visit.becomes) for one in saved if one.visit.becomes]
    _keep_settings(conn, [one.visit for one in saved if one.visit.facts and one.visit.facts.settings])
    _become.many(conn, [(kind, json_text(dict(settings)), source_id) for source_id, (kind, settings) in changed])
    for one in saved:
        if one.visit.pause_host_until:
            leases.pause_host(conn, one.visit.host, now, one.visit.pause_host_until, one.visit.waits_for)
    _insert_crawl.many(conn, [_crawl(one) for one in settled])


def _keep_settings(conn: Connection, visits: Sequence[Visit]) -> None:
    """Adds what visits found out about how to read their sources to the settings."""
    for visit in visits:
        assert visit.facts is not None
        settings = json_value(_settings.value(conn, visit.source_id))
        _set_settings.once(conn, json_text({**settings, **visit.facts.settings}), visit.source_id)


def _with_retry(conn: Connection, visit: Visit, row: _LeasedSource) -> Visit:
    """Returns a visit with the time at which its task is tried again, or with none: nobody waits, or it was the last.

    It counts as one failure of the source, however often it is tried: only the last one is blamed on it.
    """
    if visit.retry_at is None:
        return visit
    failures = _failures_of_task.value(conn, row.task_id) if row.task_id else None
    if failures is None or failures >= TASK_RETRIES:  # None: nobody waits; a task is forgotten after a day
        return visit._replace(retry_at=None)
    return visit._replace(next_check_at=visit.retry_at, not_before=visit.retry_at, blames_source=False)


def _with_task(saved: SavedVisit, task_id: str | None) -> SavedVisit:
    """Returns the visit with the task that it finishes, or with the one that a later visit finishes."""
    if saved.visit.outcome == "deferred" or _keeps_task(saved.visit):
        return saved._replace(pending_task_id=task_id)
    return saved._replace(task_id=task_id)


def _keeps_task(visit: Visit) -> bool:
    """Whether another visit follows at once: this one only found out the kind of source, or failed and is repeated."""
    return visit.becomes is not None or visit.retry_at is not None


def task_result(saved: SavedVisit, task_id: str) -> FinishedTask:
    """Returns how the visit of a task went. Pure."""
    visit = saved.visit
    return FinishedTask(
        task_id=task_id,
        success=visit.outcome in GOOD,
        article_count=sum(saved.count(change) for change in ("new", "edited", "touched", "same")),
        duration_ms=round(visit.seconds * 1000),
        error=visit.error,
    )


def _valid_posts(conn: Connection, source_ids: list[int], now: datetime) -> dict[int, float]:
    """Returns how many posts of the last day each source has, which does not depend on how often it is visited."""
    counts = dict(_published.all(conn, source_ids, now - LATELY)) if source_ids else {}
    return {source_id: float(counts.get(source_id, 0)) for source_id in source_ids}


def _saved(visit: Visit, row: _LeasedSource, stored: list[StoredPost]) -> SavedVisit:
    newest = newest_post(visit.posts) if _saw_all(visit) else None
    before, seen = row.last_seen_created_at, visit.state.last_seen_created_at
    if newest is not None and (before is None or newest.created_at > before):
        seen = newest.created_at
        visit = visit._replace(
            state=visit.state._replace(last_seen_post_id=newest.source_post_id, last_seen_created_at=seen)
        )
    moved = seen is not None and (before is None or seen > before)
    return SavedVisit(visit, row.address, True, row.status, stored, moved)


def _saw_all(visit: Visit) -> bool:
    """Returns whether the watermark may move: never past a post that was published but is not stored."""
    return visit.outcome in GOOD and (visit.facts is None or visit.facts.whole)


def newest_post(found: Sequence[Post]) -> Post | None:
    """Returns the post that the watermark moves to."""
    return max(found, key=lambda post: post.created_at, default=None)


def _refused(visit: Visit, row: _LeasedSource | None) -> SavedVisit:
    return SavedVisit(visit, row.address if row else "", False, row.status if row else "gone", [], False)


def _settled(one: SavedVisit, valid_posts: float | None) -> dict[str, Any]:
    visit, state = one.visit, one.visit.state
    good = visit.outcome in GOOD
    blamed = not good and visit.blames_source
    return {
        "source_id": visit.source_id,
        "etag": state.etag,
        "last_modified": state.last_modified,
        "body_hash": state.body_hash,
        "validated_at": state.validated_at,
        "last_seen_post_id": state.last_seen_post_id,
        "last_seen_created_at": state.last_seen_created_at,
        "started_at": visit.started_at,
        "unseen_since": visit.started_at - UNSEEN_FOR,
        "next_check_at": visit.next_check_at,
        "waits_for": visit.waits_for,
        "not_before": visit.not_before,
        "keeps_task": _keeps_task(visit),
        "status": visit.status,
        "success": int(good and visit.outcome != "empty"),
        "failure": int(blamed),
        "is_empty": visit.outcome == "empty",
        "is_failure": blamed,
        "is_good": good,
        "error_code": visit.error_code,
        "error": visit.error,
        "valid_posts": valid_posts,
        "quality": float(good and visit.status == "ok") if good or blamed else None,
    }


def _learned(visit: Visit, facts: Facts) -> dict[str, Any]:
    return {
        "source_id": visit.source_id,
        "started_at": visit.started_at,
        "title": facts.title,
        "link": facts.link,
        "language": facts.language,
        "truncated": facts.truncated,
        "note": facts.note,
        "gap": facts.gap,
    }


def _crawl(one: SavedVisit) -> dict[str, Any]:
    visit = one.visit
    return {
        "source_id": visit.source_id,
        "started_at": visit.started_at,
        "seconds": visit.seconds,
        "outcome": visit.outcome,
        "http_status": visit.http_status,
        "bytes": visit.bytes,
        **one.brought(),
        "error_code": visit.error_code,
        "error": visit.error,
        "trace": trace_id(visit.traceparent) if visit.traceparent else None,
    }


def past_visits(conn: Connection, source_id: int, limit: int) -> list[PastVisit]:
    """Returns the latest visits of a source, the newest first."""
    return _past_visits.all(conn, source_id, limit)


def hits(conn: Connection, source_id: int) -> VisitHits:
    return _hits.all(conn, RATED_VISITS, source_id)[0]


def visited_since(conn: Connection, source_ids: Sequence[int], since: datetime) -> list[VisitElsewhere]:
    """Returns the last visit of each of these sources since then. A source that was deleted has failed."""
    ids = list(source_ids)
    existing = set(_existing.values(conn, ids))
    gone = [_deleted(source_id) for source_id in ids if source_id not in existing]
    return _visited_since.all(conn, ids, since) + gone


def _deleted(source_id: int) -> VisitElsewhere:
    return VisitElsewhere("", source_id, "failed", error="The source is gone.")
