"""An undo belongs to the tenant who asked for it; the record of a story can be read after it was undone.

What was undone before stays undone for everybody.
"""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import own_id, primary_key, refers_to, unique
from headwater.store.tables.columns import BigId, Json, Moment, required

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("story_decisions", sa.Column("members", Json))
    _record_what_was_undone()
    op.create_table(
        "story_partings",
        own_id(),
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId),
        *required(parted_at=Moment, action=sa.String(10), story_id=BigId, post_id=BigId, members=Json),
        refers_to("story_partings", "tenant_id", "tenants"),
        primary_key("story_partings", "id"),
        unique("story_partings", "tenant_id", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_partings_story", "story_partings", ["tenant_id", "story_id", "id"])
    op.create_table(
        "story_sides",
        *required(tenant_id=BigId, post_id=BigId, parting_id=BigId, side=BigId),
        refers_to("story_sides", "tenant_id", "tenants"),
        refers_to("story_sides", "post_id", "posts"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "parting_id"],
            ["story_partings.tenant_id", "story_partings.id"],
            name=op.f("fk_story_sides_tenant_id_parting_id"),
            ondelete="CASCADE",
        ),
        primary_key("story_sides", "tenant_id", "post_id"),
    )
    op.create_index("ix_story_sides_post", "story_sides", ["post_id"])
    op.create_index("ix_story_sides_side", "story_sides", ["tenant_id", "side"])


def downgrade() -> None:
    """What tenants had undone is folded for them again: the tables of before know only what is so for everybody."""
    op.drop_table("story_sides")
    op.drop_table("story_partings")
    op.drop_column("story_decisions", "members")


def _record_what_was_undone() -> None:
    """Writes down, for each undo of before, the story as it was: what joined it until then, and its first post."""
    conn = op.get_bind()
    decisions = sa.table(
        "story_decisions",
        *map(sa.column, ("id", "action", "story_id", "post_id", "rule", "score", "why")),
        sa.column("members", Json),
    )
    apart = sa.table("posts_apart", sa.column("post_id"), sa.column("parting_id"))
    undone = sa.select(decisions.c.id, decisions.c.story_id).where(decisions.c.action.in_(("undone", "parted")))
    for parting_id, story_id in conn.execute(undone).all():
        posts = conn.execute(sa.select(apart.c.post_id).where(apart.c.parting_id == parting_id)).scalars().all()
        joined = {
            post_id: (rule, score, why)
            for post_id, rule, score, why in conn.execute(
                sa.select(decisions.c.post_id, decisions.c.rule, decisions.c.score, decisions.c.why)
                .where(decisions.c.story_id == story_id, decisions.c.action == "joined", decisions.c.id < parting_id)
                .order_by(decisions.c.id)
            )
        }
        members = []
        for post_id in sorted(posts):
            rule, score, why = joined.get(post_id, ("first", 1.0, ""))
            # Which text it repeated was not recorded.
            members.append({"post_id": post_id, "repeat_id": post_id, "rule": rule, "score": score, "why": why})
        conn.execute(decisions.update().where(decisions.c.id == parting_id).values(members=members))
