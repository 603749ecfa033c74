"""People, tenants and tokens, for whoever has a shell on the machine that runs Headwater."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from headwater import wire
from headwater.app import account, people
from headwater.app.account import TokenJson
from headwater.app.people import InvitationJson, PersonJson, TenantJson
from headwater.app.shapes import shaped
from headwater.cli.session import Json, ago, json_line, json_lines, opened, say, table
from headwater.errors import BadInput
from headwater.model import Reader
from headwater.wire import Parts

app = typer.Typer(help="The people who use this Headwater, and its tenants.", no_args_is_help=True)
tokens = typer.Typer(help="Tokens for programs that use the API.", no_args_is_help=True)

TenantName = Annotated[
    str | None, typer.Option("--tenant", help="Name of the tenant. Default: the one that runs the instance.")
]
Who = Annotated[str, typer.Argument(help="E-mail address, name or id of somebody.")]
Of = Annotated[str | None, typer.Option("--of", help="Whose: e-mail address, name or id. Default: the owner.")]


@contextmanager
def _within(tenant: str | None) -> Iterator[tuple[Parts, Reader]]:
    """Opens the store. The reader is an owner of the tenant."""
    with opened() as (parts, owner):
        yield parts, parts.db.read_now(people.reader_in, tenant, owner)


@app.command("list")
def list_people(tenant: TenantName = None, as_json: Json = False) -> None:
    """List the people of a tenant, and who is invited."""
    with _within(tenant) as (parts, reader):
        now = parts.now()
        found = parts.db.read_now(people.everybody, reader)
        invited = parts.db.read_now(people.invitations, reader, now)
    if as_json:
        json_lines(PersonJson, found)
        return
    rows = [(str(one.id), one.name, one.email or "", one.role, ago(one.seen_at, now)) for one in found]
    rows += [("", "", one.email, one.role, f"invited {ago(one.created_at, now)}") for one in invited]
    table("", ("id", "name", "e-mail", "role", "last seen"), rows)


@app.command("invite")
def invite(
    email: Annotated[str, typer.Argument(help="Address with which they will sign in.")],
    role: Annotated[str, typer.Option(help="owner, operator, member or viewer.")] = "member",
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Make a link with which somebody joins. It works once and for 7 days."""
    with _within(tenant) as (parts, reader):
        made = parts.db.write_now(people.invite, reader, email, role, wire.home(parts.settings), parts.now())
    if as_json:
        json_line({"invitation": shaped(InvitationJson, made.invitation), "link": made.link})
    else:
        say(made.link)


