"""`/api/account`, `/api/people`, `/api/audit` and `/api/tenants`: your account, the people of your tenant and what they
did, and the tenants."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import available_timezones

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, Strict
from starlette.responses import StreamingResponse

from headwater import wire
from headwater.app import account, instance, people
from headwater.app.account import (
    AccountJson,
    EndedJson,
    NewTokenJson,
    SessionJson,
    SessionsJson,
    TokenJson,
    TokensJson,
)
from headwater.app.instance import NewTenantJson, TenantJson, TenantsJson
from headwater.app.people import (
    AuditJson,
    IdentitiesJson,
    IdentityJson,
    InvitationJson,
    InvitationsJson,
    NewInvitationJson,
    PeopleJson,
    PersonJson,
)
from headwater.app.shapes import PageJson, shaped
from headwater.http import routes
from headwater.http.auth import CurrentReader, caller_of, needs
from headwater.http.routes import WHOLE, Email, GivenName, Id, WantedPage, api_router, one_of, route
from headwater.http.state import WithParts

account_router = api_router("account", prefix="/api/account")
router = api_router("people")
_CSV = "id,at,user_id,user_name,action,resource,resource_id,detail,address,agent,request_id\r\n"
IdentityId = Annotated[str, Path(max_length=100, description="its id, as the list has it")]
Role = Literal["owner", "operator", "member", "viewer"]
TimeZone = Annotated[str, one_of("", *sorted(available_timezones()))]
Scope = Annotated[str, one_of(*account.all_scopes())]
Audited = Annotated[str, one_of(*people.AUDITED)]


class AccountChange(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"time_zone": "Europe/Paris"}})

    name: GivenName | None = Field(default=None, max_length=100, description="how others see you; null: as it is")
    time_zone: TimeZone | None = Field(
        default=None, max_length=100, description="such as Europe/Paris; empty: that of the browser; null: as it is"
    )
    theme: Literal["light", "dark", ""] | None = Field(
        default=None, description="empty: that of the system; null: as it is"
    )
    language: Literal["en", "de", "zh", ""] | None = Field(
        default=None, description="of the pages; empty: that of the browser; null: as it is"
    )


class WantedToken(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "dashboard", "scopes": ["posts:read"], "days": 90}}
    )

    name: GivenName = Field(max_length=100, description="what it is for")
    scopes: list[Scope] | None = Field(
        default=None, max_length=50, description="what it may do; null: everything that you may do"
    )
    days: Annotated[int, Strict(), Field(ge=1, le=3650), WHOLE] | None = Field(
        default=None, description="for how long it is valid; null: until it is revoked"
    )


class NewPassword(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"current": "the old password", "new": "a longer password"}}
    )

    current: str | None = Field(default=None, max_length=1000, description="the present one, if you have one")
    new: str = Field(min_length=10, max_length=1000, description="at least 10 characters")


class WantedInvitation(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"email": "bob@example.org", "role": "viewer"}})

    email: Email = Field(max_length=254, description="the address with which they will sign in")
    role: Role = Field(default="member", description="what they may do")


class NewRole(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"role": "operator"}})

    role: Role = Field(description="what they may do from now on")


class WantedTenant(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "Example Research", "owner_email": "ann@example.org"}}
    )

    name: GivenName = Field(max_length=100, description="its name, which no other tenant has")
    owner_email: Email = Field(max_length=254, description="the address of its first owner")


class NewPlan(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"plan": "team"}})

    plan: str | None = Field(max_length=100, description="one of HEADWATER_PLANS; null: the default one")


@account_router.get("", **route("Show your account", "account:read"))
async def show_account(parts: WithParts, reader: CurrentReader) -> AccountJson:
    """With your role and the scopes of this token or session."""
    return shaped(AccountJson, await parts.db.read(account.show, reader), scopes=account.scopes_of(reader))


@account_router.patch("", **route("Change your account", "account:write", 409))
async def change_account(parts: WithParts, reader: CurrentReader, wanted: AccountChange) -> AccountJson:
    """Only the given fields change."""
    changed = await parts.db.write(account.arrange, reader, **wanted.model_dump())
    return shaped(AccountJson, changed, scopes=account.scopes_of(reader))


@account_router.put("/password", status_code=204, **route("Set your password", "account:write", 409))
async def change_password(parts: WithParts, request: Request, reader: CurrentReader, wanted: NewPassword) -> None:
    """All your sessions end, except this one. Tokens stay valid; revoke those you do not trust."""
    keep = caller_of(request).session_id
    await account.change_password(parts.db, reader, wanted.current, wanted.new, keep=keep)


@account_router.get("/tokens", **route("List your API tokens", "account:read"))
async def list_tokens(parts: WithParts, reader: CurrentReader) -> TokensJson:
    """Newest first, without their secrets."""
    return {"items": [shaped(TokenJson, one) for one in await parts.db.read(account.every_token, reader, parts.now())]}


@account_router.post("/tokens", status_code=201, **route("Make an API token", "account:write", 409))
async def create_token(parts: WithParts, reader: CurrentReader, wanted: WantedToken) -> NewTokenJson:
    """The secret is shown once; only its hash is stored. A token can have at most the scopes of its owner."""
    made = await parts.db.write(
        account.create_token, reader, wanted.name, parts.now(), wanted=wanted.scopes, days=wanted.days
    )
    return {"token": shaped(TokenJson, made.token), "secret": made.secret}


@account_router.delete("/tokens/{token_id}", status_code=204, **route("Revoke an API token", "account:write"))
async def revoke_token(parts: WithParts, reader: CurrentReader, token_id: Id) -> None:
    """It is refused from the next request, and by other processes of this instance within two seconds."""
    await parts.db.write(account.revoke_token, reader, token_id)


@account_router.get("/sessions", **route("List your sessions", "account:read"))
async def list_sessions(parts: WithParts, request: Request, reader: CurrentReader) -> SessionsJson:
    """Newest first."""
    own = caller_of(request).session_id
    found = await parts.db.read(account.every_session, reader, parts.now())
    return {"items": [shaped(SessionJson, one, current=one.id == own) for one in found]}


@account_router.delete("/sessions", **route("Sign out everywhere", "account:write"))
async def end_sessions(parts: WithParts, request: Request, reader: CurrentReader) -> EndedJson:
    """Ends all your sessions and login links, except this session."""
    own = caller_of(request).session_id
    return {"ended": await parts.db.write(account.sign_out_everywhere, reader, but=own)}


@account_router.delete("/sessions/{session_id}", status_code=204, **route("End a session", "account:write"))
async def end_session(parts: WithParts, reader: CurrentReader, session_id: Id) -> None:
    """That browser is signed out."""
    await parts.db.write(account.end_session, reader, session_id)


@account_router.get("/identities", **route("List your accounts at providers", "account:read"))
async def list_identities(parts: WithParts, reader: CurrentReader) -> IdentitiesJson:
    """Accounts at providers that you can sign in with, or whose access tokens are accepted as yours. To link one, use
    the page of your account in a browser."""
    return {"items": [shaped(IdentityJson, one) for one in await parts.db.read(people.identities, reader)]}


@account_router.delete("/identities/{identity_id}", status_code=204, **route("Unlink an account", "account:write", 409))
async def unlink_identity(parts: WithParts, reader: CurrentReader, identity_id: IdentityId) -> None:
    """You can no longer sign in with it. Refused if it is your only way to sign in."""
    await parts.db.write(people.unlink, reader, identity_id, providers=parts.issuers)


@router.get("/people", **route("List the people of your tenant", "people:read"))
async def list_people(parts: WithParts, reader: CurrentReader) -> PeopleJson:
    """In the order they joined."""
    return {"items": [shaped(PersonJson, one) for one in await parts.db.read(people.everybody, reader)]}


@router.patch("/people/{user_id}", **route("Give somebody another role", "people:write", 409))
async def give_role(parts: WithParts, reader: CurrentReader, user_id: Id, wanted: NewRole) -> PersonJson:
    """It applies from their next request. A tenant keeps at least one owner."""
    return shaped(PersonJson, await parts.db.write(people.give_role, reader, user_id, wanted.role))


@router.delete("/people/{user_id}", status_code=204, **route("Remove somebody", "people:write", 409))
async def remove_person(parts: WithParts, reader: CurrentReader, user_id: Id) -> None:
    """Removes everything of theirs too: subscriptions, marks, webhooks, tokens and sessions. This cannot be undone."""
    await parts.db.write(people.remove, reader, user_id)


@router.get("/invitations", **route("List who is invited", "people:read"))
async def list_invitations(parts: WithParts, reader: CurrentReader) -> InvitationsJson:
    """People who have not joined yet and still can."""
    found = await parts.db.read(people.invitations, reader, parts.now())
    return {"items": [shaped(InvitationJson, one) for one in found]}


@router.post("/invitations", status_code=201, **route("Invite somebody", "people:write", 409))
async def invite(parts: WithParts, reader: CurrentReader, wanted: WantedInvitation) -> NewInvitationJson:
    """Answers with a link that you send to them. It works once, for 7 days. They start with the sources you follow."""
    made = await parts.db.write(
        people.invite, reader, wanted.email, wanted.role, wire.home(parts.settings), parts.now()
    )
    return {"invitation": shaped(InvitationJson, made.invitation), "link": made.link}


@router.delete("/invitations/{invitation_id}", status_code=204, **route("Withdraw an invitation", "people:write"))
async def withdraw_invitation(parts: WithParts, reader: CurrentReader, invitation_id: Id) -> None:
    """Its link stops working."""
    await parts.db.write(people.withdraw, reader, invitation_id)


@router.get("/audit", **route("See who changed what", "audit:read"))
async def list_audit(
    parts: WithParts,
    reader: CurrentReader,
    page: WantedPage,
    user_id: Annotated[int | None, Query(ge=1, le=routes.MAX_ID, description="only what this person did")] = None,
    resource: Annotated[
        Audited | None, Query(description="only what was done with these, such as `person` or `token`")
    ] = None,
) -> PageJson[AuditJson]:
    """Every change in your tenant, through pages, API, command line and access tokens, newest first. Signing in
    with a wrong password is there as well."""
    found = await parts.db.read(
        people.audit_page, reader, before=page.last_id, limit=page.limit, user_id=user_id, resource=resource
    )
    return page.of(AuditJson, found)


@router.get(
    "/audit/export",
    summary="Export who changed what",
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}, "example": _CSV},
                "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"id": 4711}\n'},
            }
        }
    },
    dependencies=[needs("audit:read")],
)
async def export_audit(
    parts: WithParts,
    reader: CurrentReader,
    format: Annotated[Literal["csv", "jsonl"], Query(description="CSV, or JSON lines")] = "csv",
) -> Response:
    """Everything, newest first. In CSV, text that a spreadsheet would take for a formula begins with an apostrophe."""
    name = {"Content-Disposition": f'attachment; filename="headwater-audit.{format}"'}
    kind = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
    return StreamingResponse(people.export_audit(parts.db, reader, format), headers=name, media_type=kind)


@router.get("/tenants", **route("List the tenants of the instance", "admin"))
async def list_tenants(parts: WithParts) -> TenantsJson:
    """With the number of people in each."""
    return {"items": [shaped(TenantJson, one) for one in await parts.db.read(instance.tenants)]}


@router.post("/tenants", status_code=201, **route("Add a tenant", "admin", 409))
async def add_tenant(parts: WithParts, wanted: WantedTenant) -> NewTenantJson:
    """With its owner, who signs in with the link and then sets a password."""
    home = wire.home(parts.settings)
    made = await parts.db.write(instance.add_tenant, wanted.name, wanted.owner_email, home, parts.now())
    return {"tenant": shaped(TenantJson, made.tenant), "owner": shaped(PersonJson, made.owner), "link": made.link}


@router.patch("/tenants/{tenant_id}", **route("Give a tenant a plan", "admin"))
async def give_plan(parts: WithParts, tenant_id: Id, wanted: NewPlan) -> TenantJson:
    """The plan limits the requests of each person. It applies from the next request, and in other processes of this
    instance within two seconds."""
    return shaped(TenantJson, await parts.db.write(instance.give_plan, tenant_id, wanted.plan, list(parts.plans)))
