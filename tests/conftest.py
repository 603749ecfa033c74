"""Fixtures that all tests share, and the rule that nothing is skipped under CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.model import Reader
from headwater.store import accounts, migrate
from headwater.store.db import Database
from support.posts import NOON
from support.services import empty_redis_database, fresh_postgres_database, service_url

NO_DATA = "no measuring data"
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A fresh, empty PostgreSQL database."""
    with fresh_postgres_database(service_url("postgres")) as url:
        yield url


@pytest.fixture
def redis_url() -> str:
    """An empty Redis database. Test processes that run side by side have one each."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return empty_redis_database(service_url("redis"), int(worker.removeprefix("gw")))


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database on each engine in turn: whatever the store promises, it promises on both."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'headwater.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def db(store_url: str) -> Iterator[Database]:
    """A store with the newest schema, on each database in turn."""
    database = Database(store_url)
    migrate.upgrade(database)
    yield database
    database.close()


@pytest.fixture
def owner(db: Database) -> Reader:
    return db.write_now(accounts.make_owner, NOON)


@pytest.fixture(scope="session")
def measuring_data() -> Path:
    """Real feeds and pages that are no part of the project."""
    if not DATA.is_dir():
        pytest.skip(f"{NO_DATA}: {DATA} is not there (HEADWATER_TEST_DATA names another folder)")
    return DATA


class SkipsFail:
    """Under CI a test that did not run is a failure: a missing server must not look like a good result."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.note(report)

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if NO_DATA not in reason or DATA.is_dir():
            self.skipped.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            terminalreporter.write_line("\n".join(self.skipped))


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI") == "true":
        config.pluginmanager.register(SkipsFail())
