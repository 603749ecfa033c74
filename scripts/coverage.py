"""Prints one line about the coverage that `make test` has measured: scripts/coverage.py build/coverage.json

Processes that tests start, such as parsers and those that are killed, are not measured.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    file = Path(sys.argv[1])
    summary = json.loads(file.read_text(encoding="utf-8"))["summary"]
    lines = summary["covered_lines"] + summary["missing_lines"]
    print(f"Coverage: {summary['percent_covered']:.1f} % of {lines:,} lines ({file} has the details)")


if __name__ == "__main__":
    main()
