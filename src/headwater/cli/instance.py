"""The instance itself: its settings, its tokens, its schema, and whether this machine can run it."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater import wire
from headwater.app import instance
from headwater.cli import doctor
from headwater.cli.output import exit_if, json_line, say, table
from headwater.cli.session import Json, opened, opened_parts, run_async
from headwater.settings import Settings, load, names_of
from headwater.wire import Parts

schema = typer.Typer(help="The schema of the database.", no_args_is_help=True)


def show_config(as_json: Json = False) -> None:
    """Show every setting: its value, where that came from, and what it means."""
    loaded = load()
    rows = []
    for name, field in Settings.model_fields.items():
        value, origin = getattr(loaded.settings, name), loaded.origins[name]
        rows.append((names_of(name, field)[0], value, origin, field.description))
    if as_json:
        for variable, value, origin, meaning in rows:
            shown = value if isinstance(value, int | float | str | None) else str(value)
            json_line({"name": variable, "value": shown, "from": origin, "meaning": meaning})
    else:
        table("", ("setting", "value", "from", "meaning"), rows)


def token(
    name: Annotated[str, typer.Option(help="What the token is for.")] = "command line", as_json: Json = False
) -> None:
    """Make a token for the API. It is shown once; only its hash is stored."""
    with opened() as (parts, owner):
        secret = parts.db.write_now(instance.issue_token, owner, name, parts.now())
    json_line({"token": secret}) if as_json else say(secret)


def login(as_json: Json = False) -> None:
    """Make a link that signs you in, once."""
    with opened() as (parts, owner):
        link = parts.db.write_now(instance.login_link, owner, wire.home(parts.settings), parts.now())
    json_line({"link": link}) if as_json else say(link)


def run_doctor(as_json: Json = False) -> None:
    """Check that this machine can run Headwater, and say what to do where it cannot."""
    findings = run_async(doctor.examine())
    for finding in findings:
        if as_json:
            json_line(finding._asdict())
        else:
            say(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what}: {finding.detail}")
    exit_if(sum(not finding.ok for finding in findings))


@schema.command("upgrade")
def db_upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head", as_json: Json = False
) -> None:
    """Bring the schema to the newest revision, or to a given one."""
    with opened_parts() as parts:
        if instance.upgrade_schema(parts.db, revision):
            wire.prepare_store(parts)
        _say_revision(parts, as_json)


@schema.command("downgrade")
def db_downgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go back to; `base` drops everything.")],
    as_json: Json = False,
) -> None:
    """Take the schema back to an older revision."""
    with opened_parts() as parts:
        instance.downgrade_schema(parts.db, revision)
        _say_revision(parts, as_json)


def _say_revision(parts: Parts, as_json: bool) -> None:
    revision = instance.schema_revision(parts.db)
    json_line({"revision": revision}) if as_json else say(f"The schema is at {revision or 'base (empty)'}.")
