"""People, tenants and tokens, for those who have a shell on the machine that runs Headwater."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer
from sqlalchemy import Connection

from headwater import wire
from headwater.accounts.openid import Provider
from headwater.app import account, instance, people
from headwater.app.account import TokenJson
from headwater.app.instance import TenantJson
from headwater.app.people import AuditRow, InvitationJson, PersonJson
from headwater.app.shapes import shaped
from headwater.cli.session import Json, ago, home_now, json_line, json_lines, opened, output, run_async, say, table
from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.people.accounts import Person
from headwater.wire import Parts

app = typer.Typer(help="The people who use this Headwater, and its tenants.", no_args_is_help=True)
oidc = typer.Typer(help="The OpenID Connect provider where people sign in.", no_args_is_help=True)
tokens = typer.Typer(help="Tokens for programs that use the API.", no_args_is_help=True)

TenantName = Annotated[
    str | None, typer.Option("--tenant", help="Name of the tenant. Default: the one that runs the instance.")
]
Who = Annotated[str, typer.Argument(help="E-mail address, name or id of a person.")]
NewRole = Annotated[str, typer.Argument(help="owner, operator, member or viewer.")]
NewEmail = Annotated[str, typer.Argument(help="E-mail address for signing in.")]
Of = Annotated[str | None, typer.Option("--of", help="Whose tokens: e-mail address, name or id. Default: the owner.")]


@contextmanager
def _within(tenant: str | None) -> Iterator[tuple[Parts, Reader]]:
    """Opens the store. The reader is an owner of the tenant."""
    with opened() as (parts, owner):
        yield parts, parts.db.read_now(people.reader_in, tenant, owner)


def _change(
    change: Callable[[Connection, Reader, int, str], Person],
    tenant: str | None,
    who: str,
    to: str,
    words: Callable[[Person], str],
    as_json: bool,
) -> None:
    """Changes somebody, and says so in these words."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        changed = parts.db.write_now(change, reader, person.id, to)
    json_line(shaped(PersonJson, changed)) if as_json else say(words(changed))


@app.command("list")
def list_people(tenant: TenantName = None, as_json: Json = False) -> None:
    """List the people of a tenant and its invitations."""
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


