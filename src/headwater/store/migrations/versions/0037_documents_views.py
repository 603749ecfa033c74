"""More views with the names and columns of the documents: groups of posts and posts of X, threads, articles, feeds, and
the audit log.

On PostgreSQL a view has the rights of whoever reads it, so the policies of the audit log hold for its view as well, and
it cannot be changed through it. SQLite checks views whenever a table is rebuilt: a later migration that rebuilds one of
`posts`, `sources`, `items`, `checkpoints`, `story_members` or `audit_log` drops these first and makes them again.
"""

from alembic import op

revision = "0037"
down_revision = "0036"

VIEWS = {
    "deduplication_groups": """SELECT m.story_id AS group_id,
        (SELECT {tweet_id} FROM {member} ORDER BY n.seq LIMIT 1) AS representative_tweet_id,
        CASE WHEN sum(CASE WHEN m.rule IN ('first', 'exact') THEN 0 ELSE 1 END) = 0
            THEN 'exact_duplicate' ELSE 'similar_content' END AS deduplication_type,
        min(CASE WHEN m.rule NOT IN ('first', 'exact') THEN m.score END) AS similarity_score,
        {tweet_ids} AS tweet_ids, {group_created_at} AS created_at
    FROM story_members m GROUP BY m.story_id HAVING count(*) > 1""",
    "tweets": """SELECT p.source_post_id AS tweet_id, p.content AS text, p.author, {post_created_at} AS created_at,
        p.reference_id AS referenced_tweet_id, CASE p.reference_kind WHEN 'repost' THEN 'retweeted'
            WHEN 'quote' THEN 'quoted' WHEN 'reply' THEN 'replied_to' END AS reference_type,
        (SELECT m.story_id FROM story_members m WHERE m.post_id = p.id AND EXISTS (SELECT 1 FROM story_members o
            WHERE o.story_id = m.story_id AND o.post_id <> m.post_id)) AS deduplication_group_id,
        p.id AS post_id
    FROM posts p JOIN sources s ON s.id = p.source_id WHERE s.kind = 'x'""",
    "threads": """SELECT i.item_id AS thread_id, i.title, i.url, s.host AS site, {board} AS board, i.state, i.posts,
        i.error, {item_created_at} AS created_at, {item_updated_at} AS updated_at
    FROM items i JOIN sources s ON s.id = i.source_id WHERE s.kind = 'forum'""",
    "articles": """SELECT p.source_post_id AS article_id, p.url, p.title, p.content, p.author, s.host AS site,
        {board} AS board, s.id AS feed_id, p.extra AS metadata, {post_created_at} AS created_at, p.id AS post_id
    FROM posts p JOIN sources s ON s.id = p.source_id WHERE s.kind IN ('rss', 'news')""",
    "feeds": """SELECT s.id, s.address AS url, s.title,
        CAST(round(COALESCE(s.chosen_seconds, s.interval_seconds) / 60.0) AS INTEGER) AS refresh_interval,
        {last_crawled_at} AS last_fetched, s.status, s.last_error, s.active AS is_active
    FROM sources s""",
    "audit_logs": """SELECT a.id, a.user_id, a.tenant_id,
        CASE WHEN {verb} IN ({creates}) THEN 'CREATE' WHEN {verb} IN ({deletes}) THEN 'DELETE' ELSE 'UPDATE'
        END AS operation,
        a.resource AS resource_type, a.resource_id, a.address AS ip_address, a.agent AS user_agent,
        {at} AS created_at, a.action, a.detail
    FROM audit_log a""",
}
_CREATES = ("add", "create", "enter", "follow", "import", "join", "models", "store")
_DELETES = ("cancel", "drop", "end", "forget", "remove", "revoke", "unfollow", "unlink", "withdraw")
_COMMON = {
    "tweet_id": "CASE WHEN s.kind = 'x' THEN p.source_post_id ELSE CAST(p.id AS TEXT) END",
    "member": "story_members n JOIN posts p ON p.id = n.post_id JOIN sources s ON s.id = p.source_id"
    " WHERE n.story_id = m.story_id",
    "board": "(SELECT min(c.board) FROM checkpoints c WHERE c.source_id = s.id)",
    "creates": ", ".join(f"'{verb}'" for verb in _CREATES),
    "deletes": ", ".join(f"'{verb}'" for verb in _DELETES),
}
_JOINED_AT = "(SELECT min(d.decided_at) FROM story_decisions d WHERE d.story_id = m.story_id AND d.action = 'joined')"
_TIMES = {
    "group_created_at": _JOINED_AT,
    "post_created_at": "p.created_at",
    "item_created_at": "i.created_at",
    "item_updated_at": "i.updated_at",
    "last_crawled_at": "s.last_crawled_at",
    "at": "a.at",
}


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    words = _of_sqlite() if is_sqlite else _of_postgresql()
    rights = "" if is_sqlite else " WITH (security_invoker = true)"
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name}{rights} AS {query.format(**words)}")


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")


def _of_sqlite() -> dict[str, str]:
    return {
        **_COMMON,
        **{name: f"datetime({time} / 1000000, 'unixepoch')" for name, time in _TIMES.items()},
        "tweet_ids": "(SELECT json_group_array(tweet_id) FROM (SELECT {tweet_id} AS tweet_id FROM {member}"
        " ORDER BY n.seq))".format(**_COMMON),
        "verb": "substr(a.action, instr(a.action, '.') + 1)",
    }


def _of_postgresql() -> dict[str, str]:
    return {
        **_COMMON,
        **_TIMES,
        "tweet_ids": "(SELECT json_agg({tweet_id} ORDER BY n.seq) FROM {member})".format(**_COMMON),
        "verb": "split_part(a.action, '.', 2)",
    }
