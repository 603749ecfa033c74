"""`headwater x`: the token for X's API, and what of the month is used."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from headwater import wire
from headwater.access.x import SECRET, keep_token, token_from
from headwater.cli.output import ago, json_line, say
from headwater.cli.session import opened
from headwater.errors import BadInput
from headwater.store.people import secrets

app = typer.Typer(help="The token for X's API, and what of the month is used.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]


@app.command("token")
def set_token(as_json: Json = False) -> None:
    """Keep the token for X's API, encrypted. It is asked for, or read from standard input."""
    typed = typer.prompt("Bearer token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    token = token_from(typed)
    with opened() as (parts, _):
        if parts.settings.x_bearer_token:
            raise BadInput("HEADWATER_X_BEARER_TOKEN is set, and counts before a token that is kept. Unset it first.")
        waiting = parts.db.write_now(keep_token, parts.seal(token), parts.now())
    json_line({"kept": True, "sources_due": waiting}) if as_json else say(f"Kept. {waiting} sources are due now.")


@app.command("forget")
def forget_token(as_json: Json = False) -> None:
    """Forget the token that was kept. X is not asked any more until there is another."""
    with opened() as (parts, _):
        forgotten = parts.db.write_now(secrets.delete, SECRET)
    if as_json:
        json_line({"forgotten": forgotten})
    else:
        say("Forgotten." if forgotten else "There was none.")


@app.command("status")
def status(as_json: Json = False) -> None:
    """Whether there is a token, and what of this month's requests and posts is used."""
    with opened() as (parts, _):
        state, now = asyncio.run(wire.x_state(parts)), parts.now()
    if as_json:
        json_line({"token": not state.problem, "problem": state.problem or None, "requests": state.used.requests,
                   "most_requests": state.allowance.requests, "posts": state.used.posts,
                   "most_posts": state.allowance.posts, "month_ends": state.month_ends,
                   "sources": state.sources})  # fmt: skip
        return
    say(state.words[:1].upper() + state.words[1:].removesuffix(".") + ".")
    say(f"{state.sources} sources; the next month begins {ago(state.month_ends, now)}.")
