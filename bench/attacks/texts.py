"""Attacks by what it reads and shows: strings that mean something to a database, a parser or a browser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from shutil import which
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from playwright.sync_api import Browser, Error, sync_playwright

from attacks import Answer, Finding, Target, told_too_much, until
from headwater.api.document import openapi

TAKEN = "window.taken = 1"
MARKUP = (
    f"<script>{TAKEN}</script>",
    f'"><img src=x onerror="{TAKEN}">',
    f"'-{TAKEN}-'",
    f"</title></textarea></style><svg onload={TAKEN}>",
    f"javascript:{TAKEN}//",
    f'<a href="javascript:{TAKEN}" autofocus onfocus={TAKEN}>x</a>',
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={TAKEN}&gt;">',
    "<iframe srcdoc='<script>parent.taken=1</script>'></iframe><base href=//evil.example/>",
    f"${{{TAKEN}}}{{{{{TAKEN}}}}}\u2028{TAKEN}\u2029",
)
ODD = (
    *(
        "'",
        '"',
        "\\",
        "\0",
        "\x1b",
        "' OR 1=1 --",
        "1; DROP TABLE posts",
        '"*',
        "a NEAR b",
        "^a",
        "words:x",
        "{a b}: c",
    ),
    *("(((", "a AND", "NOT", "-", "*", "%", "_", "+", "a:*b", "a<->b", "!a", "&", "|", "\u202e", "a\nb", "\ufeff"),
    *("<script>", "${7*7}", "{{7*7}}", "../../../etc/passwd", "..%2f", "0x10", "１", " 1", "1_0", "1e309", "NaN"),
    *("-1", "0", "9" * 19, "9" * 400, "true", "null", "[]", "𝕏" * 200, "é" * 3000, "a " * 500),
)
ODD_VALUES: tuple[Any, ...] = (
    *ODD[:40:3],
    *(None, True, -1, 2**63, 1e308, [], {}, [[]], {"a": {}}, "x" * 100_000, ["x"] * 2000),
)
ODD_BYTES = ("%ED%A0%80", "%FF%FE", "%C0%AF", "%00", "%0d%0aX-Injected:%201", "%E2%80%A8", "%zz", "%u0041")
BODIES = (
    *(b"", b"null", b"[]", b"{}", b"0", b'""', b"{", b'{"a":', b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b"{}{}"),
    *(b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"a":NaN}', b'{"a":1e999}', b'{"a":1,"a":2}'),
    *(b'{"__proto__":{"admin":true}}', b'{"a":"\\ud800"}', b'{"a":"\\u0000"}', b'{"a":' + b"9" * 5000 + b"}"),
)

_NAMED = re.compile(r"\{[^}]*\}")


def oddities(target: Target) -> Iterator[Finding]:
    """Puts strings that mean something to SQL, FTS, JSON, templates and file systems into every parameter and body."""
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            if path == "/api/live":
                continue
            concrete = _NAMED.sub("1", path)
            odd = [quote(value) for value in ODD] + list(ODD_BYTES)
            for parameter in operation.get("parameters", []):
                for value in odd:
                    if parameter["in"] == "path":
                        asked = _NAMED.sub(value.replace("\\", r"\\"), path)
                    elif parameter["in"] == "query":
                        asked = f"{concrete}?{parameter['name']}={value}"
                    else:
                        continue
                    yield told_too_much(target.program(method.upper(), asked), f"{method.upper()} {asked[:120]}")
            if "requestBody" in operation:
                for body in BODIES:
                    got = target.program(method.upper(), concrete, body, Content_Type="application/json")
                    yield told_too_much(got, f"{method.upper()} {concrete} {body[:40]!r}")
                for name, fields_sent in odd_fields(operation):
                    got = target.program(method.upper(), concrete, fields_sent)
                    yield told_too_much(got, f"{method.upper()} {concrete} {name}={str(fields_sent[name])[:40]!r}")


def odd_fields(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields bodies with one odd value each."""
    content = operation["requestBody"]["content"].get("application/json", {}).get("schema", {})
    shape = openapi()["components"]["schemas"].get(content.get("$ref", "").rpartition("/")[2], content)
    example = shape.get("example") or {name: (one.get("examples") or [None])[0] for name, one in fields(shape)}
    for name, _ in fields(shape):
        for value in ODD_VALUES:
            yield name, {**example, name: value}


