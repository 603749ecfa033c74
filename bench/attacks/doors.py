"""Attacks on who may come in: without credentials, with somebody else's, and by guessing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from urllib.parse import quote, urlencode, urlsplit

from attacks import EMAIL, PASSWORD, Finding, Target, routes

FORM = "application/x-www-form-urlencoded"

GUESSES = 8  # fewer than lock an account
MOST_APART = 1.5

# What everybody may do with an account of their own, and with what they read.
OWN = ("/account", "/api/account", "/logout", "/posts", "/api/posts", "/oauth", "/folding", "/api/folding")


def doors(target: Target) -> Iterator[Finding]:
    """Asks for everything without credentials, with wrong ones, and with tricks in the path."""
    wrong = {
        "nothing": {},
        "an empty token": {"Authorization": "Bearer "},
        "a wrong token": {"Authorization": f"Bearer {target.token[:-1]}"},
        "a token of no kind": {"Authorization": f"Basic {target.token}"},
        "an unsigned token": {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."},
        "the session as a token": {"Authorization": f"Bearer {target.cookie.partition('=')[2]}"},
        "the token as a session": {"Cookie": f"headwater_session={target.token}"},
        "the address of a proxy": {"X_Forwarded_For": "127.0.0.1", "X_Real_IP": "127.0.0.1", "Forwarded": "for=::1"},
        "the name of a user": {"X_Forwarded_User": "owner", "Remote_User": "owner"},
    }
    for method, path in routes():
        for name, headers in wrong.items():
            got = target.ask(method, path, **headers)
            yield f"{method} {path} with {name}: {got.status}" if got.status < 400 or got.status >= 500 else None
    for path in ("//api/stream", "/API/stream", "/api//stream", "/static/../api/stream", "/static/%2e%2e/api/stream"):
        yield opened(target, path)
    for path in (
        "/healthz/../api/stream",
        "/login/../api/stream",
        "/api/stream;/healthz",
        "/healthz%2f..%2fapi/stream",
    ):
        yield opened(target, path)
    for path in ("/static/..%2f..%2fheadwater.db", "/static/%2e%2e/%2e%2e/pyproject.toml", "/static//etc/passwd"):
        yield opened(target, path)
    for path in ("/static/..\\..\\settings.py", "/static/%00", "/static/....//....//etc/passwd"):
        yield opened(target, path)


def opened(target: Target, path: str) -> Finding:
    got = target.ask("GET", path)
    return f"GET {path}: {got.status}" if got.status < 300 or got.status >= 500 else None


def forgery(target: Target) -> Iterator[Finding]:
    """Writes with a person's cookie as another site would make the browser do it."""
    foreign: tuple[dict[str, str], ...] = (
        {},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "null"},
        {"Referer": f"https://evil.example/{target.url}", "Sec_Fetch_Site": "same-site"},
        {"Origin": target.url, "X_HTTP_Method_Override": "DELETE"},
    )
    kinds = (FORM, "text/plain", "application/json", "multipart/form-data; boundary=x")
    for method, path in routes():
        if method == "GET":
            continue
        for headers in foreign:
            for kind in kinds:
                got = target.person(method, path, b"a=1&form_key=x&key=x", Content_Type=kind, **headers)
                fell = got.status < 400 or got.status >= 500
                yield f"{method} {path} by another site: {got.status}" if fell else None


def privacy(target: Target) -> Iterator[Finding]:
    """Looks at what pages and cookies say about themselves, and where signing in leads to."""
    for path in ("/", "/sources", "/health", "/account", "/people", "/webhooks", "/api/stream", "/api/account"):
        ask = target.program if path.startswith("/api") else target.person
        got = ask("GET", path)
        if got.status == 200:
            kept = got.headers.get("cache-control", "")
            yield None if "no-store" in kept or "private" in kept else f"{path} may be kept: {kept!r}"
            policy = got.headers.get("content-security-policy", "")
            yield None if "default-src 'none'" in policy else f"{path} has the policy {policy!r}"
            yield None if got.headers.get("x-content-type-options") == "nosniff" else f"{path} may be sniffed"
            yield f"{path} is open to others" if "access-control-allow-origin" in got.headers else None
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example", "[::1]evil"):
        got = target.program("GET", "/api/stream", Host=name)
        yield None if 400 <= got.status < 500 else f"answers to the name {name}: {got.status}"
    for wanted in ("//evil.example", "/\\evil.example", "https:evil.example", "\t//evil.example", "/%09/evil.example"):
        yield led_away(target, wanted)
    for wanted in (
        "https://evil.example",
        "javascript:alert(1)",
        "/\r\nX-Injected: 1",
        "///evil.example",
        "/@evil.example/..",
    ):
        yield led_away(target, wanted)


