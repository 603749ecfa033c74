"""Every setting: its name, default and meaning, in one table. Only `wire` reads it; everyone else takes arguments.

A setting `check_interval_seconds` is set by HEADWATER_CHECK_INTERVAL_SECONDS, or read from the file that
HEADWATER_CHECK_INTERVAL_SECONDS_FILE names (for secrets). Some have a second name that other tools use. What the
environment does not set can be in a TOML file: `check_interval_seconds = 900`, `secret_key_file = "/run/secrets/key"`.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from headwater import __version__
from headwater.errors import BadSetting

PREFIX = "HEADWATER_"
CONFIG = "HEADWATER_CONFIG"
CONFIG_FILES = (Path("headwater.toml"), Path("/etc/headwater/headwater.toml"))
NOT_SETTINGS = ("HEADWATER_TEST_", "HEADWATER_BENCH_")


def _setting(default: Any, meaning: str, *, also: str | None = None, **limits: Any) -> Any:
    return Field(default, description=meaning, json_schema_extra={"also": also}, **limits)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="forbid", frozen=True, validate_default=True)

    data_dir: Path = _setting(Path("data"), "Folder for everything Headwater keeps on disk.")
    database_url: SecretStr | None = _setting(
        None,
        "Where the store is: sqlite:///path or postgresql://user@host/name. Default: a file in the data folder.",
    )
    migration_database_url: SecretStr | None = _setting(
        None,
        "PostgreSQL: the same database as the role that owns the tables, which only migrations use. The role in "
        "HEADWATER_DATABASE_URL then owns nothing, and row level security binds it. `headwater db roles` sets it up.",
    )
    secret_key: SecretStr | None = _setting(
        None,
        "What encrypts passwords of sources at rest, and makes the secrets of hubs. Processes that share a database "
        "have to share it. Default: a key file in the data folder, made when needed.",
    )
    secret_key_command: str | None = _setting(
        None, "A command that prints that key, such as one that asks a KMS. It has 30 seconds, and no shell."
    )
    other_secret_keys: SecretStr | None = _setting(
        None, "Other keys, separated by commas, that only decrypt. `headwater keys list` shows which are needed."
    )
    host: str = _setting("127.0.0.1", "Address the web server listens on.")
    port: int = _setting(8080, "Port the web server listens on.", ge=1, le=65535)
    tls_certificate: Path | None = _setting(
        None, "A file with this server's certificate and its chain (PEM). It then speaks TLS 1.3 and nothing else."
    )
    tls_key: Path | None = _setting(None, "The file with the private key of that certificate (PEM, not encrypted).")
    max_connections: int = _setting(
        1000,
        "Connections to the web server at once. At more, the one that has sent no request for longest is closed.",
        ge=1,
        le=100_000,
    )
    request_seconds: float = _setting(
        15.0, "How long a client may take to send the head of a request; its body may take 8 times that.", gt=0, le=600
    )
    public_url: str | None = _setting(
        None, "Address under which others reach this instance, such as https://news.example."
    )
    trusted_proxies: str = _setting(
        "",
        "Addresses or networks of proxies before this server, such as 127.0.0.1,10.0.0.0/8. Only what they say in "
        "X-Forwarded-For about the address of a client is believed.",
    )
    rate_limit: int = _setting(6000, "Requests of one person in a minute, with whichever token or browser.", ge=1)
    rate_limits: str = _setting(
        "", "Lower limits for what needs a scope, in a minute, such as stories:write=60,sources=300 (all of sources)."
    )
    plans: str = _setting(
        "", "Plans with limits of their own, such as free requests=120 stories=10, team requests=3000. First: default."
    )
    jwt_issuer: str | None = _setting(
        None, "Another issuer whose access tokens (JWTs) are taken: exactly what its tokens have as `iss`."
    )
    jwt_keys_url: str | None = _setting(None, "Where the public keys of that issuer are (a JWK set).")
    jwt_audience: str | None = _setting(
        None, "What its tokens must have as `aud`. Default: the address of this instance."
    )
    oidc_issuer: str | None = _setting(
        None, "An OpenID Connect provider at which people sign in: its issuer, such as https://login.example."
    )
    oidc_client_id: str | None = _setting(None, "The id of this Headwater at that provider.")
    oidc_client_secret: SecretStr | None = _setting(
        None, "Its secret there. Default: the one that `headwater oidc secret` stored; without one, PKCE has to do."
    )
    oidc_providers: str = _setting("", "More providers: `key issuer client-id name` of each, with commas between them.")
    oidc_name: str | None = _setting(None, "What the button on the sign-in page calls the provider. Default: its host.")
    oidc_scopes: str = _setting("openid email profile", "What the provider is asked for.")
    oidc_join_tenant: str | None = _setting(
        None, "The tenant that people join who come from the provider uninvited. Default: nobody may do so."
    )
    oidc_join_role: Literal["viewer", "member", "operator"] = _setting("member", "Their role.")
    oidc_domains: str = _setting(
        "", "Domains of the verified e-mail addresses with which people may join so, such as example.org. *: all."
    )
    redis_url: SecretStr | None = _setting(
        None,
        "Redis, where several processes count requests together, cache pages and show who visits what, such as "
        "redis://127.0.0.1:6379/0. Default: the broker, if that is Redis; else none.",
        also="REDIS_URL",
    )
    cache_mb: int = _setting(
        16, "Memory for what takes long to compute, such as first pages of the stream. Not used with Redis.", ge=0
    )
    allow_private_networks: str = _setting(
        "false",
        "Whether sources on private, loopback and link-local addresses may be fetched: true, false, or networks "
        "such as 10.1.0.0/16,127.0.0.0/8.",
    )
    market_url: str | None = _setting(
        None,
        "Where daily figures of the Bitcoin market are: CSV or JSON with date, price_usd, difficulty, height_eod, "
        "blocks and fees_btc. Default: nowhere; `headwater market import` reads a file.",
    )
    telemetry_days: int = _setting(
        35, "How long single readings of machines are kept; also how late one may come.", ge=2, le=3660
    )
    telemetry_hours_days: int = _setting(
        800, "How long what readings come to by the hour is kept. By the day it is kept for good.", ge=2, le=36600
    )
    user_agent: str = _setting(f"Headwater/{__version__}", "How we name ourselves to the servers we visit.")
    proxy_url: SecretStr | None = _setting(
        None, "Proxy for all requests to sources, such as http://proxy.example:3128."
    )
    check_interval_seconds: int = _setting(
        1800, "How often a source is visited, unless it, its tier or its readers say otherwise.", ge=60, le=604800
    )
    max_sources: int = _setting(20000, "How many sources one reader may follow. 0: any number.", ge=0)
    post_versions: int = _setting(
        10,
        "How many earlier texts of a post are kept. Of more, those that were shown for the shortest time are deleted. "
        "0: all are kept.",
        ge=0,
    )
    max_concurrency: int = _setting(64, "Visits under way at once.", ge=1, le=2000)
    host_gap_seconds: float = _setting(
        1.0, "Least time between two requests to one host, over all processes.", ge=0, le=3600
    )
    lease_seconds: int = _setting(180, "How long a visit may hold a source; longer than visit_seconds.", ge=10, le=3600)
    visit_seconds: int = _setting(120, "How long one visit may take in all.", ge=5, le=3000)
    fetch_seconds: float = _setting(30.0, "How long one answer may take, redirects included.", ge=1, le=600)
    fetch_max_bytes: int = _setting(10 * 1024 * 1024, "The largest answer that is read, after decompression.", ge=1024)
    parser_processes: int = _setting(
        2, "Processes that parse what was fetched.", also="HEADWATER_READER_PROCESSES", ge=1, le=64
    )
    parser_seconds: float = _setting(
        10.0, "CPU time after which parsing one document is stopped.", also="HEADWATER_READER_SECONDS", ge=0.1, le=600
    )
    parser_memory_mb: int = _setting(
        512, "Memory that a parser process may use, in MB.", also="HEADWATER_READER_MEMORY_MB", ge=128
    )
    browser_sandbox: Literal["on", "off"] = _setting(
        "on", "Whether Chromium needs its sandbox. As root it has none: on refuses to start it, off starts it anyway."
    )
    browser_memory_mb: int = _setting(
        1024, "Memory that Chromium may use with all its processes, in MB. A page that takes more is given up.", ge=256
    )
    fold: Literal["off", "repeats", "stories"] = _setting(
        "stories", "What is folded: nothing, repeats of a text, or all posts about one event. Readers may choose less."
    )
    fold_embeddings: bool = _setting(
        False, "Whether the meaning of words helps to find stories (needs headwater[embeddings]; half the speed)."
    )
    fold_embedding_model: Literal["wordllama"] = _setting("wordllama", "Which model knows the meaning of words.")
    fold_threshold: float | None = _setting(
        None,
        "Fold only what scores at least this. Default: 0; in runs that name posts by `tweet_ids`, 0.85.",
        ge=0,
        le=1,
    )
    fold_exact: bool = _setting(True, "Whether exact repeats are folded.")
    fold_similar: bool = _setting(True, "Whether similar posts and stories are folded.")
    fold_method: Literal["auto", "manual", "hybrid"] = _setting(
        "auto",
        "auto folds what arrives; hybrid folds exact repeats alone; manual folds nothing until somebody asks for it.",
    )
    fold_batch_size: int = _setting(1000, "How many posts are decided in one transaction.", ge=1, le=10_000)
    fold_window_hours: int = _setting(72, "How far apart in time the posts of one story may be.", ge=1, le=720)
    fold_run_seconds: float = _setting(
        30.0,
        "How long a run that somebody asks for may look for stories; then it finds exact repeats alone and says so.",
        ge=0,
        le=3600,
    )
    transaction_seconds: float = _setting(
        30.0,
        "How long a process that stopped answering may hold a transaction open (PostgreSQL); then its work is undone.",
        ge=1,
        le=3600,
    )
    lock_seconds: float = _setting(
        5.0, "How long a statement waits for a lock that somebody else holds (PostgreSQL).", ge=0.1, le=600
    )
    statement_seconds: float = _setting(
        60.0, "How long one statement may take (PostgreSQL). Migrations are not limited.", ge=0.1, le=3600
    )
    kafka_bootstrap_servers: str | None = _setting(
        None,
        "Kafka's address, host:port. With it, consumers follow the topics that Debezium fills instead of the table.",
        also="KAFKA_BOOTSTRAP_SERVERS",
    )
    kafka_connect_url: str = _setting("http://127.0.0.1:8083", "Where Kafka Connect listens.", also="KAFKA_CONNECT_URL")
    kafka_database_url: SecretStr | None = _setting(
        None, "How Kafka Connect reaches PostgreSQL, where that differs from HEADWATER_DATABASE_URL."
    )
    celery_broker_url: SecretStr | None = _setting(
        None,
        "The broker that carries work to Celery workers, such as redis://host:6379/1. With it, `headwater up` leaves "
        "visits and periodic work to them.",
        also="CELERY_BROKER_URL",
    )
    celery_result_backend: SecretStr | None = _setting(
        None,
        "Where Celery keeps results, for 24 hours. Default: the broker, if that is Redis; else nowhere.",
        also="CELERY_RESULT_BACKEND",
    )
    celery_worker_count: int | None = _setting(
        None,
        "Processes of one Celery worker. Each has visits under way as `headwater up` has. Default: one for each "
        "processor.",
        also="CELERY_WORKER_COUNT",
        ge=1,
        le=256,
    )
    celery_queue_names: str | None = _setting(
        None,
        "Queues that a Celery worker takes periodic tasks from, separated by commas. Default: all. Visits are taken "
        "as well (queues high and default), unless the list names one of these two: then it is the whole list.",
        also="CELERY_QUEUE_NAMES",
    )
    hot_cache_ttl_hours: int = _setting(
        24,
        "How long a post stays in the hot store, which the first pages of the stream are read from.",
        also="HOT_CACHE_TTL_HOURS",
        ge=1,
        le=720,
    )
    crawler_batch_size: int = _setting(
        12, "How many communities make one batch of a warm-up.", also="CRAWLER_BATCH_SIZE", ge=1, le=100
    )
    crawler_max_concurrency: int | None = _setting(
        None,
        "How many communities are crawled at once, by visits and warm-ups together. Default: as many as "
        "HEADWATER_REDDIT_MAX_CONCURRENCY.",
        also="CRAWLER_MAX_CONCURRENCY",
        ge=1,
        le=100,
    )
    crawler_post_limit: int | None = _setting(
        None,
        "How many posts each request for a community's listing asks for. Default: by its tier; warm-ups: 100.",
        also="CRAWLER_POST_LIMIT",
        ge=1,
        le=100,
    )
    crawler_time_filter: Literal["hour", "day", "week", "month", "year", "all"] | None = _setting(
        None,
        "How far back the listing `top` of a community goes. Default: by its tier; warm-ups: month.",
        also="CRAWLER_TIME_FILTER",
    )
    crawler_sort: Literal["top", "new", "hot", "rising"] | None = _setting(
        None,
        "Which listing of a community is read. Only `new` shows everything. Default: by its tier; warm-ups: top.",
        also="CRAWLER_SORT",
    )
    monitor_api_threshold: int = _setting(
        55,
        "How many requests to Reddit within one window raise an alert.",
        also="MONITOR_API_THRESHOLD",
        ge=1,
        le=10000,
    )
    monitor_cache_hit_threshold: float = _setting(
        0.7,
        "An alert is raised if a smaller share of the answers of feeds is unchanged.",
        also="MONITOR_CACHE_HIT_THRESHOLD",
        ge=0,
        le=1,
    )
    monitor_crawl_stale_minutes: int = _setting(
        90,
        "After how many minutes of waiting for a visit an alert is raised.",
        also="MONITOR_CRAWL_STALE_MINUTES",
        ge=1,
        le=10080,
    )
    images: Literal["off", "on"] = _setting(
        "off", "Whether images that posts show are downloaded and shown from here. Records of them are kept anyway."
    )
    image_max_bytes: int = _setting(5 * 1024 * 1024, "The largest image that is downloaded.", ge=1024)
    images_total_mb: int = _setting(2048, "How much disk space all downloaded images may take, in MB.", ge=1)
    remote_images: Literal["ask", "show"] = _setting(
        "ask",
        "Images that are not downloaded: ask (the reader, for each post; until then its server does not learn who "
        "reads) or show.",
    )
    visit_history_days: int = _setting(30, "How long the record of each visit is kept.", ge=1)
    event_history_days: int = _setting(7, "How long events are kept after every consumer has seen them.", ge=1)
    audit_days: int = _setting(
        365,
        "How long the audit log says who changed what. PostgreSQL keeps 30 days in any case.",
        ge=30,
    )
    shutdown_seconds: float = _setting(
        10.0, "How long visits under way may take to finish when Headwater is stopped.", ge=0
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "The lowest level that is logged.")
    log_format: Literal["auto", "text", "json"] = _setting(
        "auto", "How it is logged. auto: text on a terminal, otherwise json."
    )
    reddit_client_id: str | None = _setting(
        None, "The id of our app at Reddit. Without it, communities are read by their feeds.", also="REDDIT_CLIENT_ID"
    )
    reddit_client_secret: SecretStr | None = _setting(
        None, "The secret of our app at Reddit.", also="REDDIT_CLIENT_SECRET"
    )
    reddit_user_agent: str | None = _setting(
        None, "The user agent for Reddit. Default: the one for every other server.", also="REDDIT_USER_AGENT"
    )
    reddit_rate_limit: int = _setting(
        60,
        "Requests to Reddit's API in one window, over all processes. 0: no limit of ours.",
        also="REDDIT_RATE_LIMIT",
        ge=0,
        le=10000,
    )
    reddit_rate_limit_window_seconds: float = _setting(
        60.0, "How long that window is.", also="REDDIT_RATE_LIMIT_WINDOW_SECONDS", gt=0, le=3600
    )
    reddit_feed_gap_seconds: float = _setting(
        60.0, "Least time between two requests for feeds of communities, over all processes.", ge=0, le=3600
    )
    reddit_request_timeout_seconds: float = _setting(
        30.0, "How long one answer of Reddit may take.", also="REDDIT_REQUEST_TIMEOUT_SECONDS", ge=0.1, le=600
    )
    reddit_max_concurrency: int = _setting(
        10, "Requests to Reddit under way at once.", also="REDDIT_MAX_CONCURRENCY", ge=1, le=100
    )
    reddit_api_url: str = _setting("https://oauth.reddit.com", "Where Reddit's API is.")
    reddit_url: str = _setting("https://www.reddit.com", "Where Reddit issues tokens and has its feeds.")
    x_bearer_token: SecretStr | None = _setting(
        None,
        "The token for X's API. Default: the one that `headwater x token` stored. Without one, X sources wait.",
        also="X_BEARER_TOKEN",
    )
    x_api_url: str = _setting("https://api.x.com", "Where X's API is.")
    x_rate_limit: int = _setting(
        300, "Requests to X's API in one window, over all processes. 0: no limit of ours.", ge=0, le=100000
    )
    x_rate_limit_window_seconds: float = _setting(900.0, "How long that window is.", gt=0, le=86400)
    x_monthly_requests: int = _setting(
        10000, "Requests to X's API in a month, over all processes; then X sources wait. 0: any number.", ge=0
    )
    x_monthly_posts: int = _setting(
        10000, "Posts read from X in a month, over all processes; then X sources wait. 0: any number.", ge=0
    )

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any, given: ValidationInfo) -> Any:
        return None if value == "" and cls.model_fields[given.field_name or ""].default is None else value

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **others: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)  # the environment is read by `load`, which knows where each value came from

    def store_url(self) -> str:
        if self.database_url:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir / 'headwater.db'}"


class Loaded(NamedTuple):
    settings: Settings
    origins: Mapping[str, str]


def load(environ: Mapping[str, str] = os.environ, **given: Any) -> Loaded:
    """Reads the settings: `given` are those of the command line, then come the environment and the settings file."""
    _refuse_unknown(environ)
    values, origins = _from_config(environ.get(CONFIG))
    for name, field in Settings.model_fields.items():
        origins.setdefault(name, "default")
        for variable in names_of(name, field):
            if variable in environ:
                values[name], origins[name] = environ[variable], variable
                break
            if f"{variable}_FILE" in environ:
                values[name] = _from_file(f"{variable}_FILE", environ[f"{variable}_FILE"])
                origins[name] = f"{variable}_FILE"
                break
    for name, value in given.items():
        if value is not None:
            values[name], origins[name] = value, "command line"
    try:
        return Loaded(Settings(**values), origins)
    except ValidationError as error:
        raise BadSetting(_explain(error, origins)) from None


def names_of(name: str, field: FieldInfo) -> list[str]:
    """Returns the environment variables that set it, our own first."""
    also = (field.json_schema_extra or {}).get("also") if isinstance(field.json_schema_extra, dict) else None
    return [PREFIX + name.upper()] + ([str(also)] if also else [])


def _keys() -> dict[str, str]:
    """Returns the setting that each key of a settings file means. One that was renamed has two."""
    variables = (
        (variable, name) for name, field in Settings.model_fields.items() for variable in names_of(name, field)
    )
    return {variable.removeprefix(PREFIX).lower(): name for variable, name in variables if variable.startswith(PREFIX)}


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = {PREFIX + key.upper() for key in _keys()} | {CONFIG}
    for variable in environ:
        if not variable.startswith(PREFIX) or variable.startswith(NOT_SETTINGS):
            continue
        if variable.removesuffix("_FILE") not in known:
            raise BadSetting(f"{variable} is not a setting.{_closest(variable, known)}")


def _closest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else " `headwater config` lists all settings."


def _from_file(origin: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{origin}: the file {file} cannot be read ({error}).") from error


def _from_config(named: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns what the settings file sets, and where each value is from. An empty name means that no file is read."""
    file = Path(named) if named else next((one for one in CONFIG_FILES if named is None and one.is_file()), None)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if file is None:
        return values, origins
    keys = _keys()
    for key, value in _toml(file).items():
        name, origin = keys.get(key) or keys.get(key.removesuffix("_file")), f"{key} in {file}"
        if name is None:
            raise BadSetting(f"{origin} is not a setting.{_closest(key, Settings.model_fields)}")
        if name in values:
            raise BadSetting(f"{file} sets both {origins[name].partition(' ')[0]} and {key}. Choose one.")
        written = _as_environment(value, origin)
        values[name], origins[name] = (written if key in keys else _from_file(origin, written)), origin
    return values, origins


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting(f"The settings file {file} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"The settings file {file} is not TOML: {error}.") from error


def _as_environment(value: Any, origin: str) -> str:
    """Returns a value as the environment would have it, so that both are understood in the same way."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    raise BadSetting(f"{origin} has to be text, a number, true, false or a list of texts.")


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    parts = []
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        origin = origins.get(name, "default")
        variable = origin if origin not in ("default", "command line") else PREFIX + name.upper()
        parts.append(f"{variable}: {problem['msg']}.")
    return " ".join(parts)
