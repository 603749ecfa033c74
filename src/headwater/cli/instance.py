"""The instance itself: settings, tokens, keys, schema, backups, access to X, and whether this machine can run it."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater import wire
from headwater.app import account, instance, log, sources
from headwater.app.cluster import Finding
from headwater.cli.session import (
    EXIT_FAILED,
    Json,
    ago,
    exit_if,
    home_now,
    json_line,
    opened,
    opened_parts,
    place_of,
    require_store,
    run_async,
    running_settings,
    say,
    say_aside,
    say_findings,
    table,
)
from headwater.cli.up import listen
from headwater.errors import BadInput, HeadwaterError, KeyUnavailable
from headwater.model import Response, Source, SourceState
from headwater.settings import load, names_of
from headwater.settings.table import Settings
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.app.backup import Manifest

x = typer.Typer(help="The token for X's API, and how much of the month's budget is used.", no_args_is_help=True)
keys = typer.Typer(help="The keys that encrypt passwords and tokens.", no_args_is_help=True)
schema = typer.Typer(help="The schema of the database.", no_args_is_help=True)
PROBE_BYTES = 1024 * 1024
_SAMPLE = b"""<rss version="2.0"><channel><title>Sample</title><item><title>One</title></item></channel></rss>"""


def show_config(as_json: Json = False) -> None:
    """Show every setting: its value, where the value comes from, and what it means."""
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
        secret = parts.db.write_now(account.create_token, owner, name, parts.now()).secret
    json_line({"token": secret}) if as_json else say(secret)


def login(as_json: Json = False) -> None:
    """Make a link that signs you in, once."""
    with opened() as (parts, owner):
        link = parts.db.write_now(account.login_link, owner, home_now(parts), parts.now())
    json_line({"link": link}) if as_json else say(link)


def run_doctor(as_json: Json = False) -> None:
    """Check that this machine can run Headwater, and say what to do if it cannot."""
    say_findings(run_async(examine()), as_json, bad="FAIL")


def make_backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    images: Annotated[bool, typer.Option(help="Include downloaded images.")] = True,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Write the whole store into one file. Headwater may be running. The key is not in the file: keep it too."""
    from headwater.app import backup  # it loads the definitions of all tables, which `headwater up` never needs

    with opened_parts() as parts:
        require_store(parts)
        found = backup.write(
            parts.db,
            file,
            images=wire.image_folder(parts.settings) if images else None,
            key_id=next(iter(wire.present_keys(parts)), None),
            now=parts.now(),
            replace=replace,
        )
    _say_backup(found, file, as_json)
    if found.key.secrets and not as_json:
        say(f"Its {found.key.secrets} encrypted secrets need the key {found.key.id}, which is not in the file.")


