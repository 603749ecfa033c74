"""Signing in and out, the page of one's account, and the page of the tenant's people."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from headwater import wire
from headwater.app import account, people
from headwater.app.account import Browser, SignedIn
from headwater.errors import BadInput, Forbidden, HeadwaterError
from headwater.http import auth
from headwater.http.auth import CurrentReader, caller_of, needs
from headwater.http.routes import Id
from headwater.http.state import WithParts
from headwater.web.view import go, show

router = APIRouter()
_WRONG = "This e-mail address and password do not belong together."


@router.get("/login")
async def login(
    request: Request,
    parts: WithParts,
    token: Annotated[str | None, Query(max_length=200)] = None,
    next: Annotated[str | None, Query()] = None,
) -> Response:
    if token is None:
        return await _login_page(request, parts, reason="none", next=next)
    session = await parts.db.write(account.sign_in, token, parts.now(), _browser(request, parts))
    if session is None:
        return await _login_page(request, parts, 401, reason="spent", next=next)
    return _signed_in(parts, session, next)


@router.post("/login")
async def sign_in(
    request: Request,
    parts: WithParts,
    email: Annotated[str, Form(max_length=300)] = "",
    password: Annotated[str, Form(max_length=2000)] = "",
    tenant: Annotated[str | None, Form(max_length=200)] = None,
    next: Annotated[str | None, Form()] = None,
) -> Response:
    """Signs in with e-mail and password. Guesses are limited by address and account."""
    auth.refuse_foreign(request)
    browser = _browser(request, parts)
    await auth.limit_guesses(parts, email, browser.address or "")
    signed = await account.sign_in_by_password(parts.db, email, password, parts.now(), browser, tenant=tenant or None)
    if isinstance(signed, SignedIn):
        await auth.forget_guesses(parts, email, browser.address or "")
        return _signed_in(parts, signed.session, next)
    given: dict[str, Any] = {"next": next, "email": email}
    if signed is None:
        return await _login_page(request, parts, 401, reason="none", wrong=_WRONG, **given)
    return await _login_page(request, parts, reason="none", choices=signed, **given)


async def _login_page(
    request: Request,
    parts: WithParts,
    status: int = 200,
    *,
    reason: str,
    next: str | None = None,
    wrong: str = "",
    email: str = "",
    choices: Any = (),
) -> Response:
    """The page asks for a password only where somebody has one: a person alone sees nothing of accounts."""
    has_passwords = await parts.db.read(account.has_passwords)
    return show(
        request, "login.html", status, reason=reason, next=next or "", wrong=wrong, email=email, choices=choices,
        has_passwords=has_passwords,
    )  # fmt: skip


@router.post("/logout")
async def logout(request: Request, parts: WithParts) -> Response:
    session = caller_of(request).session
    if session is not None:
        await parts.db.write(account.sign_out, session, parts.now())
    answer = go("/login")
    auth.end_session(answer, secure=is_https(parts.settings.public_url))
    return answer


@router.get("/invitation")
async def invitation_page(
    request: Request, parts: WithParts, token: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    found = await parts.db.read(people.invitation, token, parts.now())
    return show(request, "invitation.html", invitation=found, token=token, wrong="", name="")


@router.post("/invitation")
async def accept_invitation(
    request: Request,
    parts: WithParts,
    token: Annotated[str, Form(max_length=200)] = "",
    name: Annotated[str, Form(max_length=300)] = "",
    password: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    auth.refuse_foreign(request)
    browser = _browser(request, parts)
    await auth.limit_guesses(parts, "invitation", browser.address or "")
    try:
        signed = await people.accept(parts.db, token, name, password, parts.now(), browser)
    except BadInput as error:
        found = await parts.db.read(people.invitation, token, parts.now())
        return show(request, "invitation.html", 422, invitation=found, token=token, wrong=error.detail, name=name)
    return _signed_in(parts, signed.session, "/")


@router.get("/account", dependencies=[needs("account:read")])
async def account_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    return await _account_page(request, parts)


async def _account_page(
    request: Request, parts: WithParts, status: int = 200, *, made: Any = None, wrong: HeadwaterError | None = None,
    part: str = "", done: str = "",
) -> Response:  # fmt: skip
    caller = caller_of(request)
    now = parts.now()
    return show(
        request,
        "account.html",
        wrong.status if wrong else status,
        section="account",
        person=await parts.db.read(account.show, caller.reader),
        tokens=await parts.db.read(account.every_token, caller.reader, now),
        sessions=await parts.db.read(account.every_session, caller.reader, now),
        own_session=caller.session_id,
        scopes=account.described_scopes(caller.reader),
        zones=sorted(available_timezones()),
        themes=account.THEMES,
        made=made,
        wrong=wrong,
        part=part,
        done=done,
    )


@router.post("/account", dependencies=[needs("account:write")])
async def arrange(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    name: Annotated[str, Form()] = "",
    time_zone: Annotated[str, Form()] = "",
    theme: Annotated[str, Form()] = "",
) -> Response:
    try:
        await parts.db.write(account.arrange, reader, name=name, time_zone=time_zone, theme=theme)
    except BadInput as error:
        return await _account_page(request, parts, wrong=error, part="profile")
    return go("/account")


@router.post("/account/password", dependencies=[needs("account:write")])
async def change_password(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    current: Annotated[str, Form(max_length=2000)] = "",
    new: Annotated[str, Form(max_length=2000)] = "",
    email: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    caller = caller_of(request)
    try:
        if email:
            await parts.db.write(people.set_own_email, reader, email)
        await account.change_password(parts.db, reader, current, new, keep=caller.session_id)
    except (BadInput, Forbidden) as error:
        return await _account_page(request, parts, wrong=error, part="password")
    return await _account_page(request, parts, done="password")


@router.post("/account/tokens", dependencies=[needs("account:write")])
async def create_token(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    name: Annotated[str, Form()] = "",
    scopes: Annotated[list[str] | None, Form()] = None,
    days: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Answers with the page itself instead of a redirect: the secret is shown here and never again."""
    try:
        life = int(days) if days.strip().isdigit() else None
        made = await parts.db.write(account.create_token, reader, name, parts.now(), wanted=scopes, days=life)
    except (BadInput, Forbidden) as error:
        return await _account_page(request, parts, wrong=error, part="tokens")
    return await _account_page(request, parts, made=made)


