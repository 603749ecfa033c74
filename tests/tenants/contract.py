"""What the contract of tenants is about: every function that takes a reader, and arguments for it.

Functions are found by themselves. Their arguments are made by the names of their parameters: `VALUES` has a value for
each, and `IDS` those that name something of a tenant. A function with a parameter that neither knows fails the
contract, and says what to declare.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Connection

import headwater
from headwater.app.account import SessionBrowser
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.fleet.treasury import NewTrade, WantedCorrection
from headwater.app.groups import FoldConfiguration, GroupFilter
from headwater.follow.opml import Outline
from headwater.follow.pool import Candidate
from headwater.model import Reader
from headwater.store.fleet.miners import MinerFacts
from headwater.store.fleet.portfolios import Saved
from headwater.store.fleet.telemetry import MachineReading
from headwater.store.fleet.treasury import TradeFacts
from headwater.store.people.webhooks import ChangedWebhook
from headwater.store.posts.stream import Filter, Marks
from headwater.store.sources import WantedSource
from headwater.store.sources.limits import Budget
from headwater.store.stories.folded import FoldSettings
from support.posts import NOON

PACKAGES = ("store", "accounts", "follow", "app")
NEW = "https://new.example/feed"


class Ids(NamedTuple):
    """What a tenant has. Of the other tenant it is what only that one may see."""

    user_id: int
    token_id: int
    invitation_id: int
    source_id: int
    post_id: int
    webhook_id: int
    delivery_id: int
    miner_id: int
    trade_id: int
    task_id: str
    fold_task_id: str
    content_hash: str
    identity_id: str
    address: str


def functions() -> Iterator[Callable[..., Any]]:
    """Every public function that takes a connection and, as `reader`, whoever asks."""
    for package in PACKAGES:
        root = importlib.import_module(f"headwater.{package}")
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if ".migrations" not in found.name:
                yield from _in_module(importlib.import_module(found.name))
        yield from _in_module(root)


def _in_module(module: Any) -> Iterator[Callable[..., Any]]:
    for name, function in vars(module).items():
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
            hints = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
            kinds = [_kind(module, hint) for hint in hints.values()]
            if hints.get("reader") and Reader in kinds and Connection in kinds:
                yield function


def _kind(module: Any, hint: Any) -> Any:
    return vars(module).get(hint) if isinstance(hint, str) else hint


def label(function: Callable[..., Any]) -> str:
    return f"{function.__module__.removeprefix(headwater.__name__ + '.')}.{function.__name__}"


# Values of parameters that are nobody's, by name; where one name has several meanings, by the function and the name.
VALUES: Mapping[str, Any] = {
    "now": NOON + timedelta(hours=1),
    "limit": 50,
    "at_once": False,
    "email": "somebody@new.example",
    "role": "member",
    "browser": SessionBrowser(),
    "password": "a long password of a test",
    "new_password": "a long password of a test",
    "password_hash": "a hash",
    "scopes": ["posts:read"],
    "keep": None,
    "time_zone": "Europe/Berlin",
    "theme": "dark",
    "language": "de",
    "issuer": "https://issuer.example",
    "subject": "somebody",
    "app.webhooks.change.wanted": ChangedWebhook(active=False),
    "providers": frozenset(),
    "app.health.activity.dead_letters": 0,
    "store.people.accounts.invite.expires_at": NOON + timedelta(days=1),
    "after": None,
    "before": None,
    "words": "Title",
    "kind": "rss",
    "kinds": [],
    "name": "of a test",
    "home": "https://headwater.example",
    "host": "new.example",
    "secret": b"sealed",
    "seal": str.encode,
    "token_hash": b"hash of a test",
    "expires_at": None,
    "tier": "high",
    "seconds": 600,
    "minutes": 10,
    "usual": timedelta(minutes=30),
    "fold": False,
    "lease_for": timedelta(minutes=1),
    "level": "repeats",
    "threshold": 0.5,
    "at": None,
    "read": True,
    "starred": True,
    "marks": Marks(read=True, starred=True, replies_until=list(range(1, 20))),
    "changes": {"title": "Mine", "folder": "Mine"},
    "hours": 24,
    "days": 7,
    "requests_for": timedelta(hours=1),
    "letters": 10,
    "budget": Budget("test", 10, timedelta(minutes=1)),
    "most": 0,
    "candidates": [Candidate("r/new", "high", ())],
    "outlines": [Outline(NEW, "New")],
    "store.sources.add_all.wanted": [WantedSource("rss", NEW, "new.example")],
    "store.sources.count_new.wanted": [WantedSource("rss", NEW, "new.example")],
    "follow.add.check_room.wanted": [WantedSource("rss", NEW, "new.example")],
    "follow.add.follow_some.wanted": [WantedSource("rss", NEW, "new.example")],
    "store.posts.stream.page.wanted": Filter(),
    "store.posts.stream.posts_page.wanted": Filter(),
    "app.posts.read_stream.wanted": Filter(),
    "app.posts.stream_view.wanted": Filter(),
    "app.posts.stream_view.stories": [],
    "app.posts.with_signals.stories": [],
    "store.posts.stream.with_signals.stories": [],
    "app.posts.page.wanted": Filter(),
    "store.stories.folded.save_settings.wanted": FoldSettings("repeats", 0.5),
    "store.stories.folded.entries.wanted": FoldSettings(),
    "store.posts.threads.standing_at.wanted": FoldSettings(),
    "store.stories.runs.save_configuration.chosen": {"batch_size": 10},
    "app.groups.choose_configuration.chosen": FoldConfiguration(batch_size=10),
    "app.groups.page.wanted": GroupFilter(),
    "app.pool.read_comments.wanted": True,
    "app.crawling.progress.minutes": 10,
    "store.stories.runs.begin.task_id": "a new run",
    "store.fleet.miners.add.facts": MinerFacts(None, "", "Hall 1", "", 2, *[Decimal(3)] * 3, None),
    "store.fleet.treasury.add.facts": TradeFacts("buy", 5, Decimal(7), NOON, ""),
    "store.fleet.treasury.add.idempotency_key": "another",
    "app.fleet.miners.add.wanted": NewMiner(model="Antminer S21", electricity_usd_per_kwh=Decimal("0.05")),
    "app.fleet.miners.change.wanted": MinerChange(quantity=9),
    "app.fleet.treasury.trade.wanted": NewTrade(side="sell", btc=Decimal("0.1"), usd=Decimal(7000)),
    "app.fleet.treasury.correct.wanted": WantedCorrection(reason="never was"),
    "method": "fifo",
    "store.fleet.portfolios.save.saved": Saved(Decimal(1), None, Decimal(2), {}),
    "store.fleet.portfolios.save.wanted": 1,
    "app.fleet.treasury.enter.wanted": [(NewTrade(side="buy", btc=Decimal("0.1"), usd=Decimal(7000)), "one more")],
    "app.fleet.tables.import_machines.document": b"model,electricity_usd_per_kwh\r\nAntminer S21,0.05\r\n",
    "app.fleet.tables.import_trades.document": b"side,btc,usd,traded_at\r\nbuy,1,2,2024-01-01T00:00:00Z\r\n",
    "since": NOON - timedelta(days=1),
    "until": NOON + timedelta(days=1),
    "width": "1h",
    "kept_for": timedelta(days=35),
}
# Parameters that name something which may be another tenant's.
IDS: Mapping[str, Callable[[Ids], Any]] = {
    "source_id": lambda ids: ids.source_id,
    "source_ids": lambda ids: [ids.source_id],
    "post_id": lambda ids: ids.post_id,
    "first_id": lambda ids: ids.post_id,
    "post_ids": lambda ids: [ids.post_id],
    "ids": lambda ids: [ids.post_id],
    "story_id": lambda ids: ids.post_id,
    "some_id": lambda ids: ids.post_id,
    "one": lambda ids: ids.post_id,
    "other": lambda ids: ids.post_id,
    "user_id": lambda ids: ids.user_id,
    "who": lambda ids: str(ids.user_id),
    "invitation_id": lambda ids: ids.invitation_id,
    "token_id": lambda ids: ids.token_id,
    "session_id": lambda ids: ids.token_id,
    "webhook_id": lambda ids: ids.webhook_id,
    "delivery_id": lambda ids: ids.delivery_id,
    "miner_id": lambda ids: ids.miner_id,
    "trade_id": lambda ids: ids.trade_id,
    "store.fleet.treasury.correction_by_key.idempotency_key": lambda ids: f"correction of {ids.user_id}",
    "app.fleet.treasury.correct.idempotency_key": lambda ids: f"correction of {ids.user_id}",
    "miner_ids": lambda ids: [ids.miner_id],
    "app.fleet.telemetry.take.batch": lambda ids: [MachineReading(ids.miner_id, NOON, 3.0)],
    "store.fleet.miners.page.after": lambda _: 0,
    "store.fleet.treasury.by_key.idempotency_key": lambda ids: f"trade of {ids.user_id}",
    "app.fleet.treasury.trade.idempotency_key": lambda ids: f"trade of {ids.user_id}",
    "task_id": lambda ids: ids.task_id,
    "content_hash": lambda ids: ids.content_hash,
    "identity_id": lambda ids: ids.identity_id,
    "address": lambda ids: ids.address,
    "names": lambda ids: [str(ids.source_id)],
    "store.stories.runs.find.task_id": lambda ids: ids.fold_task_id,
    "app.groups.task.task_id": lambda ids: ids.fold_task_id,
    "store.sources.find.name": lambda ids: ids.address,
    "app.sources.named.name": lambda ids: ids.address,
    "app.pool.pin_tier.name": lambda ids: ids.address,
    "app.pool.read_comments.name": lambda ids: ids.address,
    "app.refresh.community.name": lambda ids: ids.address,
}
# Following is open to everybody: the address of another's source is no secret that following could tell.
NEW_ADDRESS = ("store.sources.add", "follow.add.follow", "app.sources.follow_new", "app.sources.follow_at",
               "app.webhooks.add", "store.people.webhooks.add", "app.market.watch")  # fmt: skip
# What takes something that was found for this reader before, by a function that the contract covers.
FOUND_BEFORE = {
    "store.people.webhooks.ping": "a webhook",
    "store.fleet.miners.change": "machines",
    "store.fleet.treasury.call_off": "a trade",
    "store.fleet.telemetry.save": "machines",
    "store.stories.folded.as_it_was": "a story",
    "store.stories.partings.undo": "a story",
    "store.stories.partings.separate": "a story",
}
UNCHANGED = frozenset({"conn", "reader"})


class Undeclared(Exception):
    """A parameter for which the contract has no value."""


def arguments(function: Callable[..., Any], ids: Ids) -> dict[str, Any]:
    name = label(function)
    given: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        where = f"{name}.{parameter.name}"
        if parameter.name in UNCHANGED or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.name == "address" and name in NEW_ADDRESS:
            given["address"] = NEW
        elif where in VALUES or where in IDS:
            given[parameter.name] = VALUES[where] if where in VALUES else IDS[where](ids)
        elif parameter.name in IDS:
            given[parameter.name] = IDS[parameter.name](ids)
        elif parameter.name in VALUES and parameter.default is inspect.Parameter.empty:
            given[parameter.name] = VALUES[parameter.name]
        elif parameter.name in ("read", "starred"):
            given[parameter.name] = True
        elif parameter.default is inspect.Parameter.empty:
            hint = typing.get_type_hints(function).get(parameter.name)
            raise Undeclared(
                f"{name} has a parameter {parameter.name}: {hint}. Declare it in tests/tenants/contract.py: in IDS if "
                "it names something that may be another tenant's, in VALUES otherwise."
            )
    return given
