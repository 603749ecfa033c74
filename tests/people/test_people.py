"""Signing in with e-mail and password, invitations, roles, and the people of a tenant."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import argon2
import pytest

from api.running import Answer, Client, Running, running
from headwater.accounts import passwords
from headwater.app import account, people
from headwater.errors import BadInput
from headwater.store.people import accounts
from support.people import PASSWORD, a_person, browser_of, program_of

FORM = "application/x-www-form-urlencoded"


def sign_in(headwater: Running, email: str, password: str, **more: str) -> Answer:
    body = urlencode({"email": email, "password": password, **more}).encode()
    return headwater.stranger.post("/login", body, Content_Type=FORM, Accept="text/html")


def session_of(headwater: Running, answer: Answer) -> Client:
    assert answer.status == 303, answer.text
    return Client(headwater.port, {"Cookie": answer.cookies[0].partition(";")[0]})


def link_path(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def accept(headwater: Running, link: str, **given: str) -> Answer:
    body = urlencode({"token": link.partition("token=")[2], **given}).encode()
    return headwater.stranger.post("/invitation", body, Content_Type=FORM, Accept="text/html")


def test_somebody_is_invited_joins_and_signs_in(on_both: Running) -> None:
    # E10, E12
    source_id = on_both.source()
    made = on_both.program().post("/api/invitations", {"email": " Bob@Example.ORG ", "role": "viewer"})
    assert made.status == 201
    link = made.json()["link"]
    page = on_both.stranger.get(link_path(link), Accept="text/html")
    assert (page.status, "bob@example.org" in page.text) == (200, True)
    browser = session_of(on_both, accept(on_both, link, name="Bob", password=PASSWORD))
    me = browser.get("/api/account").json()
    assert (me["name"], me["email"], me["role"], me["tenant"]) == ("Bob", "bob@example.org", "viewer", "default")
    assert [one["id"] for one in browser.get("/api/sources").json()["items"]] == [source_id]
    again = session_of(on_both, sign_in(on_both, "BOB@example.org", PASSWORD))
    assert again.get("/").status == 200
    assert accept(on_both, link, name="Eve", password=PASSWORD).status == 404
    assert on_both.stranger.get(link_path(link), Accept="text/html").status == 404
    listed = on_both.program().get("/api/people").json()["items"]
    assert [(one["name"], one["role"]) for one in listed] == [("owner", "owner"), ("Bob", "viewer")]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "Bob", "password": "short"}, "10 to 1000"),
        ({"name": "", "password": PASSWORD}, "1 to 100"),
        ({"name": "owner", "password": PASSWORD}, "called owner"),
        ({"name": "Bob", "password": "x" * 1001}, "10 to 1000"),
    ],
)
def test_an_invitation_that_cannot_be_accepted_so_stays_valid(
    headwater: Running, given: dict[str, str], says: str
) -> None:
    link = headwater.program().post("/api/invitations", {"email": "bob@example.org"}).json()["link"]
    refused = accept(headwater, link, **given)
    assert (refused.status, refused.cookies, says in refused.text) == (422, [], True)
    assert accept(headwater, link, name="Bob", password=PASSWORD).status == 303


def test_an_invitation_is_withdrawn_or_replaced(on_both: Running) -> None:
    owner = on_both.program()
    first = owner.post("/api/invitations", {"email": "bob@example.org"}).json()
    second = owner.post("/api/invitations", {"email": "bob@example.org", "role": "operator"}).json()
    assert accept(on_both, first["link"], name="Bob", password=PASSWORD).status == 404
    [listed] = owner.get("/api/invitations").json()["items"]
    assert (listed["role"], listed["invited_by"]) == ("operator", "owner")
    assert owner("DELETE", f"/api/invitations/{listed['id']}").status == 204
    assert accept(on_both, second["link"], name="Bob", password=PASSWORD).status == 404
    assert owner("DELETE", f"/api/invitations/{listed['id']}").status == 404


def test_hidden_fields_give_nobody_more(on_both: Running) -> None:
    # H69
    owner = on_both.program()
    link = owner.post("/api/invitations", {"email": "bob@example.org", "role": "viewer", "tenant_id": 7}).json()["link"]
    more = {"role": "owner", "is_admin": "1", "tenant_id": "7", "email": "eve@example.org"}
    browser = session_of(on_both, accept(on_both, link, name="Bob", password=PASSWORD, **more))
    me = browser.get("/api/account").json()
    assert (me["role"], me["email"], me["tenant"]) == ("viewer", "bob@example.org", "default")
    bob = program_of(on_both, a_person(on_both, "carl", "viewer"))
    changed = bob.patch(
        "/api/account", {"name": "Carl", "role": "owner", "tenant": "x", "email": "x@example.org"}
    ).json()
    assert (changed["name"], changed["role"], changed["email"]) == ("Carl", "viewer", "carl@example.org")


def test_a_wrong_password_and_an_unknown_address_look_the_same(on_both: Running) -> None:
    a_person(on_both, "ann", password=PASSWORD)
    wrong, unknown = sign_in(on_both, "ann@example.org", PASSWORD + "!"), sign_in(on_both, "eve@example.org", PASSWORD)
    assert (wrong.status, unknown.status) == (401, 401)
    assert wrong.text.replace("ann@", "") == unknown.text.replace("eve@", "")
    assert wrong.cookies == unknown.cookies == []


def test_each_sign_in_costs_one_check_whether_somebody_is_known_or_not(
    on_both: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # H72
    a_person(on_both, "ann", password=PASSWORD)
    a_person(on_both, "bob")  # invited, and without a password yet
    computed: list[str] = []

    def counted(name: str) -> None:
        really = getattr(argon2.PasswordHasher, name)

        def count(self: argon2.PasswordHasher, *given: str) -> object:
            computed.append(name)
            return really(self, *given)

        monkeypatch.setattr(argon2.PasswordHasher, name, count)

    counted("verify")
    counted("hash")
    costs = []
    for email in ("ann@example.org", "bob@example.org", "eve@example.org", "no address"):
        passwords._nobodys.cache_clear()  # as after a start, when nobody has signed in yet
        assert sign_in(on_both, email, "wrong wrong wrong").status == 401
        costs.append(sorted(computed))
        computed.clear()
    assert costs == [["hash", "verify"]] * 4
    for email in ("ann@example.org", "eve@example.org"):
        sign_in(on_both, email, "wrong wrong wrong")
    assert computed == ["verify", "verify"]


def test_long_passwords_are_not_cut() -> None:
    # H72
    stored = passwords.hashed("p" * 72 + "a")
    assert stored.startswith("$argon2id$")
    assert passwords.fits(stored, "p" * 72 + "a")
    assert not passwords.fits(stored, "p" * 72 + "b")
    assert not passwords.fits(stored, "p" * 72)
    assert not passwords.fits(None, "p" * 72 + "a")
    with pytest.raises(BadInput):
        passwords.hashed("p" * 1001)


def test_guesses_are_throttled_by_account_and_address(store_url: str) -> None:
    # H72, H71
    with running(store_url, HEADWATER_TRUSTED_PROXIES="127.0.0.0/8") as headwater:
        a_person(headwater, "ann", password=PASSWORD)

        def guess(address: str, password: str, email: str = "ann@example.org") -> Answer:
            body = urlencode({"email": email, "password": password}).encode()
            return headwater.stranger.post("/login", body, Content_Type=FORM, X_Forwarded_For=address)

        statuses = [guess("192.0.2.1", "wrong").status for _ in range(13)]
        assert (statuses[:10], statuses[-1]) == ([401] * 10, 429)
        refused = guess("192.0.2.1", PASSWORD)
        assert (refused.status, refused.json()["code"]) == (429, "too_often")
        assert int(refused.headers["retry-after"]) > 0
        # Neither another spelling nor an invented address before the real one helps; the person elsewhere gets in.
        assert guess("192.0.2.1", PASSWORD, " ANN@example.org").status == 429
        assert guess("198.51.100.7, 192.0.2.1", PASSWORD).status == 429
        assert guess("192.0.2.2", PASSWORD).status == 303


def test_what_a_client_says_about_its_address_counts_only_from_a_trusted_proxy(on_both: Running) -> None:
    # H71
    a_person(on_both, "ann", password=PASSWORD)
    body = urlencode({"email": "ann@example.org", "password": PASSWORD}).encode()
    signed = on_both.stranger.post("/login", body, Content_Type=FORM, X_Forwarded_For="192.0.2.9")
    browser = Client(on_both.port, {"Cookie": signed.cookies[0].partition(";")[0]})
    assert browser.get("/api/account/sessions").json()["items"][0]["address"] == "127.0.0.1"


def test_signing_in_leads_to_a_page_of_this_server_alone(on_both: Running) -> None:
    # H70
    a_person(on_both, "ann", password=PASSWORD)
    for wanted, goes_to in (("/sources", "/sources"), ("//evil.example", "/"), ("/\\evil.example", "/"), ("x:y", "/")):
        assert sign_in(on_both, "ann@example.org", PASSWORD, next=wanted).headers["location"] == goes_to


def test_another_site_cannot_sign_somebody_in_or_accept_for_them(on_both: Running) -> None:
    # H73
    a_person(on_both, "ann", password=PASSWORD)
    body = urlencode({"email": "ann@example.org", "password": PASSWORD}).encode()
    for foreign in ({"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for path in ("/login", "/invitation"):
            assert on_both.stranger.post(path, body, Content_Type=FORM, **foreign).status == 403


def test_a_new_password_ends_the_other_sessions(on_both: Running) -> None:
    # H66
    ann = a_person(on_both, "ann", password=PASSWORD)
    here, there, program = browser_of(on_both, ann), browser_of(on_both, ann), program_of(on_both, ann)
    assert here("PUT", "/api/account/password", {"current": "wrong", "new": "another password"}).status == 403
    assert here("PUT", "/api/account/password", {"current": PASSWORD, "new": "short"}).status == 422
    assert there.get("/").status == 200
    assert here("PUT", "/api/account/password", {"current": PASSWORD, "new": "another password"}).status == 204
    assert (here.get("/").status, there.get("/").status, program.get("/api/stream").status) == (200, 401, 200)
    assert sign_in(on_both, "ann@example.org", PASSWORD).status == 401
    assert sign_in(on_both, "ann@example.org", "another password").status == 303


def test_one_address_in_two_tenants_is_two_people(on_both: Running) -> None:
    # H68
    a_person(on_both, "ann", password=PASSWORD)
    a_person(on_both, "ann", password=PASSWORD, tenant="elsewhere")
    asked = sign_in(on_both, "ann@example.org", PASSWORD)
    assert (asked.status, asked.cookies) == (200, [])
    assert "<option>elsewhere</option>" in asked.text
    browser = session_of(on_both, sign_in(on_both, "ann@example.org", PASSWORD, tenant="elsewhere"))
    assert browser.get("/api/account").json()["tenant"] == "elsewhere"


def test_only_owners_manage_people_and_only_those_of_their_tenant(on_both: Running) -> None:
    # H68
    a_person(on_both, "ann", "owner")
    bob, carl = a_person(on_both, "bob", "operator"), a_person(on_both, "carl", "owner", tenant="elsewhere")
    operator, stranger = program_of(on_both, bob), program_of(on_both, carl)
    for method, path, body in (
        ("POST", "/api/invitations", {"email": "x@example.org"}),
        ("PATCH", f"/api/people/{bob.user_id}", {"role": "owner"}),
        ("DELETE", f"/api/people/{bob.user_id}", None),
    ):
        assert operator(method, path, body).status == 403
    assert stranger("PATCH", f"/api/people/{bob.user_id}", {"role": "viewer"}).status == 404
    assert stranger("DELETE", f"/api/people/{bob.user_id}").status == 404
    assert [one["name"] for one in stranger.get("/api/people").json()["items"]] == ["carl"]
    assert stranger.get("/api/tenants").status == 403
    assert stranger.get("/metrics").status == 403


def test_a_tenant_keeps_an_owner(on_both: Running) -> None:
    owner = on_both.program()
    mine = f"/api/people/{on_both.owner.user_id}"
    for answer in (owner("DELETE", mine), owner("PATCH", mine, {"role": "member"})):
        assert (answer.status, "only owner" in answer.json()["detail"]) == (409, True)
    ann = a_person(on_both, "ann")
    assert owner("PATCH", f"/api/people/{ann.user_id}", {"role": "owner"}).json()["role"] == "owner"
    assert owner("PATCH", mine, {"role": "member"}).status == 200


def test_a_tenant_is_added_with_its_owner_who_signs_in_by_link(on_both: Running) -> None:
    made = on_both.program().post("/api/tenants", {"name": "Research", "owner_email": "carl@example.org"}).json()
    assert made["tenant"]["people"] == 1
    browser = session_of(on_both, on_both.stranger.get(link_path(made["link"])))
    me = browser.get("/api/account").json()
    assert (me["tenant"], me["role"], me["email"]) == ("Research", "owner", "carl@example.org")
    assert "admin" not in me["scopes"]
    again = on_both.program().post("/api/tenants", {"name": "Research", "owner_email": "carl@example.org"})
    assert again.status == 409
    assert len(on_both.program().get("/api/tenants").json()["items"]) == 2


@pytest.mark.parametrize(
    "email", ["", "ann", "ann@", "@example.org", "a b@example.org", "ann@example", "x" * 250 + "@e.org"]
)
def test_what_is_no_address_is_refused(headwater: Running, email: str) -> None:
    answer = headwater.program().post("/api/invitations", {"email": email})
    assert answer.status == 422


def test_a_person_alone_sees_no_form_for_passwords_until_there_is_one(headwater: Running) -> None:
    assert "password" not in headwater.stranger.get("/login", Accept="text/html").text
    a_person(headwater, "ann", password=PASSWORD)
    assert 'type="password"' in headwater.stranger.get("/login", Accept="text/html").text


def test_pages_follow_the_time_zone_and_colours_that_somebody_chose(on_both: Running) -> None:
    ann = a_person(on_both, "ann")
    browser = browser_of(on_both, ann)
    assert browser.patch("/api/account", {"time_zone": "Asia/Tokyo", "theme": "dark"}).status == 200
    page = browser.get("/account", Accept="text/html").text
    assert 'data-theme="dark"' in page
    assert re.search(r'title="[^"]*\bJST\b|title="[^"]*\+0900', page) or "Asia/Tokyo" in page
    assert browser.patch("/api/account", {"time_zone": "Moon/Base"}).status == 422
    assert browser.patch("/api/account", {"theme": ""}).json()["theme"] is None


def test_what_others_called_themselves_is_shown_as_text(headwater: Running) -> None:
    # H60
    a_person(headwater, "ann")
    program_of(headwater, a_person(headwater, "bob")).patch("/api/account", {"name": "<img src=x onerror=alert(1)>"})
    page = headwater.browser().get("/people", Accept="text/html").text
    assert "<img src=x" not in page


def test_people_and_tokens_of_the_store_end_with_their_tenant(on_both: Running) -> None:
    carl = a_person(on_both, "carl", tenant="elsewhere")
    program = program_of(on_both, carl)
    assert program.get("/api/stream").status == 200
    on_both.parts.db.write_now(accounts.remove, carl.tenant_id, carl.user_id)
    assert program.get("/api/stream").status == 401


async def test_a_password_that_changes_while_it_is_checked_opens_nothing(on_both: Running) -> None:
    ann = a_person(on_both, "ann", password=PASSWORD)
    [found] = on_both.parts.db.read_now(accounts.by_email, "ann@example.org")
    on_both.parts.db.write_now(people.set_password, found, "another password")
    started = on_both.parts.db.write_now(
        account._start_if_same_password, found, on_both.parts.now(), account.SessionBrowser()
    )
    assert started is None
    assert on_both.parts.db.read_now(account.every_session, ann, on_both.parts.now()) == []