@router.post("/account/tokens/{token_id}/revoke", dependencies=[needs("account:write")])
async def revoke_token(parts: WithParts, reader: CurrentReader, token_id: Id) -> Response:
    await parts.db.write(account.revoke_token, reader, token_id)
    return go("/account#tokens")


@router.post("/account/sessions/{session_id}/end", dependencies=[needs("account:write")])
async def end_session(parts: WithParts, reader: CurrentReader, session_id: Id) -> Response:
    await parts.db.write(account.end_session, reader, session_id)
    return go("/account#sessions")


@router.post("/account/sessions/end", dependencies=[needs("account:write")])
async def sign_out_everywhere(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    await parts.db.write(account.sign_out_everywhere, reader, but=caller_of(request).session_id)
    return go("/account#sessions")


@router.get("/people", dependencies=[needs("people:read")])
async def people_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    return await _people_page(request, parts)


async def _people_page(
    request: Request, parts: WithParts, *, made: Any = None, wrong: HeadwaterError | None = None, typed: str = ""
) -> Response:
    reader = caller_of(request).reader
    return show(
        request,
        "people.html",
        wrong.status if wrong else 200,
        section="account",
        everybody=await parts.db.read(people.everybody, reader),
        invitations=await parts.db.read(people.invitations, reader, parts.now()),
        roles=people.ROLES,
        myself=reader.user_id,
        made=made,
        wrong=wrong,
        typed=typed,
    )


@router.post("/people/invite", dependencies=[needs("people:write")])
async def invite(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    email: Annotated[str, Form(max_length=300)] = "",
    role: Annotated[str, Form(max_length=20)] = "member",
) -> Response:
    """Answers with the page itself instead of a redirect: the link is shown here and never again."""
    home = wire.home(parts.settings)
    try:
        made = await parts.db.write(people.invite, reader, email, role, home, parts.now())
    except HeadwaterError as error:
        return await _people_page(request, parts, wrong=error, typed=email)
    return await _people_page(request, parts, made=made)


@router.post("/people/invitations/{invitation_id}/withdraw", dependencies=[needs("people:write")])
async def withdraw(parts: WithParts, reader: CurrentReader, invitation_id: Id) -> Response:
    await parts.db.write(people.withdraw, reader, invitation_id)
    return go("/people")


@router.post("/people/{user_id}/role", dependencies=[needs("people:write")])
async def give_role(
    request: Request, parts: WithParts, reader: CurrentReader, user_id: Id, role: Annotated[str, Form(max_length=20)]
) -> Response:
    try:
        await parts.db.write(people.give_role, reader, user_id, role)
    except BadInput as error:
        return await _people_page(request, parts, wrong=error)
    return go("/people")


@router.post("/people/{user_id}/remove", dependencies=[needs("people:write")])
async def remove(request: Request, parts: WithParts, reader: CurrentReader, user_id: Id) -> Response:
    try:
        await parts.db.write(people.remove, reader, user_id)
    except BadInput as error:
        return await _people_page(request, parts, wrong=error)
    return go("/people")


def _signed_in(parts: WithParts, session: str, next: str | None) -> Response:
    answer = go(next)
    auth.start_session(answer, session, secure=is_https(parts.settings.public_url))
    return answer


def _browser(request: Request, parts: WithParts) -> Browser:
    return Browser(auth.address_of(request, parts), request.headers.get("user-agent"))


def is_https(public_url: str | None) -> bool:
    return bool(public_url and public_url.startswith("https:"))
