"""`headwater kafka`: puts Kafka, Debezium and PostgreSQL together for the log, and looks whether they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import EXIT_FAILED, json_line, say
from headwater.cli.session import opened
from headwater.errors import BadSetting
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.events.kafka.setup import Cluster

app = typer.Typer(help="The log on Kafka.", no_args_is_help=True)


@app.command("setup")
def set_up() -> None:
    """Make the topics, the publication and the connector that are missing. May be run again at any time."""
    with opened() as (parts, _):
        cluster = _cluster(parts)
        from headwater.events.kafka.setup import set_up as make

        for line in asyncio.run(make(cluster, parts.db, _database_url(parts), _retention(parts))):
            say(line)


@app.command("check")
def check(as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False) -> None:
    """Look whether events get from the database to Kafka, and say what to do where they do not."""
    with opened() as (parts, _):
        cluster = _cluster(parts)
        from headwater.events.kafka.check import check as look

        findings = asyncio.run(look(cluster, parts.db, _database_url(parts), _retention(parts)))
    for finding in findings:
        if as_json:
            json_line(finding._asdict())
        else:
            say(f"{'ok ' if finding.ok else 'BAD'}  {finding.what}: {finding.detail}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _cluster(parts: Parts) -> Cluster:
    try:
        from headwater.events.kafka.setup import Cluster
    except ImportError as error:
        raise BadSetting("Kafka's client is not installed: pip install 'headwater[kafka]'") from error
    settings = parts.settings
    if parts.db.is_sqlite:
        raise BadSetting("Kafka needs PostgreSQL: set HEADWATER_DATABASE_URL to postgresql://…")
    if not settings.kafka_bootstrap_servers:
        raise BadSetting("Set HEADWATER_KAFKA_BOOTSTRAP_SERVERS to Kafka's address, such as kafka.example:9092.")
    return Cluster(settings.kafka_bootstrap_servers, settings.kafka_connect_url)


def _database_url(parts: Parts) -> str:
    given = parts.settings.kafka_database_url
    return given.get_secret_value() if given else parts.settings.store_url()


def _retention(parts: Parts) -> timedelta:
    return timedelta(days=parts.settings.event_history_days)