@app.command("audit")
def show_audit(
    limit: Annotated[int, typer.Option(help="How many rows, newest first.", min=1)] = 50,
    everything: Annotated[bool, typer.Option("--all", help="All rows.")] = False,
    resource: Annotated[str | None, typer.Option(help="Only changes to this kind of thing, such as person.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for a spreadsheet.")] = False,
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Show who changed what in a tenant."""
    with _within(tenant) as (parts, reader):
        now, wanted = parts.now(), sys.maxsize if everything else limit
        with output(None) as out:
            if as_csv:
                out.write(people.audit_heading("csv"))
            for rows in _audit_pages(parts, reader, wanted, resource):
                if as_csv or as_json:
                    out.write(people.audit_lines(rows, "csv" if as_csv else "jsonl"))
                else:
                    table("", ("when", "who", "what", "id", "detail", "from"), [_audit_row(one, now) for one in rows])


def _audit_pages(parts: Parts, reader: Reader, wanted: int, resource: str | None) -> Iterator[list[AuditRow]]:
    before = None
    while wanted > 0:
        most = min(wanted, people.EXPORTED_AT_ONCE)
        rows = parts.db.read_now(people.audit_page, reader, before=before, limit=most, resource=resource)
        if not rows:
            return
        yield rows
        before, wanted = rows[-1].id, wanted - len(rows)


def _audit_row(one: AuditRow, now: datetime) -> tuple[str, ...]:
    who = one.user_name or "who runs this Headwater"
    return (
        ago(one.at, now), who, people.ACTIONS.get(one.action, one.action), one.resource_id or "", one.detail or "",
        one.address or one.agent or "",
    )  # fmt: skip


@app.command("invite")
def invite(
    email: Annotated[str, typer.Argument(help="E-mail address for signing in.")],
    role: Annotated[str, typer.Option(help="owner, operator, member or viewer.")] = "member",
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Make a link that lets somebody join. It works once, for 7 days."""
    with _within(tenant) as (parts, reader):
        made = parts.db.write_now(people.invite, reader, email, role, home_now(parts), parts.now())
    if as_json:
        json_line({"invitation": shaped(InvitationJson, made.invitation), "link": made.link})
    else:
        say(made.link)


@app.command("role")
def give_role(who: Who, role: NewRole, tenant: TenantName = None, as_json: Json = False) -> None:
    """Give somebody another role. It applies from their next request."""
    _change(people.give_role, tenant, who, role, lambda one: f"{one.name} is now {one.role}.", as_json)


@app.command("email")
def set_email(who: Who, email: NewEmail, tenant: TenantName = None, as_json: Json = False) -> None:
    """Set the e-mail address that somebody signs in with."""
    _change(people.set_email, tenant, who, email, lambda one: f"{one.name} now signs in as {one.email}.", as_json)


@app.command("password")
def set_password(who: Who, tenant: TenantName = None, as_json: Json = False) -> None:
    """Set somebody's password, from a prompt or standard input. All their sessions end."""
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
    """Remove somebody and everything that is theirs. This cannot be undone."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        parts.db.write_now(people.remove, reader, person.id)
    json_line({"id": person.id, "removed": True}) if as_json else say(f"{person.name} was removed.")


@app.command("login")
def login_link(who: Who, tenant: TenantName = None, as_json: Json = False) -> None:
    """Make a link that signs somebody in, once."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        link = parts.db.write_now(account.login_link, person.reader, home_now(parts), parts.now())
    json_line({"link": link}) if as_json else say(link)


@app.command("identity")
def link_identity(
    who: Who,
    subject: Annotated[str, typer.Argument(help="The `sub` of their tokens.")],
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Link somebody to a subject at HEADWATER_JWT_ISSUER or, if that is not set, at the OpenID Connect provider."""
    with _within(tenant) as (parts, reader):
        person = parts.db.read_now(people.named, reader, who)
        issuer = parts.settings.jwt_issuer or parts.settings.oidc_issuer
        if issuer is None:
            raise BadInput("Neither HEADWATER_JWT_ISSUER nor HEADWATER_OIDC_ISSUER is set. Set one first.")
        parts.db.write_now(people.link_identity, person.reader, issuer, subject, parts.now())
    json_line({"id": person.id, "subject": subject}) if as_json else say(f"{subject} is now {person.name}.")


@tokens.command("drop-keys")
def drop_keys(as_json: Json = False) -> None:
    """Delete the keys that sign access tokens. All access tokens end within a minute. New ones get a new key."""
    with opened() as (parts, _):
        count = parts.db.write_now(account.forget_keys)
    json_line({"dropped": count}) if as_json else say(f"{count} keys deleted.")


ProviderKey = Annotated[str, typer.Option("--provider", help="Key of one of HEADWATER_OIDC_PROVIDERS.")]


@oidc.command("status")
def oidc_status(provider: ProviderKey = "", as_json: Json = False) -> None:
    """Show what to register at the provider, check that it answers, and show who may sign in."""
    with opened() as (parts, _):
        asked, welcome = _provider(parts, provider), parts.welcome if not provider else people.Welcome()
        found = run_async(asked.metadata())
        secret = run_async(wire.oidc_secret(parts, provider))
    client = asked.client
    if as_json:
        json_line({"issuer": client.issuer, "client_id": client.client_id, "callback": client.callback,
                   "authorization_endpoint": found.authorization_endpoint, "secret": secret is not None,
                   "join_tenant": welcome.tenant, "domains": sorted(welcome.domains)})  # fmt: skip
        return
    say(f"{client.name} answers as {client.issuer}. People sign in at {found.authorization_endpoint}.")
    say(f"Register there: client {client.client_id}, redirect address {client.callback}.")
    say("There is a secret." if secret is not None else "There is no secret, so the client has to be a public one.")
    who = (
        f", and everybody with an address at {', '.join(sorted(welcome.domains))} joins {welcome.tenant}"
        if welcome.tenant
        else ""
    )
    say(f"People who are linked or invited may sign in{who}.")


@oidc.command("secret")
def set_oidc_secret(provider: ProviderKey = "", as_json: Json = False) -> None:
    """Store the client secret for the provider, encrypted. It comes from a prompt or standard input."""
    typed = typer.prompt("Client secret", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    secret = typed.strip()
    if not secret:
        raise BadInput("No secret was given.")
    with opened() as (parts, _):
        if provider:
            _provider(parts, provider)
        elif parts.settings.oidc_client_secret:
            raise BadInput("HEADWATER_OIDC_CLIENT_SECRET is set and overrides a stored secret. Unset it first.")
        parts.db.write_now(instance.store_oidc_secret, parts.seal(secret), parts.now(), provider)
    json_line({"kept": True}) if as_json else say("Stored.")


@oidc.command("forget")
def forget_oidc_secret(provider: ProviderKey = "", as_json: Json = False) -> None:
    """Delete the stored secret."""
    with opened() as (parts, _):
        forgotten = parts.db.write_now(instance.forget_oidc_secret, provider)
    json_line({"forgotten": forgotten}) if as_json else say("Deleted." if forgotten else "There was none.")


def _provider(parts: Parts, key: str) -> Provider:
    if key in parts.providers:
        return parts.providers[key]
    if key:
        raise BadInput(f"HEADWATER_OIDC_PROVIDERS has no provider {key[:50]!r}.")
    raise BadInput("There is no provider. Set HEADWATER_OIDC_ISSUER and HEADWATER_OIDC_CLIENT_ID.")


@app.command("tenants")
def list_tenants(as_json: Json = False) -> None:
    """List the tenants of this instance."""
    with opened() as (parts, _):
        found = parts.db.read_now(instance.tenants)
    if as_json:
        json_lines(TenantJson, found)
    else:
        rows = [
            (one.id, one.name, one.people, one.plan or "default", "runs the instance" if one.runs_instance else "")
            for one in found
        ]
        table("", ("id", "name", "people", "plan", ""), rows)


@app.command("tenant")
def add_tenant(
    name: Annotated[str, typer.Argument(help="Its name.")],
    owner: Annotated[str, typer.Option("--owner", help="E-mail address of its first owner.")],
    as_json: Json = False,
) -> None:
    """Add a tenant. Prints a link that signs its owner in, once."""
    with opened() as (parts, _):
        made = parts.db.write_now(instance.add_tenant, name, owner, home_now(parts), parts.now())
    if as_json:
        json_line({"tenant": shaped(TenantJson, made.tenant), "owner": shaped(PersonJson, made.owner),
                   "link": made.link})  # fmt: skip
    else:
        say(made.link)


@app.command("plan")
def give_plan(
    tenant: Annotated[str, typer.Argument(help="Name of the tenant; `headwater people tenants` lists them.")],
    plan: Annotated[str | None, typer.Argument(help="Name of the plan. Default: the first one.")] = None,
    as_json: Json = False,
) -> None:
    """Give a tenant one of HEADWATER_PLANS, which limit the requests of its people."""
    with opened() as (parts, _):
        found = parts.db.write_now(instance.give_plan, parts.db.read_now(instance.tenant_id, tenant), plan, parts.plans)
    json_line(shaped(TenantJson, found)) if as_json else say(f"{found.name}: {found.plan or 'the default plan'}.")


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
    days: Annotated[int | None, typer.Option(help="How many days it is valid. Default: until it is revoked.")] = None,
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
    token_id: Annotated[int, typer.Argument(help="Id of the token; `headwater tokens list` shows it.", min=1)],
    of: Of = None,
    tenant: TenantName = None,
    as_json: Json = False,
) -> None:
    """Revoke a token. A running Headwater refuses it within two seconds."""
    with _within(tenant) as (parts, reader):
        parts.db.write_now(account.revoke_token, _whose(parts, reader, of), token_id)
    json_line({"id": token_id, "revoked": True}) if as_json else say("Revoked.")