@app.command("role")
def give_role(
    who: Who,
    role: Annotated[str, typer.Argument(help="owner, operator, member or viewer.")],
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Give somebody another role. It counts from their next request on."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        changed = parts.db.write_now(people.give_role, reader, person.id, role)
    json_line(shaped(PersonJson, changed)) if as_json else say(f"{changed.name} is {changed.role} now.")


@app.command("email")
def set_email(
    who: Who,
    email: Annotated[str, typer.Argument(help="Address with which they sign in.")],
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Set the e-mail address with which somebody signs in."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        changed = parts.db.write_now(people.set_email, reader, person.id, email)
    json_line(shaped(PersonJson, changed)) if as_json else say(f"{changed.name} signs in as {changed.email} now.")


@app.command("password")
def set_password(who: Who, tenant: TenantName = None, as_json: Json = False) -> None:
    """Set somebody's password. It is prompted for, or read from standard input. All their sessions end."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        typed = (
            typer.prompt("New password", hide_input=True, confirmation_prompt=True)
            if sys.stdin.isatty()
            else sys.stdin.readline().rstrip("\n")
        )
        parts.db.write_now(people.set_password, person, typed)
    json_line({"id": person.id, "changed": True}) if as_json else say(f"{person.name} has a new password.")


@app.command("remove")
def remove(who: Who, tenant: TenantName = None, as_json: Json = False) -> None:
    """Remove somebody with everything that is theirs. It cannot be undone."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        parts.db.write_now(people.remove, reader, person.id)
    json_line({"id": person.id, "removed": True}) if as_json else say(f"{person.name} was removed.")


@app.command("login")
def login_link(who: Who, tenant: TenantName = None, as_json: Json = False) -> None:
    """Make a link that signs somebody in, once."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        link = parts.db.write_now(account.login_link, person.reader, wire.home(parts.settings), parts.now())
    json_line({"link": link}) if as_json else say(link)


@app.command("identity")
def link_identity(
    who: Who,
    subject: Annotated[str, typer.Argument(help="The `sub` of their access tokens.")],
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Say who somebody is at the issuer that HEADWATER_JWT_ISSUER names."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        issuer = parts.settings.jwt_issuer
        if issuer is None:
            raise BadInput("HEADWATER_JWT_ISSUER is not set. Set it first.")
        parts.db.write_now(people.link_identity, person, issuer, subject, parts.now())
    json_line({"id": person.id, "subject": subject}) if as_json else say(f"{subject} is {person.name} now.")


@tokens.command("drop-keys")
def drop_keys(as_json: Json = False) -> None:
    """Delete the keys of access tokens. All access tokens end within a minute; new ones get a new key."""
    with opened() as (parts, _):
        count = parts.db.write_now(account.forget_keys)
    json_line({"dropped": count}) if as_json else say(f"{count} keys deleted.")


@app.command("tenants")
def list_tenants(as_json: Json = False) -> None:
    """List the tenants of this instance."""
    with opened() as (parts, _):
        found = parts.db.read_now(people.tenants)
    if as_json:
        json_lines(TenantJson, found)
    else:
        rows = [(one.id, one.name, one.people, "runs the instance" if one.runs_instance else "") for one in found]
        table("", ("id", "name", "people", ""), rows)


@app.command("tenant")
def add_tenant(
    name: Annotated[str, typer.Argument(help="Its name.")],
    owner: Annotated[str, typer.Option("--owner", help="E-mail address of its first owner.")],
    as_json: Json = False,
) -> None:
    """Add a tenant. Prints a link that signs its owner in, once."""
    with opened() as (parts, _):
        made = parts.db.write_now(people.add_tenant, name, owner, wire.home(parts.settings), parts.now())
    if as_json:
        json_line({"tenant": shaped(TenantJson, made.tenant), "owner": shaped(PersonJson, made.owner),
                   "link": made.link})  # fmt: skip
    else:
        say(made.link)


def _whose(parts: Parts, reader: Reader, of: str | None) -> Reader:
    return parts.db.read_now(people.named, reader, of).reader if of else reader


@tokens.command("list")
def list_tokens(of: Of = None, tenant: TenantName = None, as_json: Json = False) -> None:
    """List tokens, without their secrets."""
    with _within(tenant) as (parts, reader):
        now = parts.now()
        found = parts.db.read_now(account.every_token, _whose(parts, reader, of), now)
    if as_json:
        json_lines(TokenJson, found)
        return
    rows = [
        (
            one.id,
            one.name,
            "everything" if one.scopes is None else " ".join(sorted(one.scopes)),
            ago(one.last_used_at, now),
            ago(one.expires_at, now) if one.expires_at else "never",
        )
        for one in found
    ]
    table("", ("id", "name", "scopes", "last used", "ends"), rows)


@tokens.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="What it may do, such as posts:read. Default: everything.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="For how many days it is valid. Default: until revoked.")] = None,
    of: Of = None,
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Make a token. It is shown once; only its hash is stored."""
    with _within(tenant) as (parts, reader):
        whose = _whose(parts, reader, of)
        made = parts.db.write_now(account.create_token, whose, name, parts.now(), wanted=scope or None, days=days)
    json_line({"token": shaped(TokenJson, made.token), "secret": made.secret}) if as_json else say(made.secret)


@tokens.command("revoke")
def revoke_token(
    token_id: Annotated[int, typer.Argument(help="Id of the token, as `headwater tokens list` shows it.", min=1)],
    of: Of = None,
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Revoke a token. A running Headwater refuses it within two seconds."""
    with _within(tenant) as (parts, reader):
        parts.db.write_now(account.revoke_token, _whose(parts, reader, of), token_id)
    json_line({"id": token_id, "revoked": True}) if as_json else say("Revoked.")
