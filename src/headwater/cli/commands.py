"""All commands, by subject. Each reads its arguments, calls a use case of `app`, and says what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from headwater import __version__
from headwater.cli.session import current_command, say

COMMANDS = {
    "up": "up.up",
    "demo": "up.demo",
    "add": "sources.add",
    "remove": "sources.remove",
    "interval": "sources.set_interval",
    "sources": "sources.list_sources",
    "import": "sources.import_opml",
    "export": "sources.export",
    "try": "sources.try_source",
    "crawl": "crawl.crawl",
    "run": "crawl.run_job",
    "stats": "crawl.show_statistics",
    "stream": "posts.show_stream",
    "search": "posts.search",
    "post": "posts.show_post",
    "replies": "posts.show_replies",
    "comments": "pool.read_comments",
    "replay": "events.replay_log",
    "trace": "events.show_trace",
    "config": "instance.show_config",
    "token": "instance.token",
    "login": "instance.login",
    "doctor": "instance.run_doctor",
    "backup": "instance.make_backup",
    "restore": "instance.restore_backup",
}
GROUPS = {
    "checkpoints": "crawl.checkpoints",
    "images": "posts.images",
    "dedup": "stories.app",
    "pool": "pool.app",
    "tiers": "pool.tiers",
    "people": "people.app",
    "tokens": "people.tokens",
    "oidc": "people.oidc",
    "keys": "instance.keys",
    "x": "instance.x",
    "webhooks": "events.webhook_commands",
    "dlq": "events.dead_letters",
    "kafka": "events.kafka",
    "market": "forecast.market_app",
    "forecast": "forecast.app",
    "fleet": "fleet.app",
    "db": "instance.schema",
}


def _version(wanted: bool) -> None:
    if wanted:
        say(f"headwater {__version__}")
        raise typer.Exit


def _note_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    current_command.set(context.invoked_subcommand or "")


@cache
def program(only: str | None = None) -> typer.Typer:
    """Returns the program with all commands, or with only one of them: then nothing is loaded for the others."""
    app = typer.Typer(
        name="headwater",
        help="Follow everything; read each story once.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_note_command)
    for name, place in COMMANDS.items():
        if only in (name, None):
            app.command(name)(_at(place))
    for name, place in GROUPS.items():
        if only in (name, None):
            app.add_typer(_at(place), name=name)
    return app


def program_for(words: Sequence[str]) -> typer.Typer:
    """Returns the program with the command that these words begin with. If they begin with none, it has all."""
    return program(words[0] if words and words[0] in (*COMMANDS, *GROUPS) else None)


def _at(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(import_module(f"headwater.cli.{module}"), name)
