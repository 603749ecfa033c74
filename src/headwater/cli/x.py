"""`headwater x`: the token for X's API, and how much of the month's budget is used."""

from __future__ import annotations

import sys
from functools import partial

import typer

from headwater import wire
from headwater.app import instance
from headwater.cli.output import ago, json_line, say
from headwater.cli.session import Json, opened, run_async
from headwater.errors import BadInput

app = typer.Typer(help="The token for X's API, and how much of the month's budget is used.", no_args_is_help=True)


@app.command("token")
def set_token(as_json: Json = False) -> None:
    """Store the token for X's API, encrypted. It is prompted for, or read from standard input."""
    typed = typer.prompt("Bearer token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    token = instance.check_x_token(typed)
    with opened() as (parts, _):
        if parts.settings.x_bearer_token:
            raise BadInput("HEADWATER_X_BEARER_TOKEN is set and overrides a stored token. Unset it first.")
        waiting = parts.db.write_now(instance.store_x_token, parts.seal(token), parts.now())
    json_line({"kept": True, "sources_due": waiting}) if as_json else say(f"Stored. {waiting} sources are due now.")


@app.command("forget")
def forget_token(as_json: Json = False) -> None:
    """Delete the stored token. X is not asked any more until there is another."""
    with opened() as (parts, _):
        forgotten = parts.db.write_now(instance.forget_x_token)
    if as_json:
        json_line({"forgotten": forgotten})
    else:
        say("Deleted." if forgotten else "There was none.")


@app.command("status")
def status(as_json: Json = False) -> None:
    """Show whether there is a token, and how much of this month's requests and posts is used."""
    with opened() as (parts, _):
        now, allowance = parts.now(), wire.x_allowance(parts.settings)
        state = run_async(instance.x_state(parts.db, partial(wire.x_token, parts), allowance, now))
    if as_json:
        json_line({"token": not state.problem, "problem": state.problem or None, "requests": state.used.requests,
                   "most_requests": state.allowance.requests, "posts": state.used.posts,
                   "most_posts": state.allowance.posts, "month_ends": state.month_ends,
                   "sources": state.sources})  # fmt: skip
        return
    say(state.words[:1].upper() + state.words[1:].removesuffix(".") + ".")
    say(f"{state.sources} sources; the next month begins {ago(state.month_ends, now)}.")
