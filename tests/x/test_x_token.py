"""The token for X as a person gives it: kept sealed, used at once, shown nowhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from headwater.store.db import Database
from headwater.store.tables import secrets
from support import forked
from support.web import ALLOW_LOOPBACK

TOKEN = "AAAAAAAAAAAAAAAAAAAAA%2Fsecret%3Dtoken"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    nowhere = {"HEADWATER_X_API_URL": "http://127.0.0.1:9"}
    return {**clean, **ALLOW_LOOPBACK, **nowhere, "HEADWATER_DATA_DIR": str(tmp_path / "data")}


def headwater(environ: dict[str, str], *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return forked.run("-m", "headwater", *words, env=environ, input=given)


def test_a_token_is_kept_sealed_and_forgotten_when_asked(environ: dict[str, str], tmp_path: Path) -> None:  # E10
    headwater(environ, "db", "upgrade")
    kept = headwater(environ, "x", "token", "--json", given=TOKEN + "\n")
    assert (kept.returncode, kept.stdout) == (0, '{"kept":true,"sources_due":0}\n')
    assert TOKEN.encode() not in (tmp_path / "data" / "headwater.db").read_bytes()
    database = Database(f"sqlite:///{tmp_path / 'data' / 'headwater.db'}")
    [row] = database.read_now(lambda conn: conn.execute(secrets.select()).all())
    database.close()
    assert TOKEN.encode() not in row.sealed
    shown = headwater(environ, "x", "status")
    assert "0 of 10,000 requests and 0 of 10,000 posts this month" in shown.stdout
    assert TOKEN not in shown.stdout + kept.stdout + headwater(environ, "config").stdout
    assert headwater(environ, "x", "forget").stdout == "Deleted.\n"
    assert '"token":false' in headwater(environ, "x", "status", "--json").stdout


def test_a_token_that_cannot_be_one_is_refused_before_anything_is_kept(environ: dict[str, str]) -> None:
    refused = headwater(environ, "x", "token", given="two words\n")
    assert (refused.returncode, "cannot be a token" in refused.stderr) == (2, True)
    headwater(environ, "db", "upgrade")
    set_already = headwater({**environ, "HEADWATER_X_BEARER_TOKEN": TOKEN}, "x", "token", given=TOKEN)
    assert "Unset it first" in set_already.stderr


def test_a_key_that_was_lost_is_said_and_no_reason_to_fall_over(environ: dict[str, str]) -> None:
    headwater(environ, "db", "upgrade")
    headwater(environ, "x", "token", given=TOKEN)
    file = Path(environ["HEADWATER_DATA_DIR"]) / "secret.key"
    file.unlink()
    for key in ({}, {"HEADWATER_SECRET_KEY": "another"}):
        shown = headwater({**environ, **key}, "x", "status", "--json")
        assert ('"token":false' in shown.stdout, "Bring the key back" in shown.stdout) == (True, True), shown
    assert not file.exists()


def test_without_a_token_an_account_says_what_is_missing_and_nothing_is_asked(environ: dict[str, str]) -> None:
    added = headwater(environ, "add", "@hashrate")
    assert added.returncode == 1
    assert "no token for it is set" in added.stdout
    listed = headwater(environ, "sources", "--json").stdout
    assert '"address":"https://x.com/hashrate"' in listed
    assert '"status":"blocked"' in listed
    assert "no token" in headwater(environ, "doctor").stdout
    assert '"sources_due":1' in headwater(environ, "x", "token", "--json", given=TOKEN).stdout