def restore_backup(
    file: Annotated[Path, typer.Argument(help="A file that `headwater backup` wrote.")],
    any_key: Annotated[
        bool, typer.Option("--any-key", help="Restore even with another key. Encrypted secrets are lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fill an empty store from a backup of SQLite or PostgreSQL, completely or not at all."""
    from headwater.app import backup

    with opened_parts() as parts, backup.opened(file) as archive:
        folder, keys_here = wire.image_folder(parts.settings), wire.present_keys(parts)
        with wire.opened_by_owner(parts) as (db, role):
            found = backup.restore(db, archive, images=folder, key_ids=keys_here, any_key=any_key, app_role=role)
        wire.prepare_store(parts)
    _say_backup(found, file, as_json)


def _say_backup(found: Manifest, file: Path, as_json: bool) -> None:
    counts = {name: found.count(name) for name in ("sources", "posts", "event_outbox")}
    if as_json:
        json_line({"file": str(file), "made_at": found.made_at, "schema": found.schema, "key": found.key.id,
                   "secrets": found.key.secrets, "rows": found.rows, **counts, "images": found.images})  # fmt: skip
        return
    saved = "without images" if found.images is None else f"{found.images:,} images"
    say(f"{file}: {counts['sources']:,} sources, {counts['posts']:,} posts, {found.rows:,} rows in all, {saved}.")
    if found.images_missing:
        say(f"{found.images_missing:,} images were not on the disk. They will be downloaded again after a restore.")


@schema.command("upgrade")
def db_upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head", as_json: Json = False
) -> None:
    """Bring the schema to the newest revision, or to a given one."""
    with opened_parts() as parts:
        if wire.upgrade_schema(parts, revision):
            wire.prepare_store(parts)
        _say_revision(parts, as_json)


@schema.command("downgrade")
def db_downgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go back to; `base` drops everything.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Take the schema back to an older revision. Says what will be deleted, and asks first."""
    with opened_parts() as parts:
        lost = instance.lost_by_downgrade(parts.db, revision)
        require_store(parts)
        if lost and not yes:
            _confirm(f"This deletes {lost}.\nIt cannot be undone. The store is {place_of(parts)}.")
        with wire.opened_by_owner(parts) as (db, _):
            instance.downgrade_schema(db, revision)
        _say_revision(parts, as_json)


@schema.command("roles")
def db_roles(as_json: Json = False) -> None:
    """Let the role in HEADWATER_DATABASE_URL use the tables without owning them (PostgreSQL). Creates it if needed."""
    with opened_parts() as parts:
        url = parts.db.engine.url
        with wire.opened_by_owner(parts) as (db, role):
            if role is None or role == db.engine.url.username:
                raise BadInput(_TWO_ROLES)
            password = url.password
            made = instance.set_up_role(db, role, str(password) if password else None)
    if as_json:
        json_line({"role": role, "created": made})
    else:
        say(f"The role {role} {'was created and ' * made}may use the tables. `headwater doctor` checks it.")


_TWO_ROLES = (
    "This needs two PostgreSQL roles. Set HEADWATER_MIGRATION_DATABASE_URL to the role that owns the tables "
    "(the current one), and HEADWATER_DATABASE_URL to another role with its own password, such as "
    "postgresql://headwater_app:PASSWORD@host/name."
)


def _confirm(warning: str) -> None:
    """Asks on a terminal. Raises BadInput elsewhere, because nobody could answer."""
    if not sys.stdin.isatty():
        raise BadInput(f"{warning} Nothing was changed. Add --yes to do it.")
    if not typer.confirm(f"{warning}\nGo on?", err=True):
        say("Nothing was changed.")
        raise typer.Exit(EXIT_FAILED)


def _say_revision(parts: Parts, as_json: bool) -> None:
    revision = instance.schema_revision(parts.db)
    json_line({"revision": revision}) if as_json else say(f"The schema is at {revision or 'base (empty)'}.")


@keys.command("list")
def list_keys(as_json: Json = False) -> None:
    """List the keys that are present or needed, and how many secrets each encrypts."""
    with opened() as (parts, _):
        found = instance.key_uses(parts.db, parts.vault, wire.present_keys(parts))
    if as_json:
        for one in found:
            json_line(one._asdict())
    else:
        table("", ("key", "state", "secrets"), found)
    exit_if(sum(one.state == "missing" for one in found))


@keys.command("rotate")
def rotate_keys(as_json: Json = False) -> None:
    """Encrypt everything with a new key. Headwater may be running. If the command is interrupted, run it again."""
    with opened() as (parts, _):
        present = wire.present_keys(parts)
        uses = instance.key_uses(parts.db, parts.vault, present)
        is_finished = not any(one.secrets for one in uses if one.state == "other")
        if parts.makes_keys and present and is_finished:
            instance.add_key(parts.key_file)
        elif not parts.makes_keys and is_finished:
            raise BadInput(_NEXT_KEY)
        done = instance.reseal(parts.db, parts.vault, parts.now())
        key = parts.vault.key_id
    if as_json:
        json_line({"key": key, "encrypted": done.done, "lost": done.lost})
    else:
        say(f"{done.done} secrets are now encrypted with the key {key}.")
        if parts.makes_keys:
            say("Keep a copy of secret.key. Older backups need its old keys.")
    if done.lost:
        say_aside(f"{done.lost} secrets need keys that are missing. `headwater keys list` names them.")
    exit_if(done.lost)


_NEXT_KEY = (
    "Everything is encrypted with the current key from the settings. To change it, put the new key into "
    "HEADWATER_SECRET_KEY (or its command) and the current one into HEADWATER_OTHER_SECRET_KEYS, restart, and run "
    "this again."
)


@keys.command("forget")
def forget_key(
    key: Annotated[str, typer.Argument(help="Id of the key; `headwater keys list` shows it.")], as_json: Json = False
) -> None:
    """Remove an old key from secret.key. Refused if anything is still encrypted with it."""
    with opened() as (parts, _):
        for one in instance.key_uses(parts.db, parts.vault, wire.present_keys(parts)):
            if one.id == key and (one.secrets or one.state == "current"):
                why = f"{one.secrets} secrets are encrypted with it" if one.secrets else "it is the current key"
                raise BadInput(f"The key {key} is needed: {why}. `headwater keys rotate` changes to another key.")
        instance.forget_key(parts.db, parts.key_file, key)
    json_line({"key": key, "forgotten": True}) if as_json else say(
        "Removed. Secrets in backups that need it can no longer be decrypted."
    )


@keys.command("create")
def create_key(as_json: Json = False) -> None:
    """Make a new key if the old one is lost. You have to enter again whatever the old key encrypted."""
    with opened() as (parts, _):
        if not parts.makes_keys:
            raise BadInput("The key is in the settings. Change it there.")
        if parts.key_file.present():
            raise BadInput("There is a key already. `headwater keys rotate` makes a new one.")
        made = instance.create_key(parts.db, parts.key_file)
    json_line({"key": made}) if as_json else say(f"The key is now {made}. Keep a copy of {parts.key_file.path}.")


@x.command("token")
def set_x_token(as_json: Json = False) -> None:
    """Store the token for X's API, encrypted. It comes from a prompt or standard input."""
    typed = typer.prompt("Bearer token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    token = instance.check_x_token(typed)
    with opened() as (parts, _):
        if parts.settings.x_bearer_token:
            raise BadInput("HEADWATER_X_BEARER_TOKEN is set and overrides a stored token. Unset it first.")
        waiting = parts.db.write_now(instance.store_x_token, parts.seal(token), parts.now())
    json_line({"kept": True, "sources_due": waiting}) if as_json else say(f"Stored. {waiting} sources are due now.")


@x.command("forget")
def forget_x_token(as_json: Json = False) -> None:
    """Delete the stored token. X sources then wait until there is another."""
    with opened() as (parts, _):
        forgotten = parts.db.write_now(instance.forget_x_token)
    if as_json:
        json_line({"forgotten": forgotten})
    else:
        say("Deleted." if forgotten else "No token was stored.")


@x.command("status")
def x_status(as_json: Json = False) -> None:
    """Show whether there is a token, and how much of this month's requests and posts is used."""
    with opened() as (parts, _):
        now, allowance = parts.now(), wire.x_allowance(parts.settings)
        state = run_async(instance.x_state(parts.db, partial(wire.x_token, parts), allowance, now))
    if as_json:
        json_line({"token": not state.problem, "problem": state.problem or None, "requests": state.used.requests,
                   "most_requests": state.allowance.requests, "posts": state.used.posts,
                   "most_posts": state.allowance.posts, "month_ends": state.month_ends,
                   "sources": state.sources})  # fmt: skip
        return
    say(state.words[:1].upper() + state.words[1:].removesuffix(".") + ".")
    say(f"{state.sources} sources; the next month begins {ago(state.month_ends, now)}.")


async def examine() -> list[Finding]:
    return [finding async for finding in _findings()]


async def _findings() -> AsyncIterator[Finding]:
    yield Finding("python", sys.version_info >= (3, 11), platform.python_version())
    version, is_new_enough = instance.sqlite_version()
    yield Finding("sqlite", is_new_enough, version)
    try:
        loaded = load()
        parts = wire.open_parts(loaded)
    except HeadwaterError as error:
        yield Finding("settings", False, error.detail)
        return
    yield Finding("settings", True, "valid; `headwater config` shows them")
    try:
        yield _data_folder(parts)
        yield _database(parts)
        yield _file(parts)
        yield _tenants(parts)
        yield _keys(parts)
        yield await _x_access(parts)
        yield await _parsing(parts)
        yield _compiled_parts()
        yield _port(parts)
        if parts.settings.tls_certificate:
            yield _tls(parts)
        async for finding in wire.examine_cluster(parts):
            yield finding
        if not parts.follows_table:
            figure = await log.examine_connector(parts.db, parts.settings.kafka_connect_url)
            yield Finding("connector", figure.state == "ok", figure.advice or "running")
    finally:
        parts.close()


def _data_folder(parts: Parts) -> Finding:
    folder = parts.settings.data_dir
    try:
        # Only writing shows whether there is space. The free space that a disk reports ignores quotas.
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else folder.absolute().parent) as probe:
            probe.write(b"\0" * PROBE_BYTES)
    except OSError as error:
        return Finding(
            "data folder",
            False,
            f"{folder} cannot be written: {error.strerror}. Free some space, or check its permissions",
        )
    return Finding("data folder", True, f"{folder} can be written")


def _database(parts: Parts) -> Finding:
    name = parts.db.engine.dialect.name
    try:
        if not instance.is_there(parts.db):
            return Finding("database", True, f"{name}, empty; the first start fills it ({place_of(parts)})")
        instance.check_schema(parts.db)
        return Finding("database", True, f"{name}, schema {instance.schema_revision(parts.db)}")
    except HeadwaterError as error:
        return Finding("database", False, error.detail)


def _file(parts: Parts) -> Finding:
    """Whether the whole SQLite file can be read, and by whom."""
    file = parts.db.condition.file
    if file is None or not file.exists():
        return Finding("database file", True, "there is none")
    try:
        parts.db.quick_check()
        for problem in parts.db.condition.problems():
            raise problem
    except HeadwaterError as error:
        return Finding("database file", False, error.detail)
    if exposure := parts.db.condition.exposure():
        return Finding("database file", False, exposure)
    return Finding("database file", True, f"{file} is intact, and only its owner can read it")


async def _x_access(parts: Parts) -> Finding:
    """Whether what is followed at X can be asked for."""
    try:
        if not instance.is_there(parts.db):
            return Finding("X", True, "nothing is followed there")
        state = await instance.x_state(
            parts.db, partial(wire.x_token, parts), wire.x_allowance(parts.settings), parts.now()
        )
    except HeadwaterError:
        return Finding("X", True, "nothing is followed there")  # the finding about the database says what is wrong
    waits = state.sources > 0 and (state.problem != "" or state.is_spent)
    return Finding("X", not waits, state.words)


def _tenants(parts: Parts) -> Finding:
    """Whether PostgreSQL separates the tenants by itself. With one tenant there is nothing to separate."""
    if parts.db.is_sqlite:
        return Finding("tenants", True, "separated by every query; on PostgreSQL the server enforces it too")
    try:
        if not instance.is_there(parts.db):
            return Finding("tenants", True, "there are none yet")
        instance.check_schema(parts.db)
        problems, several = parts.db.read_now(instance.isolation)
    except HeadwaterError:
        return Finding("tenants", True, "unknown")  # the database says what is the matter with it
    if not problems:
        return Finding("tenants", True, "row level security separates them")
    advice = f"{'; '.join(problems)}. `headwater db roles` sets up a role that is bound by it"
    return Finding("tenants", not several, f"row level security does not separate them: {advice}")


def _keys(parts: Parts) -> Finding:
    """Whether everything that is encrypted can be decrypted with the keys that are here."""
    try:
        present = wire.present_keys(parts)
        if not instance.is_there(parts.db):
            return Finding("keys", True, "nothing is encrypted yet")
        instance.check_schema(parts.db)
        uses = instance.key_uses(parts.db, parts.vault, present)
    except KeyUnavailable as error:
        return Finding("keys", False, error.detail)
    except HeadwaterError:
        return Finding("keys", True, "unknown")  # the database says what is the matter with it
    missing = [f"{one.secrets} with the key {one.id}" for one in uses if one.state == "missing"]
    if missing:
        return Finding(
            "keys", False, f"secrets are encrypted with missing keys: {', '.join(missing)}. Put the keys back "
            "(a line of secret.key, or HEADWATER_OTHER_SECRET_KEYS), or enter the passwords and tokens again",
        )  # fmt: skip
    old = sum(one.secrets for one in uses if one.state == "other")
    rest = f"; {old} of them with an older key: `headwater keys rotate` changes that" if old else ""
    return Finding("keys", True, f"{sum(one.secrets for one in uses)} secrets can be decrypted{rest}")


async def _parsing(parts: Parts) -> Finding:
    parsers = wire.open_parsers(parts)
    answer = Response("http://sample.invalid/", 200, {}, _SAMPLE, datetime.now(UTC))
    try:
        page = await parsers.read(Source(0, sources.DEFAULT_KIND, answer.url), SourceState(), answer)
        return Finding("parsing process", len(page.posts) == 1, "parses a sample feed")
    except HeadwaterError as error:
        return Finding("parsing process", False, error.detail)
    finally:
        await parsers.close()


def _compiled_parts() -> Finding:
    parts = instance.compiled_parts()
    slow = " and ".join(part for part, is_compiled in parts.items() if not is_compiled)
    if not slow:
        return Finding("compiled parts", True, " and ".join(parts))
    return Finding(
        "compiled parts", True, f"{slow}: not compiled, and so slower. Install a C compiler, then reinstall Headwater"
    )


def _port(parts: Parts) -> Finding:
    wanted, now = parts.settings, running_settings(parts.settings)
    if now is not wanted:
        return Finding("port", True, f"this Headwater is running at {now.host}:{now.port}")
    try:
        listen(wanted).close()
    except HeadwaterError as error:
        return Finding("port", False, error.detail)
    return Finding("port", True, f"{wanted.host}:{wanted.port} is free")


def _tls(parts: Parts) -> Finding:
    from headwater.server import certificate_of  # loads the web framework

    try:
        certificate_of(parts)
    except HeadwaterError as error:
        return Finding("TLS", False, error.detail)
    return Finding("TLS", True, f"{parts.settings.tls_certificate} is valid, and its key matches")
