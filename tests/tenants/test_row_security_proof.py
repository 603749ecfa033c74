"""A solver proves that the policies show and let write no row of another tenant (E10, H75)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headwater.store import row_security
from headwater.store.db import Database
from support.services import fresh_postgres_database, service_url


@pytest.fixture
def database(postgres_schema: str) -> Iterator[str]:
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url:
        yield url


def guarded(url: str) -> set[str]:
    db = Database(url)
    try:
        return {f"public.{table.name}" for table in db.read_now(row_security.guarded)}
    finally:
        db.close()


# The table `tenants` is compared by its id, all others by tenant_id.
CONFIG = '[lint.rules.SEC021]\nidentity_columns = ["tenant_id", "id"]\n'


def verdicts(url: str, mode: str, config: Path) -> dict[str, str]:
    """What pgrls can say about each table: isolated (proven), leak or unverified."""
    config.write_text(CONFIG)
    options = ["--mode", mode, "--format", "json", "--config", str(config), "--auth-function", "headwater_tenant"]
    command = [sys.executable, "-m", "pgrls", "verify", "--database-url", url, *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)["tables"]
    return {one["table"]: one["verdict"] for one in found}


def test_no_session_without_a_tenant_reads_a_row(database: str, tmp_path: Path) -> None:
    assert verdicts(database, "anon", tmp_path / "pgrls.toml") == dict.fromkeys(guarded(database), "isolated")


@pytest.mark.parametrize("mode", ["cross-tenant", "write"])
def test_no_session_of_a_tenant_reads_or_writes_a_row_of_another(database: str, mode: str, tmp_path: Path) -> None:
    """In such a session the policy `system` shows nothing, so the proof is about the other policy alone."""
    with psycopg.connect(database, autocommit=True) as server:
        for table in guarded(database):
            server.execute(f"DROP POLICY system ON {table}")
    assert verdicts(database, mode, tmp_path / "pgrls.toml") == dict.fromkeys(guarded(database), "isolated")


def test_the_proof_finds_a_policy_that_is_too_wide(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("DROP POLICY system ON webhooks")
        wide = "tenant_id = (SELECT headwater_tenant()) OR state = 'gone'"
        server.execute(f"ALTER POLICY tenant ON webhooks USING ({wide})")
    assert verdicts(database, "cross-tenant", tmp_path / "pgrls.toml")["public.webhooks"] == "leak"
