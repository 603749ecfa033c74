"""Writes visits: posts, the source's state and the visit's own row, in one transaction, fenced by the lease."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from headwater.model import Facts, Post, SavedVisit, StoredPost, Visit
from headwater.store import posts
from headwater.store.sources import leases, moves
from headwater.store.sources.pool import QUIET, UNSEEN_FOR
from headwater.store.sql import json_text, json_value, moment, moment_or_none, portable

ROLLING = 8.0  # visits that an average is about
LATELY = timedelta(hours=24)
_select_leased = portable(
    """SELECT id, address, lease_owner, lease_until, status, success_hit + empty_hit, last_seen_created_at
    FROM sources WHERE id IN (?)""",
    postgresql=" ORDER BY id FOR UPDATE",
)
_settle = portable(
    f"""UPDATE sources SET
        etag = ?, last_modified = ?, body_hash = ?, validated_at = ?, last_crawled_at = ?,
        last_seen_post_id = ?, last_seen_created_at = ?, next_check_at = ?, waits_for = ?,
        lease_owner = NULL, lease_until = NULL,
        status = ?, active = (active AND ? <> 'retired'),
        success_hit = success_hit + ?, failure_hit = failure_hit + ?,
        empty_hit = empty_hit + CASE WHEN ? OR (? AND pooled_at IS NOT NULL AND avg_valid_posts < {QUIET}
            AND last_crawled_at < ?) THEN 1 ELSE 0 END,
        consecutive_failures = CASE WHEN ? THEN 0 ELSE consecutive_failures + ? END,
        failing_since = CASE WHEN ? THEN NULL ELSE COALESCE(failing_since, ?) END,
        last_error_code = ?, last_error = ?,
        avg_valid_posts = COALESCE(avg_valid_posts + (? - avg_valid_posts) / {ROLLING}, ?, avg_valid_posts),
        quality_score = COALESCE(quality_score + (? - quality_score) / {ROLLING}, ?, quality_score)
    WHERE id = ?"""
)
_published = portable(
    "SELECT source_id, count(*) FROM posts WHERE source_id IN (?) AND created_at >= ? GROUP BY source_id"
)
_put_back = portable(
    "UPDATE sources SET next_check_at = ?, waits_for = ?, lease_owner = NULL, lease_until = NULL WHERE id = ?"
)
_learn = portable(
    """UPDATE sources SET title = CASE WHEN ? <> '' THEN ? ELSE title END, site_url = COALESCE(?, site_url),
        language = COALESCE(?, language), truncated = ?, note = ?,
        gap_at = CASE WHEN ? THEN ? ELSE gap_at END WHERE id = ?"""
)
_select_settings = portable("SELECT settings FROM sources WHERE id = ?")
_set_settings = portable("UPDATE sources SET settings = ? WHERE id = ?")
_become = portable("UPDATE sources SET kind = ?, settings = ? WHERE id = ?")
_insert_crawl = portable(
    """INSERT INTO crawls (source_id, started_at, seconds, outcome, http_status, bytes, new, updated, duplicates,
        watermark_updated, truncated, gap, error_code, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
)
_forget_crawls = portable(
    "DELETE FROM crawls WHERE id IN (SELECT id FROM crawls WHERE started_at < ? ORDER BY id LIMIT ?)"
)
GOOD = ("ok", "unchanged", "empty")


def save(conn: Connection, visits: Sequence[Visit], now: datetime) -> list[SavedVisit]:
    """Write all these visits, or nothing of those that no longer hold their source's lease."""
    rows = {row[0]: row for row in _select_leased.all(conn, [visit.source_id for visit in visits])}
    held = [visit for visit in visits if _holds(rows.get(visit.source_id), visit, now)]
    merged = _move_sources(conn, held, rows)
    held = [visit for visit in held if visit.source_id not in merged]
    stored = _write_posts(conn, held, rows, now)
    saved = {visit.source_id: _saved(visit, rows[visit.source_id], stored[visit.source_id]) for visit in held}
    _write_state(conn, list(saved.values()), now)
    saved.update(merged)
    return [saved.get(visit.source_id) or _refused(visit, rows.get(visit.source_id)) for visit in visits]


def forget_before(conn: Connection, before: datetime, limit: int = 10_000) -> int:
    return _forget_crawls.once(conn, before, limit)


def _holds(row: tuple[Any, ...] | None, visit: Visit, now: datetime) -> bool:
    return row is not None and row[2] == visit.lease and row[3] is not None and moment(row[3]) > now


def _move_sources(conn: Connection, visits: list[Visit], rows: dict[int, tuple[Any, ...]]) -> dict[int, SavedVisit]:
    """Write down new addresses; returns the visits of sources that merged into another and need nothing more."""
    merged = {}
    for visit in visits:
        if visit.moved_to is None:
            continue
        row = rows[visit.source_id]
        if moves.move(conn, visit.source_id, visit.moved_to, newcomer=row[5] == 0) != visit.source_id:
            merged[visit.source_id] = SavedVisit(visit, visit.moved_to, True, row[4], [], False)
    return merged


