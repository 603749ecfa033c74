"""A command starts quickly: what it does not need is not loaded."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"fastapi", "alembic", "uvicorn", "numpy", "trafilatura", "playwright", "confluent_kafka", "jinja2"}
LOADED = "import sys; import headwater.cli.commands; print(' '.join(sys.modules))"


def test_commands_load_neither_the_web_nor_migrations_nor_compilers() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert HEAVY & set(loaded) == set()
    assert "headwater.wire" in loaded
