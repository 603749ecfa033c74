"""`headwater dedup sample`: a sheet to judge, and what a judged sheet shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.stories import app
from headwater.errors import BadInput

TOLD = (
    "Floods close Halvorsen copper mine after dam gives way",
    "Halvorsen copper mine shut as dam bursts and floods shafts",
    "Copper output at Halvorsen stops: dam failure floods mine",
    "Workers at Brenta lithium mine walk out over pay",
    "Pay dispute: strike begins at Brenta lithium mine",
    "Five easy soups for a cold evening",
)


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(app, ["sample", *arguments], catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.output


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    path = tmp_path / "posts.jsonl"
    lines = (
        {"id": at, "source": f"paper {at}", "title": title, "created_at": 1e9 + at} for at, title in enumerate(TOLD)
    )
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


# C4
def test_a_judged_sheet_says_how_many_merges_are_right(posts: Path, tmp_path: Path) -> None:
    sheet = run(str(posts), "--count", "10")
    assert sheet == run(str(posts), "--count", "10")
    assert sheet.count("## merge") == 3
    assert "soups" not in sheet
    judged = tmp_path / "judged.txt"
    verdicts = iter(("right", "right", "topic"))
    judged.write_text("".join(_judged(line, verdicts) for line in sheet.splitlines(keepends=True)), "utf-8")
    [merges] = [line.split() for line in run("--judged", str(judged)).splitlines() if "merges " in line][:1]
    assert [word for word in merges if word.isdigit()] == ["3", "2", "1", "0"]
    as_json = json.loads(run("--judged", str(judged), "--json"))
    assert as_json["of"] == "judged"
    assert [as_json["tallies"][0][said] for said in ("pairs", "number", "right", "topic")] == ["merges", 3, 2, 1]


def _judged(line: str, verdicts: object) -> str:
    return f"verdict: {next(verdicts, 'wrong')}\n" if line.startswith("verdict:") else line  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", "## merge 1 · story 0.500 · why\nverdict: perhaps\n"])
def test_a_sheet_without_verdicts_or_with_others_is_refused(text: str, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.txt"
    sheet.write_text(text, "utf-8")
    with pytest.raises(BadInput, match="right, topic or wrong"):
        run("--judged", str(sheet))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.jsonl"):
        run(str(tmp_path / "none.jsonl"))
