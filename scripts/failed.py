"""Runs the tests that failed last once more, one after the other, and says which of them pass now.

Many failures are not bad luck, so this runs ten at most. Without a record of failed tests (the run ended before it, or
something other than a test failed) there is nothing to run, and that is a failure too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RECORD = Path(".pytest_cache/v/cache/lastfailed")
MOST = 10


def main() -> int:
    failed = sorted(json.loads(RECORD.read_text())) if RECORD.exists() else []
    if not failed or len(failed) > MOST:
        print(f"{len(failed)} failed tests are on record; from 1 to {MOST} are run again.")
        return 1
    print("These failed, and are run again one after the other:", *failed, sep="\n  ")
    ended = subprocess.run([sys.executable, "-m", "pytest", *failed])
    if ended.returncode == 0:
        print("These failed beside others and passed alone. Make them robust:", *failed, sep="\n  ")
    return ended.returncode


if __name__ == "__main__":
    raise SystemExit(main())
