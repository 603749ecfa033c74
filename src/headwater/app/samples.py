"""Merges for a person to judge: drawn from a file or from the store, and what a judged sheet shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headwater.app.shapes import iso
from headwater.errors import BadInput
from headwater.model import PostText
from headwater.store import stories

ROUND = 1000


def sample_sheet(posts: Sequence[PostText], count: int, seed: int) -> str:
    """Folds posts, draws merges and near misses, and returns them as a sheet to judge."""
    from headwater.dedup.sample import drawn, sheet

    return sheet(drawn(posts, count, seed))


def sample_lines(posts: Sequence[PostText], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Does the same; yields what `--json` prints of each pair."""
    from headwater.dedup.sample import drawn, excerpt

    for one in drawn(posts, count, seed):
        told = [
            {"source_id": post.source_id, "created_at": iso(post.created_at), "text": excerpt(post)}
            for post in (one.other, one.post)
        ]
        yield {"kind": one.kind, "rule": one.found.rule, "score": one.found.score, "why": one.found.why, "posts": told}


def posts_of_file(file: Path) -> list[PostText]:
    """Returns the posts of a JSONL file, as for `evaluate`, oldest first; labels do not matter."""
    from headwater.dedup.evaluate import read_labelled

    if not file.is_file():
        raise BadInput(f"There is no file {file}.")
    return [
        PostText(
            id=one.id,
            source_id=one.source or -1 - one.id,
            title=one.title,
            text=one.text,
            url=one.link or None,
            created_at=datetime.fromtimestamp(one.created_at, UTC),
        )
        for one, _ in read_labelled(file, labelled=False)
    ]


def posts_of_window(conn: Connection, since: datetime) -> list[PostText]:
    """Returns the posts that were decided about since then, oldest first."""
    seq, ids = stories.seq_before(conn, since), []
    while decided := stories.decided_after(conn, seq):
        ids += [one.decision.post_id for one in decided]
        seq = decided[-1].seq
    found = [post for at in range(0, len(ids), ROUND) for post in stories.texts(conn, ids[at : at + ROUND])]
    return sorted(found, key=lambda post: (post.created_at, post.id))


def judged_report(sheet: Path) -> Sequence[tuple[str | float | None, ...]]:
    """Returns what a judged sheet says, as rows: merges, near misses, and merges by score."""
    from headwater.dedup.sample import read_sheet, report

    if not sheet.is_file():
        raise BadInput(f"There is no file {sheet}.")
    return report(read_sheet(sheet.read_text("utf-8")))
