"""Compiling takes a minute: it is done once, however many processes start."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from headwater.dedup import warm

MAKE = "import sys; from headwater.dedup import warm; warm.make(); print('headwater.dedup.engine' in sys.modules)"
COME_SECOND = """
import pathlib, sys
from headwater.dedup import warm
print("waiting", flush=True)
with warm._one_at_a_time():
    print(pathlib.Path(sys.argv[1]).exists())
"""


def test_what_is_compiled_already_is_not_compiled_again() -> None:
    assert warm.is_compiled()
    assert subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True).stdout == "False\n"


def test_whoever_comes_while_another_process_compiles_waits_for_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with warm._one_at_a_time():
        second = subprocess.Popen([sys.executable, "-c", COME_SECOND, str(made)], stdout=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert second.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        made.touch()
    assert second.communicate()[0] == "True\n"
