"""The benchmark of the server: its store is what it says, and every path it asks for answers."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

import serve
from headwater.store.db import Database


def test_every_path_is_answered_from_a_store_with_stories(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    token = serve.fill(db, 60)
    db.close()
    found = serve.measure_all(tmp_path, token, requests=1)
    assert serve.measure_jwt(tmp_path, checks=2) > 0
    assert [one.path for one in found] == [*serve.PATHS, serve.NEWEST + serve.UNCHANGED, *serve.PATHS]
    assert all(one.bytes for one in found if serve.UNCHANGED not in one.path)
