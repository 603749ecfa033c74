"""The short version of `make chaos-cluster`."""

from __future__ import annotations

from pathlib import Path

from support import chaos_cluster

KINDS = (
    "kill worker",
    "kill child",
    "empty Redis",
    "restart PostgreSQL",
    "restart Redis",
    "messages twice",
    "stop worker",
    "set clock",
)


def test_faults_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:  # H79 H84 H85 H86 H92 H93 D5 D6 D7 D9
    report = chaos_cluster.run(
        tmp_path,
        faults=8,
        seed=10,
        feeds=10,
        hosts=2,
        communities=1,
        pause=1.0,
        webs=1,
        workers=2,
        beats=2,
        kinds=KINDS,
    )
    assert report.outcome.is_flawless, report
