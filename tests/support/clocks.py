"""Sets the clocks of single processes, as somebody does who corrects a machine's time by an hour or a day."""

from __future__ import annotations

import shutil
import struct
import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

SOURCE = Path(__file__).with_name("set_clock.c")


@cache
def _library() -> Path:
    """Compiles what is loaded before the C library. It is used by processes that outlive a test's folder."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    made = Path(mkdtemp(prefix="headwater-clock-")) / "set_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", made, SOURCE, "-ldl"], check=True)
    return made


class ProcessClock:
    """The clock of a process that is started with `environ`, and of its children."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._file.write_bytes(struct.pack("q", 0))
        self.environ = {"LD_PRELOAD": str(_library()), "SET_CLOCK_FILE": str(file)}

    def set_ahead(self, by: timedelta) -> None:
        """Sets it, also while the process runs. A negative `by` sets it back."""
        with self._file.open("r+b") as opened:
            opened.write(struct.pack("q", round(by.total_seconds())))