def fields(shape: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(shape.get("properties", {}).items())


def lists(target: Target) -> Iterator[Finding]:
    """Sends lists of sources that multiply, read files, or have no bottom."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    documents = (
        f'<!DOCTYPE o [<!ENTITY l0 "lol">{laughs}]><opml><body><outline text="&l9;"/></body></opml>',
        '<!DOCTYPE o [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><body><outline text="&x;" xmlUrl="http://a.example/"/></body></opml>',
        f'<!DOCTYPE o SYSTEM "http://127.0.0.2:{target.trap.port}/dtd"><opml><body/></opml>',
        "<opml><body>" + "<outline text='x'>" * 20_000,
        "<opml><body>" + "<outline xmlUrl='http://127.0.0.2/'/>" * 20_000 + "</body></opml>",
        "<opml><body><outline xmlUrl='file:///etc/passwd'/><outline xmlUrl='gopher://127.0.0.2/'/></body></opml>",
        f"<opml {' '.join(f'a{n}=' + chr(39) + chr(39) for n in range(50_000))}><body/></opml>",
        "<opml xmlns:i='http://www.w3.org/2001/XInclude'><body><i:include href='/etc/passwd'/></body></opml>",
        "<?xml version='1.0' encoding='utf-7'?>+ADw-opml+AD4-",
    )
    for document in documents:
        for encoding in ("utf-8", "utf-16"):
            start = time.monotonic()
            got = target.program("POST", "/api/opml", document.encode(encoding))
            slow = time.monotonic() - start > target.seconds
            yield f"{document[:40]} took too long" if slow else told_too_much(got, document[:40])
    exported = target.program("GET", "/api/opml")
    yield "the export has what was in a file" if "root:" in exported.text else told_too_much(exported, "export")


def scripts(target: Target) -> Iterator[Finding]:
    """Puts scripts into every field of feeds and of what people name, and opens every page in Chromium."""
    program = which("chromium") or which("chromium-browser") or which("google-chrome")
    if program is None:
        yield "not tried: there is no Chromium"
        return
    paths = set()
    for place, markup in enumerate(MARKUP):
        target.site.pages[f"/rss{place}"] = Answer(rss_of(markup), headers={"Content-Type": "application/rss+xml"})
        target.site.pages[f"/json{place}"] = Answer(json_feed_of(markup), headers={"Content-Type": "application/json"})
        paths |= {f"/rss{place}", f"/json{place}"}
        for path in (f"/rss{place}", f"/json{place}"):
            named = {"title": markup, "folder": markup[:100]}
            got = target.program("POST", "/api/sources", {"address": target.site.url(path), **named})
            yield None if got.status == 202 else f"not tried: {got.text}"
        target.program("POST", "/api/webhooks", {"address": f"https://hook.example/{quote(markup)}", "kinds": []})
        target.program("POST", "/api/account/tokens", {"name": markup[:100]})
        target.program("PATCH", "/api/account", {"name": markup[:100]})
        target.program("POST", "/api/tenants", {"name": markup[:100], "owner_email": "a@example.org"})
        target.program("POST", "/api/invitations", {"email": f"{markup[:20]}@example.org", "role": "member"})
    until(lambda: paths <= set(target.site.paths()), target.seconds)
    yield None if paths <= set(target.site.paths()) else f"not tried: {sorted(paths - set(target.site.paths()))}"
    until(lambda: len(listed(target, "posts")) >= len(paths), 20)
    yield None if len(listed(target, "posts")) >= len(MARKUP) else "not tried: few posts were stored"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for policy in (True, False):
            yield from opened_in(browser, target, policy)
        browser.close()


def rss_of(markup: str) -> str:
    text = escape(markup, {'"': "&quot;"})
    return f"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>{text}</title>
        <link>{text}</link><description>{text}</description><language>{text}</language>
        <item><guid>{text}</guid><title>{text}</title><link>{text}</link><dc:creator>{text}</dc:creator>
        <category>{text}</category><comments>{text}</comments><enclosure url="{text}" type="{text}" length="1"/>
        <description>{text}</description></item></channel></rss>"""


def json_feed_of(markup: str) -> str:
    names = ("id", "title", "url", "external_url", "content_html", "summary", "image", "language")
    item = {**dict.fromkeys(names, markup), "tags": [markup], "authors": [{"name": markup, "url": markup}]}
    feed = dict.fromkeys(("title", "home_page_url", "icon", "description"), markup)
    return json.dumps({**feed, "version": "https://jsonfeed.org/version/1.1", "items": [item]})


def opened_in(browser: Browser, target: Target, policy: bool) -> Iterator[Finding]:
    """Opens every page, with the content policy or without it: neither may be needed."""
    context = browser.new_context(bypass_csp=not policy)
    name, _, value = target.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": target.url}])
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in pages_of(target):
        try:
            page.goto(target.url + path, wait_until="load", timeout=60_000)
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            ran, loose = page.evaluate("window.taken !== undefined"), page.evaluate(LOOSE)
        except Error as error:
            yield f"not tried: {path}: {error}"
            continue
        yield f"a script ran on {path} {'with' if policy else 'without'} the policy" if ran else None
        yield f"{path} has {loose}" if loose else None
    yield from (f"a page asked for {url}" for url in asked if not url.startswith(target.url))
    context.close()


LOOSE = """[...document.querySelectorAll('[href], [src], [action]')].flatMap(one => ['href', 'src', 'action'].map(
    name => one.getAttribute(name) || '')).find(one => /^\\s*(javascript|data:text|vbscript)/i.test(one)) || ''"""


def pages_of(target: Target) -> Iterator[str]:
    yield from ("/", "/sources", "/health", "/account", "/people", "/webhooks", "/crawling", "/folding", "/api/docs")
    yield from (f"/?{name}={quote(markup)}" for markup in MARKUP for name in ("q", "folder", "cursor"))
    for kind, path in (("sources", "/sources"), ("posts", "/posts"), ("posts", "/stories"), ("webhooks", "/webhooks")):
        yield from (f"{path}/{one['id']}" for one in listed(target, kind))


def listed(target: Target, kind: str) -> list[dict[str, Any]]:
    got = json.loads(target.program("GET", f"/api/{kind}" + ("" if kind == "webhooks" else "?limit=200")).body)
    items: list[dict[str, Any]] = got["items"]
    return items
