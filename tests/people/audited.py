"""How to call every route and every command that writes, for the walk that looks for their rows in the audit log.

A route or command that is new has to be added here: to `ROUTES` or `COMMANDS` with a call that succeeds, or to
`ROUTES_WITHOUT` or `COMMANDS_WITHOUT` with the reason why it changes nothing. Its use case calls `audit.record` in the
transaction that makes the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import typer
from fastapi import FastAPI
from sqlalchemy import Connection, select, text, update

from api.running import Answer, Client, Running
from headwater.accounts import tokens
from headwater.accounts.vault import InstanceKey, KeyFile, new_key
from headwater.app import account, people, webhooks
from headwater.app.sources import STARTER_GROUPS
from headwater.cli.commands import program
from headwater.consumers import search
from headwater.http.auth import SAFE_METHODS, every_route
from headwater.model import Decision, Event, Reader
from headwater.sim.market import as_csv, mined
from headwater.store import stories as story_store
from headwater.store.log import outbox
from headwater.store.tables import webhook_deliveries
from headwater.store.visits import checkpoints
from headwater.store.visits.checkpoints import CheckpointRow
from people.issuer import Issuer, issuer, sent_to_provider
from support.log import consume_all
from support.people import PASSWORD, a_person, browser_of, program_of
from support.posts import a_post

FORM = "application/x-www-form-urlencoded"
OPML = b'<opml version="2.0"><body><outline text="x" xmlUrl="https://listed-%d.example/feed"/></body></opml>'
FLEET = {"model": "Antminer S19 Pro", "quantity": 40, "site": "Hall 2", "electricity_usd_per_kwh": "0.055"}
TRADE = {"side": "buy", "btc": "0.25", "usd": "17350.40", "traded_at": "2024-03-01T12:00:00Z"}
WHAT_TO_DO = (
    "{what} is not known to the walk of the audit log. If it changes something, let its use case call audit.record in "
    "the same transaction (store/people/audit.py lists the actions), and say in tests/people/audited.py how it is "
    "called ({table}). If it changes nothing, say so in {table}_WITHOUT."
)
# Pages that are asked for and change something.
_ALSO = frozenset({"/login", "/login/provider", "/login/provider/{key}"})
_numbers = count(1)


def writing_routes(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route that can change something."""
    return [
        (method, route.path)
        for route in every_route(app)
        for method in sorted(route.methods or ())
        if method not in SAFE_METHODS or route.path in _ALSO
    ]


