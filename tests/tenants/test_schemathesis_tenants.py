"""Schemathesis over the whole API, with the tokens of two tenants and every id of the other one (H68)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from api.running import running
from headwater.accounts import tokens
from headwater.api.document import openapi
from support.checkout import ROOT
from tenants.test_other_tenants_ids import of_tenant
from tenants.two_tenants import fill

CONFIG = ROOT / "tests" / "api" / "schemathesis.toml"
# It gives plans to tenants, which is for those who run the instance; and one that never ends.
LEFT_OUT = ("--exclude-operation-id", "give_plan", "--exclude-path", "/api/live")


def test_schemathesis_finds_nothing_of_another_tenant(store_url: str, tmp_path: Path) -> None:
    with running(store_url, HEADWATER_RATE_LIMIT="1000000") as headwater:
        db, now = headwater.parts.db, headwater.parts.now()
        ours, theirs, own, other = db.write_now(fill)
        secrets = [db.write_now(tokens.issue, reader, "api", "walk", now) for reader in (ours, theirs)]
        said = [["Title of theirs", "theirs.example"], ["Title of ours", "ours.example"]]
        others = [
            {"token": secret, "others": ids, "words": words}
            for secret, ids, words in zip(secrets, (other, own), said, strict=True)
        ]
        before = db.read_now(of_tenant, theirs)
        openapi()  # once made, it is there at once
        found = subprocess.run(
            [
                *(Path(sys.executable).with_name("schemathesis"), "--config-file", CONFIG),
                *("run", f"{headwater.url}/api/openapi.json", "--url", headwater.url),
                *("--header", f"Authorization: Bearer {secrets[0]}", *LEFT_OUT),
                *("--checks", "another_tenants_ids_are_unknown", "--mode", "positive", "--no-color"),
                *("--max-examples", "1", "--seed", "1", "--phases", "fuzzing"),
                *("--request-timeout", "60", "--suppress-health-check", "all"),
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "SCHEMATHESIS_HOOKS": "tenants.schemathesis_hooks",
                "PYTHONPATH": str(ROOT / "tests"),
                "OTHERS": json.dumps(others),
            },
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert found.returncode == 0, found.stdout[-20_000:] + found.stderr
        tested = re.search(r"Operations:\s+(\d+) selected", found.stdout)
        assert tested is not None, found.stdout
        assert int(tested[1]) == len([one for verbs in openapi()["paths"].values() for one in verbs]) - 2
        after = db.read_now(of_tenant, theirs)
        del before["api_tokens"], after["api_tokens"]  # theirs was used
        assert after == before