def _write_posts(
    conn: Connection, visits: list[Visit], rows: dict[int, tuple[Any, ...]], now: datetime
) -> dict[int, list[StoredPost]]:
    found = []
    for visit in visits:
        came = [*visit.posts, *visit.comments]
        if came:
            first = rows[visit.source_id][5] == 0
            known = [] if first else posts.known_posts(conn, visit.source_id, came)
            found += [(visit.source_id, change) for change in posts.changes(came, known)]
    stored: dict[int, list[StoredPost]] = {visit.source_id: [] for visit in visits}
    for (source_id, _), post in zip(found, posts.write_changes(conn, found, now), strict=True):
        stored[source_id].append(post)
    return stored


def _write_state(conn: Connection, saved: list[SavedVisit], now: datetime) -> None:
    settled = [one for one in saved if one.visit.outcome != "deferred"]
    valid = _valid_posts(conn, [one.visit.source_id for one in settled if one.visit.outcome in GOOD], now)
    _settle.many(conn, [_settle_row(one, valid.get(one.visit.source_id)) for one in settled])
    deferred = [one.visit for one in saved if one.visit.outcome == "deferred"]
    _put_back.many(conn, [(visit.next_check_at, visit.waits_for, visit.source_id) for visit in deferred])
    _learn.many(conn, [_learn_row(one.visit, one.visit.facts) for one in saved if one.visit.facts])
    changed = [(one.visit.source_id, one.visit.becomes) for one in saved if one.visit.becomes]
    _keep_settings(conn, [one.visit for one in saved if one.visit.facts and one.visit.facts.settings])
    _become.many(conn, [(kind, json_text(dict(settings)), source_id) for source_id, (kind, settings) in changed])
    for one in saved:
        if one.visit.pause_host_until:
            leases.pause_host(conn, one.visit.host, now, one.visit.pause_host_until)
    _insert_crawl.many(conn, [_crawl_row(one) for one in settled])


def _keep_settings(conn: Connection, visits: Sequence[Visit]) -> None:
    """Write down what visits found out about how to read their sources, beside what was set."""
    for visit in visits:
        assert visit.facts is not None
        settings = json_value(_select_settings.all(conn, visit.source_id)[0][0])
        _set_settings.once(conn, json_text({**settings, **visit.facts.settings}), visit.source_id)


def _valid_posts(conn: Connection, source_ids: list[int], now: datetime) -> dict[int, float]:
    """How many posts of the last day each source has: a measure that does not depend on how often it is visited."""
    counts = dict(_published.all(conn, list(source_ids), now - LATELY)) if source_ids else {}
    return {source_id: float(counts.get(source_id, 0)) for source_id in source_ids}


def _saved(visit: Visit, row: tuple[Any, ...], stored: list[StoredPost]) -> SavedVisit:
    newest = newest_post(visit.posts) if _saw_all(visit) else None
    before, seen = moment_or_none(row[6]), visit.state.last_seen_created_at
    if newest is not None and (before is None or newest.created_at > before):
        seen = newest.created_at
        visit = visit._replace(
            state=visit.state._replace(last_seen_post_id=newest.source_post_id, last_seen_created_at=seen)
        )
    moved = seen is not None and (before is None or seen > before)
    return SavedVisit(visit, row[1], True, row[4], stored, moved)


def _saw_all(visit: Visit) -> bool:
    """Whether the watermark may move: never past a post that was published but is not stored (A2)."""
    return visit.outcome in GOOD and (visit.facts is None or visit.facts.whole)


def newest_post(found: Sequence[Post]) -> Post | None:
    """The post that the watermark stands for."""
    return max(found, key=lambda post: post.created_at, default=None)


def _refused(visit: Visit, row: tuple[Any, ...] | None) -> SavedVisit:
    return SavedVisit(visit, row[1] if row else "", False, row[4] if row else "gone", [], False)


def _settle_row(one: SavedVisit, valid_posts: float | None) -> tuple[Any, ...]:
    visit, state = one.visit, one.visit.state
    good = visit.outcome in GOOD
    blamed = int(not good and visit.blames_source)
    quality = float(good and visit.status == "ok") if good or blamed else None
    return (
        state.etag,
        state.last_modified,
        state.body_hash,
        state.validated_at,
        visit.started_at,
        state.last_seen_post_id,
        state.last_seen_created_at,
        visit.next_check_at,
        visit.waits_for,
        visit.status,
        visit.status,
        int(good and visit.outcome != "empty"),
        blamed,
        visit.outcome == "empty",
        bool(blamed),
        visit.started_at - UNSEEN_FOR,
        good,
        blamed,
        good,
        visit.started_at,
        visit.error_code,
        visit.error,
        valid_posts,
        valid_posts,
        quality,
        quality,
        visit.source_id,
    )


def _learn_row(visit: Visit, facts: Facts) -> tuple[Any, ...]:
    return (
        facts.title,
        facts.title,
        facts.link,
        facts.language,
        facts.truncated,
        facts.note,
        facts.gap,
        visit.started_at,
        visit.source_id,
    )


def _crawl_row(one: SavedVisit) -> tuple[Any, ...]:
    visit = one.visit
    return (
        visit.source_id,
        visit.started_at,
        visit.seconds,
        visit.outcome,
        visit.http_status,
        visit.bytes,
        one.count("new"),
        one.count("edited") + one.count("touched"),
        one.count("same"),
        one.watermark_updated,
        visit.facts is not None and visit.facts.truncated,
        visit.facts is not None and visit.facts.gap,
        visit.error_code,
        visit.error,
    )
