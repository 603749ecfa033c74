"""A command starts quickly: what it does not need is not loaded."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"fastapi", "alembic", "uvicorn", "numpy", "trafilatura", "playwright", "confluent_kafka", "jinja2"}
# What a server that runs for months does without until somebody needs it.
HEAVY_FOR_A_SERVER = {
    "alembic",
    "cryptography",
    "rich",
    "pygments",
    "trafilatura",
    "feedparser",
    "nh3",
    "numpy",
    "lxml",
    "selectolax",
    "pydantic.v1.main",
}
LOADED = "import sys; from headwater.cli.commands import program; program(); print(' '.join(sys.modules))"


def test_commands_load_neither_the_web_nor_migrations_nor_compilers() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert HEAVY & set(loaded) == set()
    assert "headwater.wire" in loaded


def test_a_server_loads_neither_migrations_nor_parsers_nor_what_draws_on_a_terminal() -> None:
    load = (
        "import sys; from headwater.cli import leave_out_unused; leave_out_unused();"
        "from headwater.cli.commands import program; program();"
        "import headwater.server, headwater.dedup.engine; print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", load], check=True, capture_output=True, text=True).stdout.split()
    assert HEAVY_FOR_A_SERVER & set(loaded) == set()


def test_a_command_loads_no_other_commands() -> None:
    load = (
        "import sys; from headwater.cli.commands import program_for; program_for(['up']); print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", load], check=True, capture_output=True, text=True).stdout.split()
    assert {name for name in loaded if name.startswith("headwater.cli.")} == {
        "headwater.cli.commands",
        "headwater.cli.session",
        "headwater.cli.up",
    }
