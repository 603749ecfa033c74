"""Where compiled code is kept: in a folder that is named after the code it was made from.

numba itself would not notice that a function in another file has changed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def folder() -> Path:
    """Where the machine code of this very code is kept: beside it, or at home where that must not be written."""
    digest = hashlib.sha256(sys.version.encode())
    for file in sorted(_HERE.glob("*.py")):
        digest.update(file.read_bytes())
    beside = _HERE / "__pycache__"
    writable = os.access(beside if beside.exists() else _HERE, os.W_OK)
    kept = beside if writable else Path.home() / ".cache" / "headwater"
    return kept / f"compiled-{digest.hexdigest()[:16]}"
