"""Fixtures that all tests share, and the rule that nothing is skipped under CI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import psycopg
import pytest
import structlog

from api.running import Client, Running, running
from headwater import wire
from headwater.model import Reader
from headwater.settings import load
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.wire import Parts
from support.disks import NO_MOUNT
from support.posts import NOON
from support.services import (
    APP_ROLE,
    as_app_role,
    empty_redis_database,
    fresh_postgres_database,
    make_app_role,
    service_url,
    worker,
)
from support.web import ALLOW_LOOPBACK, Web, web

if TYPE_CHECKING:
    from support.cluster import OwnRedis

NO_DATA = "no measuring data"
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

# A run of the tests finds the same as the one before it, however busy the machine is. `make test-search` looks further.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile("same")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A fresh, empty PostgreSQL database."""
    with fresh_postgres_database(service_url("postgres")) as url:
        yield url


@pytest.fixture
def redis_url() -> str:
    """An empty Redis database. Test processes that run side by side have one each."""
    return empty_redis_database(service_url("redis"), worker())


@pytest.fixture
def own_redis() -> Iterator[OwnRedis]:
    """A Redis that a test may stop and start."""
    from support.cluster import OwnRedis  # it loads Celery, which most tests do not need

    made = OwnRedis()
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command that runs within the test's process says where to log; nobody after it should log there."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def sqlite_schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest schema and an owner, to be copied: making it takes longer than many a test."""
    file = tmp_path_factory.mktemp("schema") / "headwater.db"
    _make_schema(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_url(sqlite_schema: Path, tmp_path: Path) -> str:
    """A SQLite store with the newest schema."""
    shutil.copy(sqlite_schema, tmp_path / "headwater.db")
    return f"sqlite:///{tmp_path / 'headwater.db'}"


@pytest.fixture(scope="session")
def postgres_schema() -> Iterator[str]:
    """The name of a database with the newest schema and an owner, to be copied."""
    with fresh_postgres_database(service_url("postgres")) as url:
        make_app_role(url)
        _make_schema(url, APP_ROLE)
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"GRANT CREATE ON SCHEMA public TO {APP_ROLE}")  # for tables of a test's own
        yield url.rpartition("/")[2]


def _make_schema(url: str, app_role: str | None = None) -> None:
    database = Database(url)
    migrate.upgrade(database, app_role=app_role)
    database.write_now(accounts.make_owner, NOON)
    database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A store with the newest schema on each engine in turn: whatever the store promises, it promises on both.

    On PostgreSQL it is opened by a role that row level security binds.
    """
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    template: str = request.getfixturevalue("postgres_schema")
    with fresh_postgres_database(service_url("postgres"), template) as url:
        yield as_app_role(url)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As `store_url`, for all tests of a module together."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("shared") / "headwater.db"
        shutil.copy(request.getfixturevalue("sqlite_schema"), file)
        yield f"sqlite:///{file}"
        return
    template: str = request.getfixturevalue("postgres_schema")
    with fresh_postgres_database(service_url("postgres"), template) as url:
        yield as_app_role(url)


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with nothing in it, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'headwater.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def environ(store_url: str, tmp_path: Path) -> dict[str, str]:
    """The settings of a Headwater that may visit loopback, with no gap between its requests to a host."""
    return {
        **ALLOW_LOOPBACK,
        "HEADWATER_DATABASE_URL": store_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
        "HEADWATER_HOST_GAP_SECONDS": "0",
        "HEADWATER_BROWSER_SANDBOX": "on" if os.geteuid() else "off",
    }


@pytest.fixture
def parts(environ: dict[str, str]) -> Iterator[Parts]:
    opened = wire.open_parts(load(environ))
    wire.prepare_store(opened)
    yield opened
    opened.close()


@pytest.fixture
def world() -> Iterator[Web]:
    with web() as made:
        yield made


@pytest.fixture
def until_the_end() -> Iterator[ExitStack]:
    """Whatever the test enters into this is closed after it, the last first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def db(store_url: str) -> Iterator[Database]:
    """A store with the newest schema, on each database in turn."""
    database = Database(store_url)
    yield database
    database.close()


@pytest.fixture
def headwater(sqlite_url: str) -> Iterator[Running]:
    """A running Headwater on SQLite."""
    with running(sqlite_url) as made:
        yield made


@pytest.fixture
def program(headwater: Running) -> Client:
    """A client of it that has an API token."""
    return headwater.program()


@pytest.fixture
def on_both(store_url: str) -> Iterator[Running]:
    """A running Headwater on each database in turn."""
    with running(store_url) as made:
        yield made


@pytest.fixture(scope="module")
def shared_on_both(shared_store_url: str) -> Iterator[Running]:
    """A running Headwater on each database in turn, for all tests of a module together."""
    with running(shared_store_url) as made:
        yield made


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
        line = f"{report.nodeid}: {reason}"
        if NO_MOUNT in reason:  # the full disk is simulated elsewhere as well
            return
        if (NO_DATA not in reason or DATA.is_dir()) and line not in self.skipped:
            self.skipped.append(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            terminalreporter.write_line("\n".join(self.skipped))


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput"):  # what workers skip is reported here
        config.pluginmanager.register(SkipsFail())
