"""Views with the names and columns of the documents, runs of folding that can be asked for, `event_dlq.resolved`.

Two of the documents' names were names of our own tables, with other columns: `posts_hot` and `crawl_metrics`. These
tables are `hot_posts` and `crawl_hours` now, and the names belong to the views.

SQLite checks views whenever a table is rebuilt. A later migration that rebuilds one of `sources`, `posts`,
`post_versions`, `cached_listings`, `hot_posts` or `crawl_hours` drops the views first and makes them again.
"""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, primary_key, tenant_and_user
from headwater.store.tables.columns import Json, Moment, optional, required

revision = "0017"
down_revision = "0016"

RENAMED = {"posts_hot": "hot_posts", "crawl_metrics": "crawl_hours"}

_COMMUNITY = "CASE WHEN s.kind = 'reddit' THEN {community} END"
VIEWS = {
    "community_pool": """SELECT {community} AS name, COALESCE(s.pinned_tier, s.tier) AS tier, s.categories,
        s.quality_score, s.active AS is_active
    FROM sources s WHERE s.kind = 'reddit' AND s.pooled_at IS NOT NULL""",
    "community_cache": """SELECT {community} AS community_name, {last_crawled_at} AS last_crawled_at,
        s.last_seen_post_id, {last_seen_created_at} AS last_seen_created_at,
        COALESCE({length}, 0) AS posts_cached, CAST(round({average}) AS INTEGER) AS avg_valid_posts,
        CASE COALESCE(s.pinned_tier, s.tier) WHEN 'high' THEN 'tier1' WHEN 'medium' THEN 'tier2' WHEN 'low' THEN 'tier3'
        END AS quality_tier,
        CAST(round(s.interval_seconds / 3600.0) AS INTEGER) AS crawl_frequency_hours,
        s.empty_hit, s.success_hit, s.failure_hit, s.active AS is_active
    FROM sources s LEFT JOIN cached_listings c ON c.source_id = s.id WHERE s.kind = 'reddit'""",
    "posts_raw": """SELECT s.kind AS source, p.source_post_id, {subreddit} AS subreddit, p.title, p.content, p.score,
        p.num_comments, {created_at} AS created_at, {hash} AS text_norm_hash, p.version, p.extra AS extra_data,
        p.id AS post_id, {valid_from} AS valid_from, {never} AS valid_to, {yes} AS is_current
    FROM posts p JOIN sources s ON s.id = p.source_id
    UNION ALL
    SELECT s.kind, p.source_post_id, {subreddit}, v.title, v.content, p.score,
        p.num_comments, {created_at}, {old_hash}, v.version, v.extra, p.id, {old_valid_from}, {old_valid_to}, {no}
    FROM post_versions v JOIN posts p ON p.id = v.post_id JOIN sources s ON s.id = p.source_id""",
    "posts_hot": """SELECT s.kind AS source, h.source_post_id, {subreddit} AS subreddit, h.title, h.content, h.score,
        h.num_comments, {hot_created_at} AS created_at, {expires_at} AS expires_at, h.extra AS extra_data,
        h.id AS post_id
    FROM hot_posts h JOIN sources s ON s.id = h.source_id""",
    "crawl_metrics": """SELECT {date} AS metric_date, {hour} AS metric_hour,
        h.visits_unchanged * 1.0 / NULLIF(h.visits_ok + h.visits_unchanged + h.visits_empty, 0) AS cache_hit_rate,
        h.valid_posts_24h, h.sources_total AS total_communities, h.visits_ok + h.visits_unchanged AS successful_crawls,
        h.visits_empty AS empty_crawls, h.visits_failed AS failed_crawls,
        h.seconds / NULLIF(h.visits_ok + h.visits_unchanged + h.visits_empty + h.visits_failed, 0)
            AS avg_latency_seconds,
        h.posts_new AS total_new_posts, h.posts_updated AS total_updated_posts, h.posts_duplicate AS total_duplicates,
        h.tiers AS tier_assignments
    FROM crawl_hours h""",
}
_TIMES = {
    "last_crawled_at": "s.last_crawled_at",
    "last_seen_created_at": "s.last_seen_created_at",
    "created_at": "p.created_at",
    "valid_from": "p.valid_from",
    "old_valid_from": "v.valid_from",
    "old_valid_to": "v.valid_to",
    "hot_created_at": "h.created_at",
    "expires_at": "h.expires_at",
}
_SQLITE = {
    **{name: f"datetime({column} / 1000000, 'unixepoch')" for name, column in _TIMES.items()},
    "community": "rtrim(substr(s.address, instr(s.address, '/r/') + 1), '/')",
    "length": "json_array_length(c.posts)",
    "average": "s.avg_valid_posts",
    "hash": "lower(hex(p.text_norm_hash))",
    "old_hash": "lower(hex(v.text_norm_hash))",
    "never": "NULL",
    "yes": "1",
    "no": "0",
    "date": "date(h.hour / 1000000, 'unixepoch')",
    "hour": "CAST(strftime('%H', h.hour / 1000000, 'unixepoch') AS INTEGER)",
}
_POSTGRESQL = {
    **_TIMES,
    "community": "rtrim(substr(s.address, strpos(s.address, '/r/') + 1), '/')",
    "length": "jsonb_array_length(c.posts)",
    "average": "s.avg_valid_posts::numeric",
    "hash": "encode(p.text_norm_hash, 'hex')",
    "old_hash": "encode(v.text_norm_hash, 'hex')",
    "never": "NULL::timestamptz",
    "yes": "true",
    "no": "false",
    "date": "(h.hour AT TIME ZONE 'UTC')::date",
    "hour": "extract(hour FROM h.hour AT TIME ZONE 'UTC')::integer",
}
_RESOLVED = "state IN ('replayed', 'skipped')"


def upgrade() -> None:
    for former, name in RENAMED.items():
        op.rename_table(former, name)
    _make_views()
    # The documents ask for dead letters by this column. SQLite cannot add a stored one to a table that has rows.
    kind = "VIRTUAL" if _is_sqlite() else "STORED"
    op.execute(f"ALTER TABLE event_dlq ADD COLUMN resolved BOOLEAN GENERATED ALWAYS AS ({_RESOLVED}) {kind}")
    op.create_table(
        "fold_runs",
        sa.Column("task_id", sa.String(36), nullable=False),
        *tenant_and_user(),
        *required(status=sa.String(10), post_ids=Json),
        *optional(result=Json, error=sa.Text),
        *required(started_at=Moment, lease_until=Moment),
        sa.Column("finished_at", Moment()),
        of_user("fold_runs"),
        primary_key("fold_runs", "task_id"),
    )
    op.create_index("ix_fold_runs_started_at", "fold_runs", ["started_at"])


def downgrade() -> None:
    op.drop_table("fold_runs")
    op.drop_column("event_dlq", "resolved")
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
    for former, name in RENAMED.items():
        op.rename_table(name, former)


def _make_views() -> None:
    words = _SQLITE if _is_sqlite() else _POSTGRESQL
    words = {**words, "subreddit": _COMMUNITY.format(**words)}
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query.format(**words)}")


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
