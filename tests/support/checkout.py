"""A separate checkout with its own servers, for tests that start, kill and break them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Checkout:
    """A separate checkout, so that the servers of the running test session stay untouched."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "scripts" / "services"
        self.script.parent.mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "services", self.script)

    def services(self, *words: str) -> str:
        answer = subprocess.run([self.script, *words], capture_output=True, text=True, timeout=300)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def urls(self) -> dict[str, str]:
        lines = self.services("env").splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def process(self, name: str) -> int:
        line = next(line for line in self.services("status").splitlines() if line.startswith(f"{name}: runs"))
        return int(line.rpartition(" ")[2])

    def folder(self) -> Path:
        """Where the servers have their data and logs."""
        return Path(self.services("status").rpartition("data and logs: ")[2].strip())
