"""kill -9 at every statement of a write to accounts, and at its commit: it happened with its row in the audit log, or
nothing did (E10, H79)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from people.killed import WRITES

TESTS = Path(__file__).resolve().parents[1]
CHANGED = {
    "an invitation is accepted": {"users", "invitations", "subscriptions", "api_tokens"},
    "a password is set, and the other sessions end": {"users", "api_tokens", "account_changes"},
    "a token is made": {"api_tokens"},
    "a refresh token is exchanged": {"refresh_tokens"},
    "a token is revoked, with its refresh tokens": {"api_tokens", "refresh_tokens", "account_changes"},
    "a story is undone for a tenant": {"story_partings", "story_sides", "event_outbox"},
    "somebody gets another role": {"users", "account_changes"},
    "somebody is removed": {"users", "account_changes"},
}


def test_a_write_to_accounts_happens_whole_or_not_at_all(store_url: str) -> None:  # E10, H66, H79
    command = [sys.executable, str(TESTS / "people" / "killed.py"), store_url]
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = {one["write"]: one for one in map(json.loads, ran.stdout.splitlines())}
    assert found.keys() == WRITES.keys() == CHANGED.keys()
    for name, one in found.items():
        assert one["between"] == [], f"{name}: killed at these statements, it had changed something"
        assert one["kills"] >= 4, name  # the begin, the change, its row in the audit log, the commit
        assert set(one["changed"]) >= CHANGED[name] | {"audit_log"}, name
