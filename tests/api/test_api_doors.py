"""Who gets in: tokens, sessions, login links, forged requests, foreign names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import structlog
from fastapi.dependencies.models import Dependant

from api.running import Client, Running, api_routes, routes, running
from headwater.accounts import tokens
from headwater.wire import utc_now
from support.proxy import nginx_before

FORM = "application/x-www-form-urlencoded"
OPEN = {
    ("GET", "/healthz"): 200,
    ("GET", "/readyz"): 200,
    ("GET", "/login"): 200,
    ("POST", "/login"): 401,  # without a password
    ("POST", "/login/provider"): 404,  # there is none
    ("GET", "/invitation"): 404,  # without an invitation
    ("POST", "/invitation"): 404,
    ("POST", "/oauth/token"): 422,  # without a form
    ("GET", "/.well-known/jwks.json"): 200,
    ("GET", "/.well-known/oauth-authorization-server"): 200,
}


def test_without_credentials_every_door_is_closed_but_a_few(on_both: Running) -> None:
    # H74
    walked = routes(on_both)
    assert len(walked) > 25
    for method, path in walked:
        concrete = path.replace("{source_id}", "1").replace("{post_id}", "1")
        for client in (on_both.stranger, on_both.browser("hw_session_wrong")):
            status = client(method, concrete).status
            assert status == OPEN.get((method, path), 401), f"{method} {path}"
    assert on_both.stranger.get("/static/headwater.css").status == 200


def test_no_route_waits_for_a_thread_before_it_begins(headwater: Running) -> None:
    """FastAPI has a thread call every dependency that is not async. It did so three times for each request."""

    def calls(dependant: Dependant) -> Iterator[Any]:
        for one in dependant.dependencies:
            yield one.call
            yield from calls(one)

    asked = [call for route in api_routes(headwater) for call in calls(route.dependant)]
    assert asked
    assert not [
        call for call in asked if not iscoroutinefunction(call) and not iscoroutinefunction(type(call).__call__)
    ]


def test_what_does_not_exist_is_not_told_to_strangers(headwater: Running) -> None:
    assert headwater.stranger.get("/api/nothing").status == 401
    assert headwater.stranger.get("/static/../api/app.py").status in (401, 404)
    assert headwater.stranger.get("/static/%2e%2e/words.py").status == 404


def test_strangers_are_refused_before_their_body_is_read(headwater: Running) -> None:
    assert headwater.stranger.post("/api/sources", b"{not json", Content_Type="application/json").status == 401


@pytest.mark.parametrize(
    "authorization", ["Bearer wrong", "Bearer ", "Bearer", "Basic {token}", "{token}", "", "Bearer é"]
)
def test_a_wrong_token_is_not_made_good_by_a_session(shared_on_both: Running, authorization: str) -> None:
    # H65
    sent = authorization.format(token=shared_on_both.token()).encode().decode("latin-1")
    answer = shared_on_both.browser()("GET", "/api/stream", Authorization=sent)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_opens_only_the_doors_of_its_kind(shared_on_both: Running) -> None:
    # H65
    session = shared_on_both.session()
    assert shared_on_both.stranger.get("/api/stream", Authorization=f"Bearer {session}").status == 401
    assert shared_on_both.browser(shared_on_both.token()).get("/api/stream").status == 401
    assert shared_on_both.stranger.get(f"/login?token={shared_on_both.token()}").status == 401


def test_a_revoked_token_is_refused(shared_on_both: Running) -> None:
    # H66
    secret = shared_on_both.token()
    client = Client(shared_on_both.port, {"Authorization": f"Bearer {secret}"})
    assert client.get("/api/stream").status == 200
    shared_on_both.parts.db.write_now(tokens.revoke, "api", secret, shared_on_both.parts.now())
    assert client.get("/api/stream").status == 401


def test_a_login_link_signs_in_once(on_both: Running) -> None:
    link = on_both.login_link()
    answer = on_both.stranger.get(link)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    [cookie] = answer.cookies
    assert cookie.startswith("headwater_session=hw_session_")
    for attribute in ("HttpOnly", "SameSite=lax", "Path=/"):
        assert attribute in cookie
    assert "Secure" not in cookie
    browser = Client(on_both.port, {"Cookie": cookie.partition(";")[0]})
    assert browser.get("/").status == 200
    again = on_both.stranger.get(link, Accept="text/html")
    assert (again.status, again.cookies) == (401, [])
    assert "headwater login" in again.text


def test_only_a_get_spends_a_login_link(shared_on_both: Running) -> None:
    link = shared_on_both.login_link()
    assert shared_on_both.stranger("HEAD", link).status == 405
    assert shared_on_both.stranger.get(link).status == 303


def test_links_and_sessions_expire(store_url: str) -> None:
    # H65
    clock = [utc_now()]
    with running(store_url, now=lambda: clock[0]) as headwater:
        link, browser = headwater.login_link(), headwater.browser()
        assert browser.get("/").status == 200
        clock[0] += timedelta(days=2)
        assert headwater.stranger.get(link).status == 401
        clock[0] += timedelta(days=30)
        assert browser.get("/").status == 401


def test_behind_https_the_cookie_is_sent_by_https_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'headwater.db'}"
    with running(url, HEADWATER_PUBLIC_URL="https://news.example") as headwater:
        [cookie] = headwater.stranger.get(headwater.login_link(), Host="news.example").cookies
    assert "Secure" in cookie


@pytest.mark.parametrize(
    ("wanted", "goes_to"),
    [
        ("/sources", "/sources"),
        ("/?unread=1", "/?unread=1"),
        ("//evil.example", "/"),  # H70
        ("/\\evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("", "/"),
    ],
)
def test_after_signing_in_one_stays_on_this_server(shared_on_both: Running, wanted: str, goes_to: str) -> None:
    answer = shared_on_both.stranger.get(f"{shared_on_both.login_link()}&next={quote(wanted, safe='%')}")
    assert answer.headers["location"] == goes_to


def test_signing_out_ends_the_session(shared_on_both: Running) -> None:
    # H66
    session = shared_on_both.session()
    browser = shared_on_both.browser(session)
    answer = browser.post("/logout", f"form_key={tokens.form_key(session)}".encode(), Content_Type=FORM)
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert browser.get("/").status == 401


def test_a_session_cannot_write_without_the_key_of_a_page(on_both: Running) -> None:
    # H73
    session = on_both.session()
    browser = on_both.browser(session)
    key, other = tokens.form_key(session), tokens.form_key(on_both.session())
    body = b"address=https://news.example/"
    for wrong in ({}, {"X_Form_Key": other}, {"X_Form_Key": ""}, {"X_Form_Key": "é".encode().decode("latin-1")}):
        for method, path in (("POST", "/sources"), ("POST", "/logout"), ("POST", "/sources/refresh")):
            answer = browser(method, path, body, Content_Type=FORM, **wrong)
            assert (answer.status, answer.json()["code"]) == (403, "forbidden"), path
        assert browser("DELETE", "/api/sources/1", **wrong).status == 403
        assert browser("PATCH", "/api/posts/1", {"read": True}, **wrong).status == 403
    assert browser.post("/sources", body + f"&form_key={key}".encode(), Content_Type=FORM).status == 303
    assert browser("DELETE", "/api/sources/1", X_Form_Key=key).status == 204


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
    ],
)
def test_a_request_that_another_site_made_is_refused_even_with_the_key(shared_on_both: Running, headers: Any) -> None:
    # H73
    session = shared_on_both.session()
    answer = shared_on_both.browser(session).post(
        "/api/sources/refresh", X_Form_Key=tokens.form_key(session), **headers
    )
    assert answer.status == 403


def test_our_own_pages_may_write(headwater: Running) -> None:
    session = headwater.session()
    own = {"Sec_Fetch_Site": "same-origin", "Origin": headwater.url}
    for headers in (own, {**own, "Origin": "null"}, {}):
        answer = headwater.browser(session).post("/api/sources/refresh", X_Form_Key=tokens.form_key(session), **headers)
        assert answer.status == 202


def test_a_token_needs_no_form_key(headwater: Running) -> None:
    assert headwater.program().post("/api/sources/refresh", Origin="https://tool.example").status == 202


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "[",
        "192.168.1.5",
        "localhost@evil.example:80",
        "[::1]evil",
        "evil@127.0.0.1",
        "127.0.0.1/x",
        "127.0.0.1:80x",
    ],
)
def test_a_name_that_is_not_ours_is_refused(headwater: Running, host: str) -> None:
    # A page that rebinds its own name to this address must not get in.
    answer = headwater.program().get("/api/stream", Host=host)
    assert (answer.status, answer.json()["code"]) == (403, "forbidden")
    assert headwater.stranger.get("/healthz", Host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:8080"])
def test_local_names_are_ours(headwater: Running, host: str) -> None:
    assert headwater.program().get("/api/stream", Host=host).status == 200


def test_a_server_for_all_addresses_takes_numbers_and_its_public_name(tmp_path: Path) -> None:
    environ = {"HEADWATER_HOST": "0.0.0.0", "HEADWATER_PUBLIC_URL": "https://News.example/"}
    with running(f"sqlite:///{tmp_path / 'headwater.db'}", **environ) as headwater:
        client = headwater.program()
        for host, status in (("192.168.1.5:8080", 200), ("news.example", 200), ("evil.example", 403)):
            assert client.get("/api/stream", Host=host).status == status


def test_metrics_take_a_token_wherever_the_request_comes_from(store_url: str) -> None:
    # H71
    with running(store_url, HEADWATER_PUBLIC_URL="https://news.example") as headwater:
        for headers in (
            {},
            {"Host": "localhost"},
            {"X_Forwarded_For": "127.0.0.1"},
            {"Forwarded": "for=::1"},
            {"Host": "news.example"},
        ):
            assert headwater.stranger.get("/metrics", **headers).status == 401
            assert headwater.program().get("/metrics", **headers).status == 200


def test_a_plain_proxy_on_this_machine_opens_nothing(shared_on_both: Running, tmp_path: Path) -> None:
    # H71: nginx without a single header of its own sends the local name and comes from loopback.
    with nginx_before(shared_on_both.port, tmp_path) as port:
        behind = Client(port)
        assert behind.get("/healthz").status == 200
        for path in ("/metrics", "/api/health", "/api/stream", "/"):
            assert behind.get(path).status == 401, path
        token = {"Authorization": f"Bearer {shared_on_both.token()}"}
        assert "headwater_sources_due" in behind.get("/metrics", **token).text


def test_no_secret_is_in_a_log_or_an_answer(shared_on_both: Running, caplog: pytest.LogCaptureFixture) -> None:
    # H67
    caplog.set_level(logging.DEBUG)
    session, token, link = shared_on_both.session(), shared_on_both.token(), shared_on_both.login_link()
    with structlog.testing.capture_logs() as logged:
        answers = [
            shared_on_both.stranger.get(link),
            shared_on_both.stranger.get(link),
            shared_on_both.stranger.get(link + "&token=" + "x" * 300),
            shared_on_both.browser(session).get("/", Accept="text/html"),
            shared_on_both.browser(session).post("/sources", b"x"),
            shared_on_both.stranger.get(f"/api/stream?token={token}"),
            shared_on_both.stranger.get("/api/stream", Authorization=f"Bearer {token}x"),
            shared_on_both.stranger.get("/api/nothing", Authorization=f"Bearer {token}"),
        ]
    assert len(logged) >= len(answers)
    said = str(logged) + caplog.text + "".join(answer.text for answer in answers)
    for secret in (session, token, link.partition("=")[2]):
        assert secret not in said


def test_every_answer_carries_the_headers_that_protect_it(headwater: Running) -> None:
    # H34, H62
    paths = ["/", "/sources", "/api/stream", "/nothing", "/static/headwater.css", "/api/docs", "/login"]
    for path in paths:
        headers = headwater.program().get(path, Accept="text/html").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if path.startswith("/static/") else "no-store")