def led_away(target: Target, wanted: str) -> Finding:
    body = urlencode({"email": EMAIL, "password": PASSWORD, "next": wanted}).encode()
    answers = [
        target.ask("POST", "/login", body, Content_Type=FORM),
        target.person("GET", f"/login?next={quote(wanted)}"),
    ]
    for got in answers:
        goes = got.headers.get("location", "/")
        if "x-injected" in got.headers or urlsplit(goes.replace("\\", "/")).netloc or not goes.startswith("/"):
            return f"signing in leads to {goes!r}"
    return None


def escalation(target: Target) -> Iterator[Finding]:
    """Asks for everything as somebody who may only read."""
    body = urlencode({"email": EMAIL, "password": PASSWORD}).encode()
    signed = target.ask("POST", "/login", body, Content_Type=FORM)
    if not signed.cookies:
        yield f"not tried: {signed.text}"
        return
    viewer = target._replace(cookie=signed.cookies[0].partition(";")[0])
    flags = signed.cookies[0].lower()
    yield None if "httponly" in flags and "samesite=lax" in flags and "path=/" in flags else f"the cookie is {flags}"
    key = re.search(r'name="form_key" value="([^"]+)"|data-form-key="([^"]+)"', viewer.person("GET", "/").text)
    own = {"X_Form_Key": key.group(1) or key.group(2)} if key else {}
    for method, path in routes():
        if method == "GET" and not path.startswith(("/people", "/api/people", "/api/tenants", "/api/invitations")):
            continue
        if path.startswith(OWN):
            continue
        got = viewer.person(method, path, b"{}", Content_Type="application/json", **own)
        fell = got.status < 400 or got.status >= 500
        yield f"{method} {path} by somebody who may only read: {got.status}" if fell else None


def guesses(target: Target) -> Iterator[Finding]:
    """Compares what is answered for people who exist with what is answered for others."""
    said = set()
    for email in (EMAIL, "nobody@example.org", "x" * 200 + "@example.org", EMAIL + " "):
        body = urlencode({"email": email, "password": "wrong wrong wrong"}).encode()
        got = target.ask("POST", "/login", body, Content_Type=FORM)
        said.add((got.status, got.text.replace(email, "")))
        yield None
    yield f"answers differ: {said}" if len({status for status, _ in said}) > 1 else None
    for secret in ("", "x", "0" * 43, "' OR 1=1 --", "%00"):
        got = target.ask("GET", f"/invitation?token={quote(secret)}")
        yield (
            None if 400 <= got.status < 500 or (got.status == 200 and not got.cookies) else f"invitation: {got.status}"
        )
        got = target.ask("GET", f"/login?token={quote(secret)}")
        yield f"signed in by {secret!r}" if got.cookies else None


def timing(target: Target) -> Iterator[Finding]:
    """Compares the CPU that a wrong password costs: of somebody who exists, and of somebody who does not.

    Time on the clock says little on a busy machine. CPU is what an attacker measures at best.
    """
    known, unknown = EMAIL, "nobody@example.org"
    wrong_password(target, known)  # what is loaded once is not counted
    spent: dict[str, list[int]] = {known: [], unknown: []}
    for _ in range(GUESSES):
        for email, costs in spent.items():
            before = cpu_of(target.pid)
            wrong_password(target, email)
            costs.append(cpu_of(target.pid) - before)
            yield None
    ratio = median(spent[known]) / max(1, median(spent[unknown]))
    yield None if 1 / MOST_APART < ratio < MOST_APART else f"somebody known costs {ratio:.2f} times the CPU"


def wrong_password(target: Target, email: str) -> None:
    body = urlencode({"email": email, "password": "wrong wrong wrong"}).encode()
    target.ask("POST", "/login", body, Content_Type=FORM)


def cpu_of(pid: int) -> int:
    """Returns the nanoseconds that the threads of a process have run."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text(encoding="utf-8").split()[0]) for thread in threads)
