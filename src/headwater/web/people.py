"""Signing in and out, the page of one's account, the page of the tenant's people, and that of what they did."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import Form, Path, Query, Request
from msgspec import structs
from starlette.responses import Response

from headwater import wire
from headwater.accounts.openid import Identity, Pending, Provider
from headwater.app import account, people
from headwater.app.account import SessionBrowser, SignedIn
from headwater.coordination.rate_limits import Limit
from headwater.errors import (
    AlreadyThere,
    BadInput,
    Forbidden,
    HeadwaterError,
    NotFound,
    NotPossibleNow,
    SignInRefused,
    SourceFailure,
)
from headwater.http import auth, routes
from headwater.http.auth import CurrentReader, caller_of, needs
from headwater.http.routes import Id, Line, Long, Text, Texts, Word
from headwater.http.state import WithParts
from headwater.store.people.accounts import Invitation
from headwater.web.language import NAMES, noted
from headwater.web.view import go, page_router, show
from headwater.wire import Parts

router = page_router()
AUDIT_PAGE = 100
ProviderKey = Annotated[str, Path(max_length=30)]
_PENDING = "headwater_sign_in"
_ONCE = Limit("returns", 1, int(people.SIGN_IN_LIFE.total_seconds()))
_NOT_BEGUN = noted(
    "This sign-in was not started in this browser, took longer than 10 minutes, or is finished. Begin again."
)
_WRONG = noted("The e-mail address or the password is wrong.")


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
    email: Line = "",
    password: Long = "",
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
    is_known: bool = False,
) -> Response:
    """The page asks for a password only where somebody has one: a person alone sees nothing of accounts.

    `is_known`: they have come from the provider, and only have to choose a tenant.
    """
    has_passwords = await parts.db.read(account.has_passwords)
    return show(
        request, "login.html", status, reason=reason, next=next or "", wrong=wrong, email=email, choices=choices,
        has_passwords=has_passwords, providers=parts.providers.values(), is_known=is_known,
    )  # fmt: skip


@router.post("/login/provider")
async def to_provider(
    request: Request, parts: WithParts, next: Long = "", invitation: Line = "", provider: Word = ""
) -> Response:
    auth.refuse_foreign(request)
    try:
        return await _leave(request, parts, provider, next=auth.local_path(next), invitation=invitation)
    except SignInRefused as error:
        return await _login_page(request, parts, error.status, reason="none", next=next, wrong=error.detail)


async def _leave(request: Request, parts: Parts, key: str, **given: Any) -> Response:
    """Sends the browser to a provider. By a page: browsers do not let a form of ours end elsewhere."""
    provider = _provider(parts, key)
    await auth.limit_attempts(parts, auth.address_of(request, parts))
    address, pending = await provider.begin(**given)
    answer = show(request, "leaving.html", provider=provider.name, address=address)
    answer.headers["Refresh"] = f"0; url={address}"
    _remember(parts, answer, pending)
    return answer


@router.get("/login/provider")
async def from_main_provider(request: Request, parts: WithParts) -> Response:
    return await _come_back(request, parts, "")


@router.get("/login/provider/{key}")
async def from_provider(request: Request, parts: WithParts, key: ProviderKey) -> Response:
    return await _come_back(request, parts, key)


async def _come_back(request: Request, parts: Parts, key: str) -> Response:
    """Takes whoever comes back from a provider. It is for the browser that was sent there, and once."""
    await auth.limit_attempts(parts, auth.address_of(request, parts))
    pending, identity = None, None
    try:
        pending = _remembered(request, parts)
        if not (await parts.rate_limits.take(_ONCE, pending.state)).is_allowed:
            raise SignInRefused(_NOT_BEGUN)
        provider = parts.providers.get(key)
        if provider is None or provider.client.issuer != pending.issuer:  # sent there by another provider
            raise SignInRefused(_NOT_BEGUN)
        identity = await provider.finish(pending, _brought(request))
        if pending.user is not None:
            return await _link(request, parts, pending.user, identity)
        signed = await parts.db.write(
            people.sign_in_as, identity, parts.now(), _browser(request, parts),
            welcome=parts.welcome if not key else people.Welcome(), invitation=pending.invitation,
        )  # fmt: skip
    except (SignInRefused, NotFound, AlreadyThere) as error:
        if pending is not None:  # whoever has begun nothing here was not at the provider either
            await parts.db.write(people.note_failed_sign_in, pending, identity, error.detail)
        if pending is not None and pending.user is not None:
            return await _link_refused(request, parts, error)
        return _forget(parts, await _login_page(request, parts, error.status, reason="none", wrong=error.detail))
    if isinstance(signed, SignedIn):
        return _forget(parts, _signed_in(parts, signed.session, pending.next))
    answer = await _login_page(request, parts, reason="none", choices=signed, is_known=True)
    _remember(parts, answer, structs.replace(pending, subject=identity.subject, begun_at=parts.now()))
    return answer


@router.post("/login/tenant")
async def choose_tenant(request: Request, parts: WithParts, tenant: Line = "") -> Response:
    """Signs in whoever came from the provider and is known in several tenants."""
    auth.refuse_foreign(request)
    try:
        pending = _remembered(request, parts)
        if not pending.subject or parts.now() - pending.begun_at > people.SIGN_IN_LIFE:
            raise SignInRefused(_NOT_BEGUN)
    except SignInRefused as error:
        return _forget(parts, await _login_page(request, parts, error.status, reason="none", wrong=error.detail))
    identity = Identity(pending.issuer, pending.subject, None, "")
    signed = await parts.db.write(
        people.sign_in_as, identity, parts.now(), _browser(request, parts), tenant=tenant or None
    )
    if isinstance(signed, SignedIn):
        return _forget(parts, _signed_in(parts, signed.session, pending.next))
    return await _login_page(request, parts, reason="none", choices=signed, is_known=True)


async def _link(request: Request, parts: Parts, user: tuple[int, int], identity: Identity) -> Response:
    caller = request.state.caller = await auth.find_caller(request, parts)
    if (caller.reader.tenant_id, caller.reader.user_id) != user:
        raise SignInRefused("You have signed in as somebody else in the meantime. Link the account again.")
    await parts.db.write(people.link_identity, caller.reader, identity.issuer, identity.subject, parts.now())
    return _forget(parts, go("/account#provider"))


async def _link_refused(request: Request, parts: Parts, error: HeadwaterError) -> Response:
    request.state.caller = await auth.find_caller(request, parts)
    return _forget(parts, await _account_page(request, parts, wrong=error, part="provider"))


def _provider(parts: Parts, key: str) -> Provider:
    try:
        return parts.providers[key]
    except KeyError:
        raise NotFound("There is no such provider to sign in at. HEADWATER_OIDC_ISSUER names one.") from None


def _brought(request: Request) -> dict[str, str]:
    found = dict(request.query_params)
    if len(found) != len(request.query_params.multi_items()):
        raise SignInRefused(_NOT_BEGUN)
    return found


def _remember(parts: Parts, answer: Response, pending: Pending) -> None:
    answer.set_cookie(
        _PENDING,
        parts.seal(people.pack_sign_in(pending)).decode(),
        max_age=int(people.SIGN_IN_LIFE.total_seconds()),
        path="/login",
        httponly=True,
        samesite="lax",
        secure=wire.is_https(parts.settings),
    )


def _remembered(request: Request, parts: Parts) -> Pending:
    """Returns the sign-in that this browser has begun. Raises SignInRefused if there is none."""
    sealed = request.cookies.get(_PENDING)
    if not sealed:
        raise SignInRefused(_NOT_BEGUN)
    try:
        return people.unpack_sign_in(parts.unseal(sealed.encode()))
    except SourceFailure as error:
        raise SignInRefused(_NOT_BEGUN) from error


def _forget(parts: Parts, answer: Response) -> Response:
    secure = wire.is_https(parts.settings)
    answer.delete_cookie(_PENDING, path="/login", httponly=True, samesite="lax", secure=secure)
    return answer


@router.post("/logout")
async def logout(request: Request, parts: WithParts) -> Response:
    session = caller_of(request).session
    if session is not None:
        await parts.db.write(account.sign_out, session, parts.now())
    answer = go("/login")
    auth.end_session(answer, secure=wire.is_https(parts.settings))
    return answer


@router.get("/invitation")
async def invitation_page(
    request: Request, parts: WithParts, token: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    found = await parts.db.read(people.invitation, token, parts.now())
    return _invitation_page(request, parts, found, token)


def _invitation_page(
    request: Request, parts: Parts, found: Invitation, token: str, status: int = 200, *, wrong: str = "", name: str = ""
) -> Response:
    return show(
        request, "invitation.html", status, invitation=found, token=token, wrong=wrong, name=name,
        providers=parts.providers.values(),
    )  # fmt: skip


@router.post("/invitation")
async def accept_invitation(
    request: Request, parts: WithParts, token: Line = "", name: Line = "", password: Long = ""
) -> Response:
    auth.refuse_foreign(request)
    browser = _browser(request, parts)
    await auth.limit_attempts(parts, browser.address or "")
    try:
        signed = await people.accept(parts.db, token, name, password, parts.now(), browser)
    except (BadInput, NotPossibleNow) as error:
        found = await parts.db.read(people.invitation, token, parts.now())
        return _invitation_page(request, parts, found, token, 422, wrong=error.detail, name=name)
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
        providers=parts.providers.values(),
        identities=await parts.db.read(people.identities, caller.reader),
        scopes=account.described_scopes(caller.reader),
        zones=sorted(available_timezones()),
        themes=account.THEMES,
        languages=NAMES,
        made=made,
        wrong=wrong,
        part=part,
        done=done,
    )


@router.post("/account", dependencies=[needs("account:write")])
async def arrange(
    request: Request, parts: WithParts, reader: CurrentReader, name: Text = "", time_zone: Text = "", theme: Text = "",
    language: Text = "",
) -> Response:  # fmt: skip
    try:
        await parts.db.write(account.arrange, reader, name=name, time_zone=time_zone, theme=theme, language=language)
    except (BadInput, NotPossibleNow) as error:
        return await _account_page(request, parts, wrong=error, part="profile")
    return go("/account")


@router.post("/account/password", dependencies=[needs("account:write")])
async def change_password(
    request: Request, parts: WithParts, reader: CurrentReader, current: Long = "", new: Long = "", email: Line = ""
) -> Response:
    caller = caller_of(request)
    try:
        if email:
            await parts.db.write(people.set_own_email, reader, email)
        await account.change_password(parts.db, reader, current, new, keep=caller.session_id)
    except (BadInput, Forbidden, NotPossibleNow) as error:
        return await _account_page(request, parts, wrong=error, part="password")
    return await _account_page(request, parts, done="password")


@router.post("/account/identities", dependencies=[needs("account:write")])
async def link_identity(request: Request, parts: WithParts, reader: CurrentReader, provider: Word = "") -> Response:
    """Sends the browser to a provider, to say who one is there."""
    try:
        return await _leave(request, parts, provider, user=(reader.tenant_id, reader.user_id))
    except SignInRefused as error:
        return await _account_page(request, parts, wrong=error, part="provider")


@router.post("/account/identities/unlink", dependencies=[needs("account:write")])
async def unlink_identity(
    request: Request, parts: WithParts, reader: CurrentReader, issuer: Long, subject: Line
) -> Response:
    try:
        await parts.db.write(people.unlink_identity, reader, issuer, subject, providers=parts.issuers)
    except (BadInput, NotPossibleNow) as error:
        return await _account_page(request, parts, wrong=error, part="provider")
    return go("/account#provider")


@router.post("/account/tokens", dependencies=[needs("account:write")])
async def create_token(
    request: Request, parts: WithParts, reader: CurrentReader, name: Text = "", scopes: Texts = None, days: Word = ""
) -> Response:
    """Answers with the page itself instead of a redirect: the secret is shown here and never again."""
    try:
        life = int(days) if days.strip().isdigit() else None
        made = await parts.db.write(account.create_token, reader, name, parts.now(), wanted=scopes, days=life)
    except (BadInput, Forbidden, NotPossibleNow) as error:
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


@router.get("/audit", dependencies=[needs("audit:read")])
async def audit_page(request: Request, parts: WithParts, reader: CurrentReader, cursor: str | None = None) -> Response:
    found = await parts.db.read(people.audit_page, reader, before=routes.id_in(cursor), limit=AUDIT_PAGE + 1)
    rows, older = routes.cut_page(found, AUDIT_PAGE, routes.cursor_of_row)
    return show(
        request,
        "audit.html",
        section="account",
        rows=rows,
        older=older and f"/audit?cursor={older}",
        actions=people.ACTIONS,
    )


@router.post("/people/invite", dependencies=[needs("people:write")])
async def invite(
    request: Request, parts: WithParts, reader: CurrentReader, email: Line = "", role: Word = "member"
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
async def give_role(request: Request, parts: WithParts, reader: CurrentReader, user_id: Id, role: Word) -> Response:
    try:
        await parts.db.write(people.give_role, reader, user_id, role)
    except (BadInput, NotPossibleNow) as error:
        return await _people_page(request, parts, wrong=error)
    return go("/people")


@router.post("/people/{user_id}/remove", dependencies=[needs("people:write")])
async def remove(request: Request, parts: WithParts, reader: CurrentReader, user_id: Id) -> Response:
    try:
        await parts.db.write(people.remove, reader, user_id)
    except (BadInput, NotPossibleNow) as error:
        return await _people_page(request, parts, wrong=error)
    return go("/people")


def _signed_in(parts: WithParts, session: str, next: str | None) -> Response:
    answer = go(next)
    auth.start_session(answer, session, secure=wire.is_https(parts.settings))
    return answer


def _browser(request: Request, parts: WithParts) -> SessionBrowser:
    return SessionBrowser(auth.address_of(request, parts), request.headers.get("user-agent"))