def commands() -> Iterator[str]:
    """Every command, with the group that it is in."""

    def within(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        if not hasattr(command, "commands"):
            yield " ".join(words)
            return
        for name, one in command.commands.items():
            yield from within(one, (*words, name))

    return within(typer.main.get_command(program()), ())


def unknown(app: FastAPI) -> list[str]:
    """What to do about each route and command that the walk does not know."""
    new = [(f"{method} {path}", "ROUTES") for method, path in writing_routes(app)
           if (method, path) not in ROUTES.keys() | ROUTES_WITHOUT.keys()]  # fmt: skip
    new += [(f"headwater {name}", "COMMANDS") for name in commands()
            if name not in COMMANDS.keys() | COMMANDS_WITHOUT.keys()]  # fmt: skip
    return [WHAT_TO_DO.format(what=what, table=table) for what, table in new]


@dataclass
class World:
    """A running Headwater, its owner, and short ways to make what a request or a command then changes."""

    running: Running
    folder: Path
    api: Client = field(init=False)
    page: Client = field(init=False)

    def __post_init__(self) -> None:
        self.api = self.running.program()
        self.page = browser_of(self.running, self.owner)

    @property
    def owner(self) -> Reader:
        return self.running.owner

    def write(self, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
        return self.running.parts.db.write_now(function, *given, **more)

    def form(self, path: str, client: Client | None = None, **fields: Any) -> Answer:
        return (client or self.page).post(path, urlencode(fields, doseq=True).encode(), Content_Type=FORM)

    def new(self) -> str:
        return f"new{next(_numbers)}"

    def source(self, kind: str = "https://{}.example/feed") -> int:
        return self.running.source(kind.format(self.new()))

    def post(self) -> int:
        [made] = self.running.publish(self.source(), a_post(self.new()))
        return made

    def story(self) -> int:
        """Two posts that are one story. Returns the first."""
        first, second = self.running.publish(self.source(), a_post(self.new()), a_post(self.new()))
        decided = [Decision(first, first, first, "first", 1.0, ""), Decision(second, first, first, "exact", 1.0, "")]
        self.write(story_store.save, decided, self.running.parts.now())
        return first

    def checkpoint(self) -> int:
        source_id, now = self.source(), self.running.parts.now()
        nothing: dict[str, Any] = dict.fromkeys(CheckpointRow._fields)
        times = {"started_at": now, "created_at": now, "updated_at": now}
        given = {"site": self.new(), "board": "/", "source_id": source_id, "status": "running", "current_page": 1}
        row = CheckpointRow(**{**nothing, **times, **given, "stats": {}, "seen_ids": []})
        self.write(checkpoints.save, row, now)
        return source_id

    def webhook(self) -> int:
        address = f"https://{self.new()}.example/hook"
        made: int = self.write(webhooks.add, self.owner, address, [], str.encode, self.running.parts.now()).webhook.id
        return made

    def delivery(self) -> tuple[int, int]:
        """A webhook and a delivery to it that failed."""
        webhook_id = self.webhook()

        def fail(conn: Connection) -> int:
            webhooks.ping(conn, self.owner, webhook_id, self.running.parts.now())
            mine = webhook_deliveries.c.webhook_id == webhook_id
            conn.execute(update(webhook_deliveries).where(mine).values(state="failed"))
            return conn.execute(select(webhook_deliveries.c.id).where(mine)).scalar_one()

        return webhook_id, self.write(fail)

    def token(self) -> tuple[int, str]:
        made = self.write(account.create_token, self.owner, self.new(), self.running.parts.now())
        return made.token.id, made.secret

    def session(self) -> tuple[int, str]:
        """The id and the secret of a session."""
        now = self.running.parts.now()
        secret = self.write(tokens.issue, self.owner, "session", "test", now)
        found = self.running.parts.db.read_now(account.every_session, self.owner, now)
        return found[0].id, secret

    def person(self) -> Reader:
        return a_person(self.running, self.new(), password=PASSWORD)

    def invitation(self) -> tuple[int, str]:
        """The id and the secret of an invitation."""
        email = f"{self.new()}@guest.example"
        made = self.write(people.invite, self.owner, email, "viewer", "", self.running.parts.now())
        return made.invitation.id, made.link.partition("token=")[2]

    def letter(self) -> int:
        """A dead letter."""
        db, now = self.running.parts.db, self.running.parts.now()
        key = f"source:{self.new()}"
        event = Event("post.stored", 1, key, '{"post_id": "nonsense"}', key)
        self.write(outbox.append, [event], now)
        for later in (0, 10):
            consume_all(db, search.CONSUMER, now + timedelta(seconds=later))
        last: int = db.read_now(lambda conn: conn.execute(text("SELECT max(id) FROM event_dlq")).scalar_one())
        return last

    def miner(self) -> int:
        made: int = self.api.post("/api/miners", FLEET).json()["id"]
        return made

    def trade(self) -> int:
        made: int = self.api.post("/api/treasury/trade", TRADE, Idempotency_Key=self.new()).json()["id"]
        return made

    def access_token(self) -> Answer:
        token_id, secret = self.token()
        given = {"grant_type": "client_credentials", "client_id": token_id, "client_secret": secret}
        return self.form("/oauth/token", self.running.stranger, **given, scope="posts:read offline_access")

    @contextmanager
    def at_provider(self, key: str = "") -> Iterator[Issuer]:
        """Has people sign in at a provider while the block runs: at the main one, or at one with a key."""
        parts = self.running.parts
        before = parts.settings
        with issuer() as at:
            main = {"oidc_issuer": at.address, "oidc_client_id": "headwater"}
            wanted = {"oidc_providers": f"{key} {at.address} headwater"} if key else main
            parts.settings = before.model_copy(update=wanted)
            parts.__dict__.pop("providers", None)
            yield at
        parts.settings = before
        parts.__dict__.pop("providers", None)

    def opml_form(self) -> Answer:
        head = b'--edge\r\nContent-Disposition: form-data; name="document"; filename="list.opml"\r\n\r\n'
        body = head + OPML % next(_numbers) + b"\r\n--edge--\r\n"
        return self.page.post("/sources/opml", body, Content_Type="multipart/form-data; boundary=edge")


def _join(w: World) -> Answer:
    return w.form("/invitation", w.running.stranger, token=w.invitation()[1], name=w.new(), password=PASSWORD)


def _join_by_provider(w: World, key: str = "") -> Answer:
    email = f"{w.new()}@guest.example"
    w.write(people.invite, w.owner, email, "viewer", "", w.running.parts.now())
    with w.at_provider(key) as at:
        return sent_to_provider(w.running, at, f"provider={key}", sub=w.new(), email=email).back()


def _choose_tenant(w: World) -> Answer:
    subject, tenants = w.new(), (w.new(), w.new())
    with w.at_provider() as at:
        for tenant in tenants:
            known = a_person(w.running, w.new(), tenant=tenant)
            w.write(people.link_identity, known, at.address, subject, w.running.parts.now())
        asked = sent_to_provider(w.running, at, sub=subject).back()
        chosen = Client(w.running.port, {"Cookie": asked.cookies[0].partition(";")[0]})
        return w.form("/login/tenant", chosen, tenant=tenants[1])


def _unlink(w: World) -> Answer:
    person, subject = w.person(), w.new()
    w.write(people.link_identity, person, "https://issuer.example", subject, w.running.parts.now())
    page = browser_of(w.running, person)
    return w.form("/account/identities/unlink", page, issuer="https://issuer.example", subject=subject)


def _unlink_by_api(w: World) -> Answer:
    person = w.person()
    w.write(people.link_identity, person, "https://issuer.example", w.new(), w.running.parts.now())
    client = program_of(w.running, person)
    [linked] = client.get("/api/account/identities").json()["items"]
    return client("DELETE", f"/api/account/identities/{linked['id']}")


def _sign_in(w: World) -> Answer:
    return w.form("/login", w.running.stranger, email=f"{w.person().name}@example.org", password=PASSWORD)


def _by_link(w: World) -> Answer:
    return w.running.stranger.get(w.running.login_link())


def _sign_out(w: World) -> Answer:
    secret = w.session()[1]
    browser = Client(w.running.port, {"Cookie": f"headwater_session={secret}", "X-Form-Key": tokens.form_key(secret)})
    return w.form("/logout", browser)


def _new_password(w: World) -> Answer:
    return program_of(w.running, w.person())(
        "PUT", "/api/account/password", {"current": PASSWORD, "new": PASSWORD + " 2"}
    )


def _new_password_form(w: World) -> Answer:
    return w.form("/account/password", browser_of(w.running, w.person()), current=PASSWORD, new=PASSWORD + " 2")


def _fold(w: World) -> Answer:
    return w.api.post("/api/deduplicate/batch", {"post_ids": [w.post(), w.post()]})


ROUTES: Mapping[tuple[str, str], Callable[[World], Answer]] = {
    ("POST", "/api/sources"): lambda w: w.api.post("/api/sources", {"address": f"https://{w.new()}.example/"}),
    ("POST", "/api/sources/refresh"): lambda w: [w.source(), w.api.post("/api/sources/refresh")][1],
    ("PATCH", "/api/sources/{source_id}"): lambda w: w.api.patch(f"/api/sources/{w.source()}", {"folder": "x"}),
    ("DELETE", "/api/sources/{source_id}"): lambda w: w.api("DELETE", f"/api/sources/{w.source()}"),
    ("POST", "/api/sources/{source_id}/refresh"): lambda w: w.api.post(f"/api/sources/{w.source()}/refresh"),
    ("POST", "/api/queue/schedule-feed"): lambda w: w.api.post("/api/queue/schedule-feed", {"feed_id": w.source()}),
    ("POST", "/api/opml"): lambda w: w.api.post("/api/opml", OPML % next(_numbers), Content_Type="text/x-opml"),
    ("POST", "/api/posts/mark"): lambda w: w.api.post("/api/posts/mark", {"ids": [w.post(), w.post()], "read": True}),
    ("PATCH", "/api/posts/{post_id}"): lambda w: w.api.patch(f"/api/posts/{w.post()}", {"starred": True}),
    ("POST", "/api/deduplicate/batch"): _fold,
    ("DELETE", "/api/deduplicate/groups/{group_id}"): lambda w: w.api("DELETE", f"/api/deduplicate/groups/{w.story()}"),
    ("POST", "/api/deduplicate/posts/{post_id}/apart"): lambda w: w.api.post(
        f"/api/deduplicate/posts/{w.story()}/apart"
    ),
    ("PUT", "/api/folding"): lambda w: w.api("PUT", "/api/folding", {"level": "repeats", "threshold": 0.5}),
    ("PUT", "/api/folding/runs"): lambda w: w.api("PUT", "/api/folding/runs", {"batch_size": 10}),
    ("PUT", "/api/folding/sources/{source_id}"): lambda w: w.api(
        "PUT", f"/api/folding/sources/{w.source()}", {"fold": False}
    ),
    ("DELETE", "/api/checkpoints/{source_id}"): lambda w: w.api("DELETE", f"/api/checkpoints/{w.checkpoint()}"),
    ("POST", "/api/dead-letters/replay"): lambda w: [w.letter(), w.api.post("/api/dead-letters/replay")][1],
    ("POST", "/api/dead-letters/{letter_id}/replay"): lambda w: w.api.post(f"/api/dead-letters/{w.letter()}/replay"),
    ("POST", "/api/dead-letters/{letter_id}/skip"): lambda w: w.api.post(f"/api/dead-letters/{w.letter()}/skip"),
    ("POST", "/api/webhooks"): lambda w: w.api.post("/api/webhooks", {"address": f"https://{w.new()}.example/"}),
    ("PATCH", "/api/webhooks/{webhook_id}"): lambda w: w.api.patch(f"/api/webhooks/{w.webhook()}", {"active": False}),
    ("DELETE", "/api/webhooks/{webhook_id}"): lambda w: w.api("DELETE", f"/api/webhooks/{w.webhook()}"),
    ("POST", "/api/webhooks/{webhook_id}/test"): lambda w: w.api.post(f"/api/webhooks/{w.webhook()}/test"),
    ("POST", "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay"): lambda w: w.api.post(
        "/api/webhooks/{}/deliveries/{}/replay".format(*w.delivery())
    ),
    ("PATCH", "/api/account"): lambda w: w.api.patch("/api/account", {"theme": "dark"}),
    ("PUT", "/api/account/password"): _new_password,
    ("POST", "/api/account/tokens"): lambda w: w.api.post("/api/account/tokens", {"name": w.new()}),
    ("DELETE", "/api/account/tokens/{token_id}"): lambda w: w.api("DELETE", f"/api/account/tokens/{w.token()[0]}"),
    ("DELETE", "/api/account/sessions"): lambda w: program_of(w.running, w.person())("DELETE", "/api/account/sessions"),
    ("DELETE", "/api/account/sessions/{session_id}"): lambda w: w.api(
        "DELETE", f"/api/account/sessions/{w.session()[0]}"
    ),
    ("PATCH", "/api/people/{user_id}"): lambda w: w.api.patch(f"/api/people/{w.person().user_id}", {"role": "viewer"}),
    ("DELETE", "/api/people/{user_id}"): lambda w: w.api("DELETE", f"/api/people/{w.person().user_id}"),
    ("POST", "/api/invitations"): lambda w: w.api.post("/api/invitations", {"email": f"{w.new()}@guest.example"}),
    ("DELETE", "/api/invitations/{invitation_id}"): lambda w: w.api("DELETE", f"/api/invitations/{w.invitation()[0]}"),
    ("DELETE", "/api/account/identities/{identity_id}"): _unlink_by_api,
    ("PATCH", "/api/tenants/{tenant_id}"): lambda w: w.api.patch(f"/api/tenants/{w.owner.tenant_id}", {"plan": None}),
    ("POST", "/api/tenants"): lambda w: w.api.post(
        "/api/tenants", {"name": w.new(), "owner_email": "ann@tenant.example"}
    ),
    ("POST", "/api/miners"): lambda w: w.api.post("/api/miners", FLEET),
    ("PATCH", "/api/miners/{miner_id}"): lambda w: w.api.patch(f"/api/miners/{w.miner()}", {"quantity": 7}),
    ("DELETE", "/api/miners/{miner_id}"): lambda w: w.api("DELETE", f"/api/miners/{w.miner()}"),
    ("POST", "/api/treasury/trade"): lambda w: w.api.post("/api/treasury/trade", TRADE, Idempotency_Key=w.new()),
    ("POST", "/api/treasury/trades/{trade_id}/correction"): lambda w: w.api.post(
        f"/api/treasury/trades/{w.trade()}/correction", {"reason": "entered twice"}, Idempotency_Key=w.new()
    ),
    ("POST", "/fleet/trades/{trade_id}/correction"): lambda w: w.form(
        f"/fleet/trades/{w.trade()}/correction", action="cancel", idempotency_key=w.new()
    ),
    ("POST", "/oauth/token"): World.access_token,
    ("GET", "/login"): _by_link,
    ("POST", "/login"): _sign_in,
    ("GET", "/login/provider"): _join_by_provider,
    ("GET", "/login/provider/{key}"): lambda w: _join_by_provider(w, "two"),
    ("POST", "/login/tenant"): _choose_tenant,
    ("POST", "/account/identities/unlink"): _unlink,
    ("POST", "/logout"): _sign_out,
    ("POST", "/invitation"): _join,
    ("POST", "/account"): lambda w: w.form("/account", name="owner", time_zone="Europe/Paris", theme="dark"),
    ("POST", "/account/password"): _new_password_form,
    ("POST", "/account/tokens"): lambda w: w.form("/account/tokens", name=w.new(), scopes="posts:read", days=""),
    ("POST", "/account/tokens/{token_id}/revoke"): lambda w: w.form(f"/account/tokens/{w.token()[0]}/revoke"),
    ("POST", "/account/sessions/{session_id}/end"): lambda w: w.form(f"/account/sessions/{w.session()[0]}/end"),
    ("POST", "/account/sessions/end"): lambda w: w.form("/account/sessions/end", browser_of(w.running, w.person())),
    ("POST", "/people/invite"): lambda w: w.form("/people/invite", email=f"{w.new()}@guest.example", role="viewer"),
    ("POST", "/people/invitations/{invitation_id}/withdraw"): lambda w: w.form(
        f"/people/invitations/{w.invitation()[0]}/withdraw"
    ),
    ("POST", "/people/{user_id}/role"): lambda w: w.form(f"/people/{w.person().user_id}/role", role="viewer"),
    ("POST", "/people/{user_id}/remove"): lambda w: w.form(f"/people/{w.person().user_id}/remove"),
    ("POST", "/posts/mark"): lambda w: w.form("/posts/mark", ids=[w.post(), w.post()]),
    ("POST", "/posts/{post_id}/mark"): lambda w: w.form(f"/posts/{w.post()}/mark", starred="1"),
    ("POST", "/stories/{story_id}/undo"): lambda w: w.form(f"/stories/{w.story()}/undo"),
    ("POST", "/posts/{post_id}/apart"): lambda w: w.form(f"/posts/{w.story()}/apart"),
    ("POST", "/folding"): lambda w: w.form("/folding", level="stories"),
    ("POST", "/sources"): lambda w: w.form("/sources", address=f"https://{w.new()}.example/"),
    ("POST", "/sources/refresh"): lambda w: [w.source(), w.form("/sources/refresh")][1],
    ("POST", "/sources/opml"): World.opml_form,
    ("POST", "/sources/starter"): lambda w: w.form("/sources/starter", groups=list(STARTER_GROUPS)[:1]),
    ("POST", "/sources/{source_id}/refresh"): lambda w: w.form(f"/sources/{w.source()}/refresh"),
    ("POST", "/sources/{source_id}/interval"): lambda w: w.form(f"/sources/{w.source()}/interval", minutes="60"),
    ("POST", "/sources/{source_id}/unfollow"): lambda w: w.form(f"/sources/{w.source()}/unfollow"),
    ("POST", "/sources/{source_id}/checkpoint/clear"): lambda w: w.form(f"/sources/{w.checkpoint()}/checkpoint/clear"),
    ("POST", "/webhooks"): lambda w: w.form("/webhooks", address=f"https://{w.new()}.example/"),
    ("POST", "/webhooks/{webhook_id}/test"): lambda w: w.form(f"/webhooks/{w.webhook()}/test"),
    ("POST", "/webhooks/{webhook_id}/active"): lambda w: w.form(f"/webhooks/{w.webhook()}/active", active="0"),
    ("POST", "/webhooks/{webhook_id}/remove"): lambda w: w.form(f"/webhooks/{w.webhook()}/remove"),
    ("POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/replay"): lambda w: w.form(
        "/webhooks/{}/deliveries/{}/replay".format(*w.delivery())
    ),
    ("POST", "/health/dead-letters/replay"): lambda w: [w.letter(), w.form("/health/dead-letters/replay")][1],
    ("POST", "/health/dead-letters/{letter_id}/replay"): lambda w: w.form(f"/health/dead-letters/{w.letter()}/replay"),
    ("POST", "/health/dead-letters/{letter_id}/skip"): lambda w: w.form(f"/health/dead-letters/{w.letter()}/skip"),
}
_SENDS_AWAY = "it sends the browser to the provider; coming back is what changes something"
# Method and path: why it leaves no row.
ROUTES_WITHOUT: Mapping[tuple[str, str], str] = {
    ("POST", "/login/provider"): _SENDS_AWAY,
    ("POST", "/account/identities"): _SENDS_AWAY,
    ("POST", "/api/telemetry"): "readings of machines come every minute, and are a record of their own",
}


def _pool_list(w: World) -> list[str]:
    file = w.folder / "pool.csv"
    file.write_text(f"source,tier,categories\nr/{w.new()},high,\n")
    return [str(file)]


def _machines(w: World) -> list[str]:
    file = w.folder / "machines.csv"
    file.write_text("model,quantity,electricity_usd_per_kwh\nAntminer S19 Pro,4,0.055\n")
    return ["machines", str(file)]


def _market_days(w: World) -> list[str]:
    file = w.folder / "days.csv"
    file.write_bytes(as_csv(mined(date(2026, 1, 1), 3)))
    return [str(file)]


def _opml_file(w: World) -> list[str]:
    file = w.folder / "list.opml"
    file.write_bytes(OPML % next(_numbers))
    return [str(file)]


def _an_event_that_had_no_effect(w: World) -> list[str]:
    w.post()
    w.running.parts.db.write_now(lambda conn: conn.execute(text("DELETE FROM consumer_inbox")))
    consume_all(w.running.parts.db, search.CONSUMER, w.running.parts.now())
    w.running.parts.db.write_now(lambda conn: conn.execute(text("DELETE FROM consumer_inbox")))
    return ["--start", "2000d", "--consumer", "search"]


def _lost_key(w: World) -> list[str]:
    (w.folder / "data" / "secret.key").unlink(missing_ok=True)
    return []


def _old_key(w: World) -> list[str]:
    (w.folder / "data").mkdir(exist_ok=True)
    file, old = KeyFile(w.folder / "data"), new_key()
    file.add(old)
    file.add(new_key())
    return [InstanceKey(old).id]


# The words after the command; what it reads from standard input comes after a line `<`.
COMMANDS: Mapping[str, Callable[[World], list[Any]]] = {
    "add": lambda w: [f"http://127.0.0.1:9/{w.new()}"],
    "remove": lambda w: [w.source()],
    "interval": lambda w: [w.source(), 60],
    "import": _opml_file,
    "crawl": lambda w: [],
    "run": lambda w: ["drop-tokens"],
    "comments": lambda w: [w.source("https://www.reddit.com/r/{}")],
    "replay": _an_event_that_had_no_effect,
    "token": lambda w: [],
    "login": lambda w: [],
    "checkpoints clear": lambda w: [w.checkpoint()],
    "images retry": lambda w: [],
    "dedup run": lambda w: ["--posts", w.post()],
    "dedup undo": lambda w: [w.story()],
    "market import": _market_days,
    "fleet add": lambda w: ["--model", "Antminer S19 Pro", "--usd-per-kwh", "0.055"],
    "fleet change": lambda w: [w.miner(), "--quantity", 7],
    "fleet remove": lambda w: [w.miner()],
    "fleet trade": lambda w: ["buy", "0.25", "17350.40"],
    "fleet correct": lambda w: [w.trade(), "buy", "0.2", "17350.40"],
    "fleet cancel": lambda w: [w.trade()],
    "fleet import": _machines,
    "pool import": _pool_list,
    "tiers apply": lambda w: [],
    "tiers pin": lambda w: [w.source(), "high"],
    "people invite": lambda w: [f"{w.new()}@guest.example"],
    "people role": lambda w: [w.person().user_id, "viewer"],
    "people email": lambda w: [w.person().user_id, f"{w.new()}@example.org"],
    "people password": lambda w: [w.person().user_id, "<", PASSWORD],
    "people remove": lambda w: [w.person().user_id],
    "people login": lambda w: [w.person().user_id],
    "people identity": lambda w: [w.person().user_id, w.new()],
    "people tenant": lambda w: [w.new(), "--owner", "ann@tenant.example"],
    "people plan": lambda w: ["default"],
    "tokens drop-keys": lambda w: [],
    "tokens create": lambda w: [w.new()],
    "tokens revoke": lambda w: [w.token()[0]],
    "oidc secret": lambda w: ["<", w.new()],
    "oidc forget": lambda w: [],
    "keys rotate": lambda w: [],
    "keys forget": _old_key,
    "keys create": _lost_key,
    "x token": lambda w: ["<", "A" * 60],
    "x forget": lambda w: [],
    "webhooks add": lambda w: [f"https://{w.new()}.example/hook"],
    "webhooks remove": lambda w: [w.webhook()],
    "webhooks test": lambda w: [w.webhook()],
    "webhooks replay": lambda w: list(w.delivery()),
    "dlq replay": lambda w: [w.letter()],
    "dlq resolve": lambda w: [w.letter()],
}
_READS = (
    "sources", "export", "try", "stats", "stream", "search", "post", "replies", "config", "doctor", "backup",
    "trace", "checkpoints list",
    "checkpoints show", "images count", "images failed", "dedup show", "dedup leads", "dedup explain", "dedup sample",
    "dedup evaluate", "pool export", "pool list", "tiers show", "people list", "people audit", "people tenants",
    "tokens list", "x status", "webhooks list", "webhooks show", "dlq list", "dlq show", "kafka check", "forecast show",
    "forecast evaluate", "market show", "fleet show",
    "oidc status", "keys list", "fleet models", "fleet machines", "fleet trades", "fleet export",
)  # fmt: skip
COMMANDS_WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(_READS, "it only reads"),
    "up": "it serves; the login link that it prints is recorded as that of `login` is",
    "demo": "its store is gone when it ends",
    "restore": "a test of its own",
    "kafka setup": "it needs Kafka, and records before it begins",
    "db upgrade": "a test of its own",
    "db downgrade": "it deletes what newer migrations have stored, and the log may be a part of that",
    "db roles": "a test of its own",
}
