"""`headwater images` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.commands import program
from images.saving import opened
from support.web import Answer, Web


def run(*words: str) -> str:
    done = CliRunner().invoke(program(), ["images", *words])
    assert done.exit_code == 0, done.output
    return done.output


async def test_the_commands_count_list_and_retry(
    sqlite_url: str, tmp_path: Path, world: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    # B9
    environ = {
        "HEADWATER_DATABASE_URL": sqlite_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
        "HEADWATER_HOST_GAP_SECONDS": "0",
    }
    world.pages["/gone"] = Answer("", 410)
    with opened({**environ, "HEADWATER_IMAGES": "on"}) as saving:
        saving.publish("1", world.url("/gone"), "data:image/png;base64,AAAA")
        async with saving.running():
            await saving.until(lambda: saving.states() == {"failed": 1, "skipped": 1})
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert run("count").startswith(
        "0 not downloaded, 0 saved, 1 failed, 1 skipped; 0.0 MB in files.\nImages are not down"
    )
    counted, per_source = map(json.loads, run("count", "--json").splitlines())
    assert (counted["failed"], counted["skipped"], counted["downloading"]) == (1, 1, False)
    assert (per_source["failed"], per_source["skipped"]) == (1, 1)
    [failed] = map(json.loads, run("failed", "--json").splitlines())
    assert (failed["url"], failed["error"]) == (
        world.url("/gone"),
        "There is no image at this address. (HTTP 410)",
    )
    assert "Only http:// and https://" in run("failed", "--skipped")
    assert json.loads(run("retry", "--json")) == {"waiting": 1}
    assert run("failed", "--json") == ""
    monkeypatch.setenv("HEADWATER_IMAGES", "on")
    assert "A running Headwater downloads what waits, up to 2048 MB in all." in run("count")
