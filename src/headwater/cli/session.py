"""What commands share: how they begin (settings, store, owner, event loop) and answer (JSON, text, errors, the log)."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Protocol, TypeVar

import orjson
import typer

from headwater import wire
from headwater.app import instance, people
from headwater.app.shapes import shaped
from headwater.errors import BadInput, HeadwaterError, StoreMissing
from headwater.model import Reader
from headwater.settings import load
from headwater.settings.table import Settings
from headwater.wire import Parts

# rich is loaded only where something is drawn: `headwater up` runs for months and draws nothing.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

R = TypeVar("R")
T = TypeVar("T")
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
SourceName = Annotated[str, typer.Argument(help="Address or id of a source that you follow.")]
PostId = Annotated[int, typer.Argument(help="Id of a post.", min=1)]
EXIT_FAILED = 1
EXIT_USAGE = 2
PIPE_WIDTH = 10_000

_RUNNING = "running"  # the file in the data folder that says where the server listens

current_command: ContextVar[str] = ContextVar("command", default="")
# Bell, backspace and the like. A title must not play tricks with the terminal.
_CONTROL_CODES = dict.fromkeys((7, 8, 11, 12, 13))


@cache
def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: a table in it is neither wrapped nor cut.
    return Console(stderr=stderr, highlight=False, soft_wrap=True, width=None if stream.isatty() else PIPE_WIDTH)


@contextmanager
def opened_parts(**given: Any) -> Iterator[Parts]:
    """Opens the parts with the settings of the environment, and closes them at the end."""
    loaded = load(**given)
    wire.configure_logs(loaded.settings.log_level, loaded.settings.log_format)
    parts = wire.open_parts(loaded)
    try:
        with people.acting(None, _agent(), parts.now):
            yield parts
    finally:
        parts.close()


def _agent() -> str:
    """Returns the command and whose shell it runs in, for the audit log."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        who = f"user {os.getuid()}"
    return f"headwater {current_command.get()} ({who})"


@contextmanager
def opened(*, or_new: bool = False) -> Iterator[tuple[Parts, Reader]]:
    """Opens the parts and the store. An old store waits for `headwater db upgrade` or `up`.

    Only commands that put something into the store make a new one (`or_new`). Raises StoreMissing for the others.
    """
    with opened_parts() as parts:
        if or_new and not instance.is_there(parts.db):
            owner = wire.prepare_store(parts)
        else:
            require_store(parts)
            owner = instance.owner(parts.db)
        with people.acting(owner, _agent(), parts.now):
            yield parts, owner


_NO_STORE = (
    "Run the command in the folder of your store, or set HEADWATER_DATA_DIR or HEADWATER_DATABASE_URL. "
    "`headwater up`, `add`, `import` and `db upgrade` make a new store."
)


def require_store(parts: Parts) -> None:
    """Raises StoreMissing if there is no store. The message says where Headwater looked."""
    if not instance.is_there(parts.db):
        raise StoreMissing(f"There is no store here. Headwater looked for {place_of(parts)}. {_NO_STORE}")


def place_of(parts: Parts) -> str:
    """Returns where the store should be, without a password."""
    url = parts.db.engine.url
    if parts.db.is_sqlite:
        return str(Path(url.database or "").absolute())
    return f"the tables of the database {url.database} at {url.host or 'this machine'}"


@contextmanager
def noted_as_running(settings: Settings) -> Iterator[None]:
    """Notes for other commands in this folder where the server listens, for as long as it does."""
    file = settings.data_dir / _RUNNING
    with suppress(OSError):  # then they take the port of the settings
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{os.getpid()} {settings.host} {settings.port}\n", encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def running_settings(settings: Settings) -> Settings:
    """Returns the settings with the address at which the server of this folder listens now, if there is one."""
    try:
        pid, host, port = (settings.data_dir / _RUNNING).read_text(encoding="utf-8").split()
        with suppress(PermissionError):  # it runs, as another user
            os.kill(int(pid), 0)
        with socket.create_connection((_reachable(host), int(port)), timeout=2):
            return settings.model_copy(update={"host": host, "port": int(port)})
    except (OSError, ValueError, OverflowError):  # there is none, or it was killed
        return settings


def _reachable(host: str) -> str:
    """Returns the address at which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def home_now(parts: Parts) -> str:
    """Returns the address of the pages: the public one, or that of the server that runs on this machine."""
    return wire.home(running_settings(parts.settings))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    with wire.new_runner() as runner:
        return runner.run(work)


def source_settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Reads the settings of a source as a person types them, `name=value` each. A value may be JSON."""
    found: dict[str, Any] = {}
    for pair in given or ():
        name, mark, value = pair.partition("=")
        if not mark or not name.strip():
            raise BadInput(f"{pair!r} is not a setting: write NAME=VALUE.")
        try:
            found[name.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[name.strip()] = value
    return found


def json_line(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, default=_as_json).decode() + "\n")
    sys.stdout.flush()


def _as_json(value: Any) -> Any:
    """Returns a value as something that JSON has. A row becomes an object, never what Python prints for it."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def json_lines(shape: type[Any], rows: Iterable[object], **more: Any) -> None:
    """Prints each row as an object of this shape. `more` are values that the rows do not have."""
    for row in rows:
        json_line(shaped(shape, row, **more))


def say(words: str) -> None:
    sys.stdout.write(words.translate(_CONTROL_CODES) + "\n")
    sys.stdout.flush()


def say_aside(words: str) -> None:
    """Says something on standard error, beside the output of the command."""
    sys.stderr.write(words.translate(_CONTROL_CODES) + "\n")
    sys.stderr.flush()


def read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error


@contextmanager
def output(file: Path | None) -> Iterator[BinaryIO]:
    """Opens the file for writing, or standard output if there is none."""
    if file is None:
        yield sys.stdout.buffer
        return
    try:
        with file.open("wb") as out:
            yield out
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}.") from error


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.table import Table

    shown = Table(title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")  # a name that is cut cannot be copied
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    _console().print(shown, markup=False)


def show_list(
    found: Sequence[R],
    as_json: bool,
    shape: type[Any],
    columns: Sequence[str],
    cells: Callable[[R], Sequence[object]],
    *,
    if_empty: str = "",
) -> None:
    """Prints what was found: as JSON lines of a shape, as a table, or as a sentence if there is nothing."""
    if as_json:
        json_lines(shape, found)
    elif found or not if_empty:
        table("", columns, map(cells, found))
    else:
        say(if_empty)


def fail(error: HeadwaterError) -> int:
    """Says what went wrong and what to do. Returns the exit code."""
    if "--json" in sys.argv:
        sys.stderr.write(orjson.dumps({"error": error.code, "detail": error.detail}).decode() + "\n")
    else:
        errors = _console(stderr=True)
        errors.print(f"headwater: {error.detail}", markup=False, style="red" if errors.is_terminal else None)
    return EXIT_USAGE if isinstance(error, BadInput) else EXIT_FAILED


def exit_if(failures: int) -> None:
    """Ends the command with a failure, if there was one."""
    if failures:
        raise typer.Exit(EXIT_FAILED)


class Checked(Protocol):
    """Something that was checked."""

    @property
    def what(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def detail(self) -> str: ...
    def _asdict(self) -> dict[str, Any]: ...


def say_findings(findings: Sequence[Checked], as_json: bool, *, bad: str) -> None:
    """Prints what was checked. Ends the command with a failure if something is wrong."""
    for finding in findings:
        if as_json:
            json_line(finding._asdict())
        else:
            say(f"{'ok' if finding.ok else bad:{len(bad)}}  {finding.what}: {finding.detail}")
    exit_if(sum(not finding.ok for finding in findings))


def progress() -> Progress:
    """Returns a progress bar, which shows on a terminal and not in a pipe."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    errors = _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def ago(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    future = seconds < 0
    words = _span(abs(seconds))
    return f"in {words}" if future else f"{words} ago"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def every(length: timedelta) -> str:
    """Formats an interval: 5 min, 2 h, 1 day."""
    minutes = int(length.total_seconds() // 60)
    if minutes % 1440 == 0:
        return "1 day" if minutes == 1440 else f"{minutes // 1440} days"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def _cell(value: object) -> str:
    return "" if value is None else str(value)
