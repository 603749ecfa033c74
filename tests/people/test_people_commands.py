"""`headwater people` and `headwater tokens`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.accounts import passwords
from headwater.store.db import Database
from headwater.store.people import accounts
from support import forked
from support.people import PASSWORD


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Commands:
    def __init__(self, store_url: str, folder: Path) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        self.environ = {**clean, "HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(folder)}

    def __call__(self, *words: str, given: str = "") -> Ran:
        done = forked.run("-m", "headwater", *words, env=self.environ, input=given)
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def headwater(store_url: str, tmp_path: Path) -> Commands:
    return Commands(store_url, tmp_path)


def test_people_are_managed_from_a_shell(headwater: Commands, store_url: str) -> None:
    link = headwater("people", "tenant", "Research", "--owner", "Carl@example.org").out
    assert "/login?token=hw_login_" in link
    assert headwater("people", "tenant", "Research", "--owner", "x@example.org").code == 1
    assert (
        "/invitation?token=hw_invite_" in headwater("people", "invite", "bob@example.org", "--tenant", "Research").out
    )
    set_to = headwater("people", "password", "carl@example.org", "--tenant", "Research", given=PASSWORD + "\n")
    assert set_to.code == 0, set_to.err
    db = Database(store_url)
    [carl] = db.read_now(accounts.by_email, "carl@example.org")
    db.close()
    assert passwords.fits(carl.password_hash, PASSWORD)
    refused = headwater("people", "role", "carl@example.org", "viewer", "--tenant", "Research")
    assert (refused.code, "only owner" in refused.err) == (1, True)
    assert headwater("people", "remove", "nobody@example.org").code == 1
    assert headwater("people", "list", "--tenant", "Elsewhere").code == 1
    [listed] = headwater("people", "list", "--tenant", "Research", "--json").out.splitlines()
    assert json.loads(listed)["email"] == "carl@example.org"


def test_tokens_are_managed_from_a_shell(headwater: Commands) -> None:
    # H66
    made = json.loads(headwater("tokens", "create", "dashboard", "--scope", "posts:read", "--days", "30", "--json").out)
    assert made["secret"].startswith("hw_api_")
    assert made["token"]["scopes"] == ["posts:read"]
    [listed] = [json.loads(line) for line in headwater("tokens", "list", "--json").out.splitlines()]
    assert listed == made["token"]
    assert headwater("tokens", "revoke", str(listed["id"])).code == 0
    assert headwater("tokens", "list", "--json").out == ""
    assert headwater("tokens", "revoke", str(listed["id"])).code == 1
    wrong = headwater("tokens", "create", "x", "--scope", "everything")
    assert (wrong.code, "posts:read" in wrong.err) == (2, True)
