"""A provider, or somebody between it and the browser, that lies. Nobody gets in by it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWS

from api.running import Running, running
from headwater.accounts import jwt
from headwater.app import people
from headwater.model import Reader
from headwater.settings import BadSetting, load
from headwater.store.people import accounts
from headwater.wire import open_parts
from people.issuer import FORM, KEY, OTHER_KEY, Issuer, issuer, left, sent_to_provider, signed
from people.test_jwt import encoded
from support.people import PASSWORD, a_person, browser_of, program_of
from support.ports import free_port


@pytest.fixture(scope="module")
def at() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


@pytest.fixture(scope="module")
def headwater(at: Issuer, shared_store_url: str) -> Iterator[Running]:
    """A Headwater where Ann is known at the provider, on each database."""
    port = free_port()
    with running(shared_store_url, port=port, **at.settings(f"http://127.0.0.1:{port}")) as found:
        ann = a_person(found, "ann")
        found.parts.db.write_now(accounts.link_identity, ann, at.address, "ann-1", found.parts.now())
        yield found


@pytest.fixture(autouse=True)
def honest_again(at: Issuer, headwater: Running) -> Iterator[None]:
    headwater.parts.rate_limits.__init__()  # type: ignore[misc]
    yield
    fresh = Issuer(at.address)
    at.token, at.metadata, at.userinfo, at.keys = fresh.token, fresh.metadata, fresh.userinfo, fresh.keys
    headwater.parts.providers[""]._loaded_at.update(metadata=float("-inf"), keys=float("-inf"))


def test_who_is_known_at_the_provider_comes_in(headwater: Running, at: Issuer) -> None:
    """So that those below are refused for what is wrong with them."""
    # E10
    coming = sent_to_provider(headwater, at)
    assert coming.query["code_challenge_method"] == "S256"
    answer = coming.back()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert any(one.startswith("headwater_session=") for one in answer.cookies)
    path, headers, form = at.asked[-2]  # the last one is for its keys
    assert (path, form["redirect_uri"]) == ("/token", f"{headwater.url}/login/provider")
    assert headers["authorization"].startswith("Basic ")
    challenge = encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
    assert challenge == coming.query["code_challenge"]


def hs256(claims: dict[str, Any]) -> str:
    """Signed with the public key as if it were a secret."""
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    start = f"{encoded({'alg': 'HS256', 'kid': 'one', 'typ': 'JWT'})}.{encoded(claims)}"
    return f"{start}.{encoded(hmac.digest(public, start.encode(), hashlib.sha256))}"


def changed(**claims: Any) -> Any:
    return lambda c: signed({name: value for name, value in {**c, **claims}.items() if value is not None})


LIES: dict[str, Any] = {
    "another nonce": changed(nonce="another"),
    "no nonce": changed(nonce=None),
    "for another client": changed(aud="somebody-else"),
    "for us and another, which asked for it": changed(aud=["headwater", "other"], azp="other"),
    "for us and another": changed(aud=["headwater", "other"]),
    "for nobody": changed(aud=None),
    "another issuer": changed(iss="https://evil.example"),
    "no issuer": changed(iss=None),
    "expired": changed(exp=1_700_000_000),
    "no end": changed(exp=None),
    "an end that is text": changed(exp="4000000000"),
    "valid for years": changed(exp=4_000_000_000),
    "made in the future": changed(iat=4_000_000_000),
    "nobody": changed(sub=None),
    "an empty person": changed(sub=" "),
    "a number as person": changed(sub=1),
    "another access token": changed(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "no algorithm": lambda c: f"{encoded({'alg': 'none', 'kid': 'one'})}.{encoded(c)}.",
    "an unsigned one": lambda c: signed(c).rpartition(".")[0] + ".",
    "the public key as a secret": hs256,
    "another key under the same id": lambda c: signed(c, OTHER_KEY),
    "a key that nobody published": lambda c: signed(c, OTHER_KEY, kid="two"),
    "a key in the header": lambda c: signed(c, OTHER_KEY, jwk=dict(jwt.public_key("one", OTHER_KEY).jwk)),
    "an address of keys": lambda c: signed(c, jku="https://evil.example/jwks"),
    "another algorithm for the same key": lambda c: signed(c, algorithm="PS256"),
    "an access token": lambda c: signed(c, typ="at+jwt"),
    "a claim twice": lambda c: PyJWS().encode(
        json.dumps(c)[:-1].encode() + b',"sub":"x"}', KEY, "RS256", {"kid": "one"}
    ),
    "no JSON": lambda c: f"{encoded({'alg': 'RS256', 'kid': 'one'})}.{encoded(b'no')}.AAAA",
    "nothing": lambda c: "",
    "huge": changed(more="x" * 100_000),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_an_id_token_with_a_lie_in_it_lets_nobody_in(headwater: Running, at: Issuer, lie: str) -> None:
    # E10, H64, H65
    at.token = LIES[lie]
    answer = sent_to_provider(headwater, at).back()
    assert (answer.status, "cannot be trusted" in answer.text) == (401, True), lie
    assert not any(one.startswith("headwater_session=") for one in answer.cookies)


@pytest.mark.parametrize(
    ("brought", "says"),
    [
        ({"state": "another"}, "not the sign-in"),
        ({"state": None}, "not the sign-in"),
        ({"cookie": ""}, "not started in this browser"),
        ({"cookie": "headwater_sign_in=gAAAAABforged"}, "not started in this browser"),
        ({"iss": "https://evil.example"}, "Another provider"),
        ({"code": None}, "sent no code"),
        ({"code": None, "error": "access_denied", "error_description": "<b>no</b>"}, "&lt;b&gt;no&lt;/b&gt;"),
        ({"code": "c&code=d"}, "not started in this browser"),
    ],
)
def test_coming_back_with_something_else_lets_nobody_in(
    headwater: Running, at: Issuer, brought: dict[str, str | None], says: str
) -> None:
    # E10
    answer = sent_to_provider(headwater, at).back(**brought)
    assert (answer.status, says in answer.text) == (401, True), answer.text
    assert not any(one.startswith("headwater_session=") for one in answer.cookies)
    assert "Begin again" in answer.text


def test_the_sign_in_of_one_browser_cannot_be_finished_in_another_or_twice(headwater: Running, at: Issuer) -> None:
    mine, theirs = sent_to_provider(headwater, at), sent_to_provider(headwater, at)
    assert mine.back(cookie=theirs.cookie).status == 401
    assert theirs.back(cookie=mine.cookie).status == 401
    at.claims = at.honest((third := sent_to_provider(headwater, at)).query["nonce"])
    assert third.back().status == 303
    again = third.back()
    assert (again.status, "is finished" in again.text) == (401, True)


def test_a_provider_that_names_itself_has_to_do_so_each_time(headwater: Running, at: Issuer) -> None:
    """RFC 9207: without the name, another provider could have its codes used here, or ours sent to it."""
    at.metadata = {"authorization_response_iss_parameter_supported": True}
    assert sent_to_provider(headwater, at).back().status == 401
    assert sent_to_provider(headwater, at).back(iss=at.address).status == 303


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"issuer": "https://evil.example"}, "letter by letter"),
        ({"token_endpoint": "http://evil.example/token"}, "no token_endpoint with https"),
        ({"jwks_uri": "file:///etc/passwd"}, "no jwks_uri with https"),
        ({"authorization_endpoint": None}, "no authorization_endpoint"),
    ],
)
def test_a_provider_that_says_nonsense_about_itself_is_not_used(
    headwater: Running, at: Issuer, metadata: dict[str, Any], says: str
) -> None:
    at.metadata = metadata
    answer = headwater.stranger.post("/login/provider", b"", Content_Type=FORM)
    assert (answer.status, says in answer.text, "refresh" in answer.headers) == (401, True, False)


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", "/%5Cevil.example"])
def test_nobody_is_led_elsewhere_after_signing_in(headwater: Running, at: Issuer, path: str) -> None:
    # H70
    answer = sent_to_provider(headwater, at, f"next={path}").back()
    assert (answer.status, urlsplit(answer.headers["location"]).netloc, answer.headers["location"][:2]) == (
        303,
        "",
        "/",
    )


def test_another_site_cannot_begin_a_sign_in(headwater: Running) -> None:
    # H73
    answer = headwater.stranger.post("/login/provider", b"", Content_Type=FORM, Origin="https://evil.example")
    assert answer.status == 403


def test_an_address_that_is_not_verified_opens_nothing(headwater: Running, at: Issuer) -> None:
    # E10
    made = headwater.parts.db.write_now(
        people.invite, headwater.owner, "bob@example.org", "member", headwater.url, headwater.parts.now()
    )
    for verified in (False, None, "yes", 1):
        claims = {"sub": "bob-1", "email": "bob@example.org", "email_verified": verified}
        answer = sent_to_provider(headwater, at, **claims).back()
        assert (answer.status, "has verified" in answer.text) == (401, True), verified
    token = made.link.partition("token=")[2]
    claims = {"sub": "eve-1", "email": "eve@example.org"}
    answer = sent_to_provider(headwater, at, f"invitation={token}", **claims).back()
    assert (answer.status, "is for bob@example.org" in answer.text) == (401, True)


def test_the_address_of_somebody_who_is_here_does_not_make_one_that_person(headwater: Running, at: Issuer) -> None:
    # E10
    a_person(headwater, "carl", password=PASSWORD)
    answer = sent_to_provider(headwater, at, sub="mallory", email="carl@example.org").back()
    assert (answer.status, "is not linked" in answer.text) == (401, True)
    assert headwater.parts.db.read_now(accounts.by_identity, at.address, "mallory") == []


def test_what_the_provider_says_elsewhere_has_to_be_about_the_same_person(headwater: Running, at: Issuer) -> None:
    at.metadata = {"userinfo_endpoint": f"{at.address}/me"}
    at.userinfo = {"sub": "somebody-else", "email": "bob@example.org", "email_verified": True}
    answer = sent_to_provider(headwater, at, sub="new-1", email=None, email_verified=None)
    at.claims = {name: value for name, value in at.claims.items() if value is not None}
    refused = answer.back()
    assert (refused.status, "somebody else" in refused.text) == (401, True)


def failures(headwater: Running, reader: Reader) -> list[tuple[str, int | None, str | None, str]]:
    rows = program_of(headwater, reader).get("/api/audit?resource=session").json()["items"]
    return [
        (one["detail"], one["user_id"], one["resource_id"], one["request_id"])
        for one in rows
        if one["action"] == "session.fail"
    ]


@pytest.fixture
def on_each(store_url: str, at: Issuer) -> Iterator[Running]:
    port = free_port()
    with running(store_url, port=port, **at.settings(f"http://127.0.0.1:{port}")) as found:
        yield found


def test_owners_see_who_came_from_the_provider_and_was_not_let_in(on_each: Running, at: Issuer) -> None:
    # E10, H72
    there = a_person(on_each, "ivy", "owner", tenant="Research")
    assert sent_to_provider(on_each, at, sub="eve", email="eve@example.org").back().status == 401
    [(detail, user_id, concerned, _)] = failures(on_each, on_each.owner)
    assert ("Nobody here is known as eve@example.org" in detail, user_id, concerned) == (True, None, None)
    assert detail.startswith("127.0.0.1: ")
    # It concerns the tenant whose person's address was brought, and no other.
    refused = sent_to_provider(on_each, at, sub="eve", email="ivy@example.org").back()
    assert refused.status == 401
    [(detail, user_id, concerned, request_id)] = failures(on_each, there)
    assert ("is not linked" in detail, user_id, concerned) == (True, None, str(there.user_id))
    assert request_id == refused.headers["x-request-id"]
    assert len(failures(on_each, on_each.owner)) == 1
    # A lie of the provider, and one who gave up there.
    at.token = LIES["another nonce"]
    assert sent_to_provider(on_each, at).back().status == 401
    at.token = signed
    assert sent_to_provider(on_each, at).back(code=None, error="access_denied").status == 401
    assert [("cannot be trusted" in one[0], "access_denied" in one[0]) for one in failures(on_each, on_each.owner)] == [
        (False, True),
        (True, False),
        (False, False),
    ]
    # Whoever was never sent there leaves nothing: anybody could fill the log.
    assert on_each.stranger.get("/login/provider?code=x&state=y").status == 401
    assert len(failures(on_each, on_each.owner)) == 3
    assert sent_to_provider(on_each, at, sub="new", email="new@example.org").back().status == 401


def test_accounts_elsewhere_are_listed_and_unlinked_by_the_api(on_each: Running, at: Issuer) -> None:
    # E10
    ann, other = a_person(on_each, "ann", password=PASSWORD), a_person(on_each, "bob", tenant="Research")
    write, now = on_each.parts.db.write_now, on_each.parts.now()
    for issuer_name, subject in ((at.address, "ann-1"), ("https://other.example", "näme/\u2603 %")):
        write(people.link_identity, ann, issuer_name, subject, now)
    write(people.link_identity, other, at.address, "bob-1", now)
    client = program_of(on_each, ann)
    items = client.get("/api/account/identities").json()["items"]
    assert {(one["issuer"], one["subject"]) for one in items} == {
        (at.address, "ann-1"),
        ("https://other.example", "näme/\u2603 %"),
    }
    [theirs] = program_of(on_each, other).get("/api/account/identities").json()["items"]
    unknown = [
        client("DELETE", f"/api/account/identities/{one}")
        for one in (theirs["id"], "0" * 32, "x", "%00", "..%2F", "'%20OR%201=1")
    ]
    assert {one.status for one in unknown} <= {404, 422}
    assert (unknown[0].status, unknown[0].json()["code"]) == (unknown[1].status, unknown[1].json()["code"])
    reads = program_of(on_each, ann, frozenset({"account:read"}))
    assert reads("DELETE", f"/api/account/identities/{items[0]['id']}").status == 403
    for one in items:
        assert client("DELETE", f"/api/account/identities/{one['id']}").status == 204
    assert client.get("/api/account/identities").json() == {"items": []}
    assert client("DELETE", f"/api/account/identities/{items[0]['id']}").status == 404
    # The only way in stays.
    last = program_of(on_each, other)("DELETE", f"/api/account/identities/{theirs['id']}")
    assert (last.status, "Set a password first" in last.json()["detail"]) == (409, True)


def test_linking_needs_the_session_that_began_it(headwater: Running, at: Issuer) -> None:
    dora, eve = a_person(headwater, "dora"), a_person(headwater, "eve")
    hers, other = browser_of(headwater, dora), browser_of(headwater, eve)
    assert headwater.stranger.post("/account/identities", b"", Content_Type=FORM).status == 401
    coming = left(headwater, at, hers.post("/account/identities", b"", Content_Type=FORM), sub="dora-1")
    coming.session = other.headers["Cookie"]
    answer = coming.back()
    assert (answer.status, "somebody else in the meantime" in answer.text) == (401, True)
    coming = left(headwater, at, hers.post("/account/identities", b"", Content_Type=FORM), sub="ann-1")
    coming.session = hers.headers["Cookie"]
    taken = coming.back()
    assert (taken.status, "already belongs to somebody else here" in taken.text) == (409, True)
    assert headwater.parts.db.read_now(accounts.identities, dora) == []


def test_a_new_key_of_the_provider_is_found_and_an_old_one_is_not_taken(headwater: Running, at: Issuer) -> None:
    assert sent_to_provider(headwater, at).back().status == 303
    new = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    at.keys = [dict(jwt.public_key("two", new).jwk)]
    at.token = lambda claims: signed(claims, new, kid="two")
    headwater.parts.providers[""]._loaded_at["keys"] -= 60  # as if half a minute had passed
    assert sent_to_provider(headwater, at).back().status == 303
    at.token = signed
    assert sent_to_provider(headwater, at).back().status == 401


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"OIDC_ISSUER": "https://login.example"}, "go together"),
        ({"OIDC_ISSUER": "http://login.example", "OIDC_CLIENT_ID": "x"}, "must be an https address"),
        ({"OIDC_ISSUER": "https://login.example", "OIDC_CLIENT_ID": "x", "OIDC_SCOPES": "email"}, "needs openid"),
        ({"OIDC_JOIN_TENANT": "default"}, "go together"),
        ({"OIDC_DOMAINS": "example.org"}, "go together"),
        ({"OIDC_JOIN_ROLE": "owner"}, "HEADWATER_OIDC_JOIN_ROLE"),
        ({"OIDC_PROVIDERS": "two"}, "is not like"),
        ({"OIDC_PROVIDERS": "two http://login.example x"}, "is not like"),
        ({"OIDC_PROVIDERS": "../two https://login.example x"}, "is not like"),
        ({"OIDC_PROVIDERS": "two https://a.example x, two https://b.example x"}, "is not like"),
        ({"OIDC_PROVIDERS": "two https://a.example x, three https://a.example y"}, "is not like"),
        (
            {"OIDC_ISSUER": "https://a.example", "OIDC_CLIENT_ID": "x", "OIDC_PROVIDERS": "two https://a.example y"},
            "and so does",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given: dict[str, str], says: str) -> None:
    environ = {"HEADWATER_CONFIG": "", **{f"HEADWATER_{name}": value for name, value in given.items()}}
    with pytest.raises(BadSetting, match=says):
        open_parts(load(environ))
