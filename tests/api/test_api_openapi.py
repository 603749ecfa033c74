"""The OpenAPI document is complete, Spectral finds nothing in it, and Schemathesis nothing in what it describes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.running import Running
from headwater.api.document import openapi
from support.posts import a_post

ROOT = Path(__file__).resolve().parents[2]
NO_NPM = 3


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_every_operation_and_parameter_has_a_description_and_an_example() -> None:
    schemas = openapi()["components"]["schemas"]
    for name, operation in operations():
        assert operation["description"], name
        for parameter in operation.get("parameters", []):
            assert parameter["description"], f"{name} {parameter['name']}"
            assert "example" in parameter, f"{name} {parameter['name']}"
        for content in operation.get("requestBody", {}).get("content", {}).values():
            described = schemas.get(content["schema"].get("$ref", "").rpartition("/")[2], content)
            properties = described.get("properties", {}).values()
            assert "example" in described or all("examples" in one for one in properties), name


def test_operation_ids_are_short_and_unique() -> None:
    ids = [operation["operationId"] for _, operation in operations()]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 24
    assert openapi()["servers"]


def test_an_id_may_name_nothing_and_a_body_may_be_too_large() -> None:
    for name, operation in operations():
        statuses = set(operation["responses"])
        assert {"403", "422", "503"} <= statuses, name
        assert "{" not in name or "404" in statuses, name
        assert "requestBody" not in operation or "413" in statuses, name


def test_spectral_has_nothing_to_say(tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(openapi()), encoding="utf-8")
    found = subprocess.run([ROOT / "scripts" / "spectral", file], capture_output=True, text=True, timeout=600)
    if found.returncode == NO_NPM:
        pytest.skip("no npm, and so no Spectral")
    assert found.returncode == 0, found.stdout + found.stderr


def test_schemathesis_finds_nothing(headwater: Running, tmp_path: Path) -> None:
    headwater.publish(headwater.source(), a_post("1"), a_post("2"))
    openapi()  # once made, it is there at once
    program = Path(sys.executable).with_name("schemathesis")
    found = subprocess.run(
        [
            *(program, "--config-file", Path(__file__).with_name("schemathesis.toml")),
            *("run", f"{headwater.url}/api/openapi.json", "--url", headwater.url),
            *("--header", f"Authorization: Bearer {headwater.token()}"),
            *("--exclude-path", "/api/live"),  # it never ends
            *("--exclude-operation-id", "revoke_token"),  # without its token the rest would be a row of 401s
            *("--max-examples", "3", "--seed", "1", "--phases", "examples,coverage,fuzzing"),
            *("--request-timeout", "60", "--suppress-health-check", "all", "--no-color"),
        ],
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "api.schemathesis_hooks", "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr
