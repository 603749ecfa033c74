"""Writes docs/reference/*.md from the declarations in the code: settings, commands, events, errors, schedule.

    .venv/bin/python scripts/reference.py

A test compares the files with what this makes, so nothing can be declared and stay undocumented.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from headwater.api.document import openapi
from headwater.cli.commands import app
from headwater.cli.output import every
from headwater.errors import HeadwaterError, all_errors
from headwater.events.catalogue import KINDS
from headwater.events.kafka.setup import deploy_files
from headwater.http.reference import markdown
from headwater.settings import OTHER_NAMES, Settings, names_of
from headwater.work.periodic import JOBS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Made by scripts/reference.py from the code. Change it there. -->\n"


def documents() -> dict[str, str]:
    return {
        "settings.md": "\n".join(_settings()),
        "commands.md": "\n".join(_commands()),
        "events.md": "\n".join(_events()),
        "errors.md": "\n".join(_errors()),
        "schedule.md": "\n".join(_schedule()),
        "api.md": markdown(openapi(), NOTE),
    }


def _settings() -> Iterator[str]:
    yield f"# Settings\n\n{NOTE}"
    yield "Each is an environment variable. With `_FILE` at the end of its name it is read from the file named there."
    yield "`headwater config` prints what is in force and where it came from.\n"
    yield "| name | default | meaning |\n|---|---|---|"
    for name, field in Settings.model_fields.items():
        ours, *others = names_of(name, field)
        also = "".join(f", also `{other}`" for other in others)
        default = "" if field.default is None else f"`{field.default}`"
        yield f"| `{ours}`{also} | {default} | {field.description} |"
    yield "\nThese names are known from systems that do the same with a task queue. They set nothing here:\n"
    yield "| name | what there is instead |\n|---|---|"
    for name, instead in OTHER_NAMES.items():
        yield f"| `{name}` | {instead} |"
    yield ""


def _schedule() -> Iterator[str]:
    yield f"# Periodic work\n\n{NOTE}"
    yield "Times are those of the clock, UTC: what runs every 2 h runs at 00:00, 02:00 and so on; 1 day means midnight."
    yield "`headwater up` does all of it once when it starts. A run that could not start in time, because others of its"
    yield "queue took long or the machine slept, is left out if it has expired; otherwise it is made up for. Several"
    yield "processes may do the same work: that does no harm. `headwater run NAME` does it now; the name of its task is"
    yield "taken as well. `tasks.crawler.crawl_community` has no time of its own: `headwater crawl SOURCE` is that.\n"
    yield "| name | every | expires after | queue | task | what it does |\n|---|---|---|---|---|---|"
    for job in JOBS:
        expires = every(job.expires) if job.expires else ""
        yield f"| `{job.name}` | {every(job.every)} | {expires} | `{job.queue}` | `{job.task}` | {job.does} |"
    yield ""


def _events() -> Iterator[str]:
    yield f"# Events\n\n{NOTE}"
    yield "An event commits in the same transaction as the change it tells of. Order holds among events with one key.\n"
    yield "They are CloudEvents 1.0: a Kafka record has the attributes as headers `ce_*`, a webhook as headers `ce-*`,"
    yield "and a server-sent event is the whole event as JSON. The domain, the first word of the kind, names the topic"
    yield "`events.<domain>`. A field may be added to a version; any other change makes a new one.\n"
    for kind in KINDS:
        yield f"## `{kind.name}`\n\n{kind.meaning} Version {kind.version}, key `{kind.key}`.\n"
        yield "| field | meaning |\n|---|---|"
        for field, meaning in kind.fields():
            yield f"| `{field}` | {meaning} |"
        yield ""


def _errors() -> Iterator[str]:
    yield f"# Errors\n\n{NOTE}"
    yield "The API answers with RFC 9457 problem details; `code` is stable, `detail` says what happened and what to do."
    yield "Where a source fails, the same code and words are stored with it and shown.\n"
    yield "| code | HTTP status | meaning |\n|---|---|---|"
    for kind in all_errors():
        if kind is not HeadwaterError:
            yield f"| `{kind.code}` | {kind.status} | {kind.title}. |"
    yield ""


def _commands() -> Iterator[str]:
    yield f"# Commands\n\n{NOTE}"
    yield "Exit codes: 0 ok, 1 failed, 2 bad usage. `--json` prints JSON lines. Errors go to standard error.\n"
    root: Any = typer.main.get_command(app)
    yield from _group(root, "headwater")


def _group(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _group(command, f"{path} {name}")
        else:
            yield from _command(command, f"{path} {name}")


def _command(command: Any, path: str) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([path, *(str(p.name).upper() if p.required else f"[{p.name}]" for p in arguments)])
    yield f"## `{usage}`\n\n{(command.help or '').strip()}\n"
    for parameter in command.params:
        words = getattr(parameter, "help", None) or ""
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        yield f"- {names if parameter not in arguments else f'`{parameter.name}`'}: {words}"
    yield ""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for name, text in deploy_files().items():
        (FOLDER.parents[1] / "deploy" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
