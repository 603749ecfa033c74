"""Every setting: its name, default and meaning, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from headwater import __version__


def _setting(default: Any, meaning: str, *, also: str | None = None, **limits: Any) -> Any:
    return Field(default, description=meaning, json_schema_extra={"also": also}, **limits)


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    data_dir: Path = _setting(Path("data"), "Folder for everything Headwater keeps on disk.")
    database_url: SecretStr | None = _setting(
        None, "Where the store is: sqlite:///path or postgresql://user@host/name. Default: a file in the data folder."
    )
    migration_database_url: SecretStr | None = _setting(
        None,
        "PostgreSQL: the same database, with the role that owns the tables. Only migrations use it. The role in "
        "HEADWATER_DATABASE_URL then owns nothing and is bound by row level security. `headwater db roles` sets it up.",
    )
    secret_key: SecretStr | None = _setting(
        None,
        "The key that encrypts stored secrets and from which the secrets of hubs are derived. Processes that share a "
        "database must share it. Default: a key file in the data folder, made when needed.",
    )
    secret_key_command: str | None = _setting(
        None, "A command that prints that key, such as one that asks a KMS. No shell; 30 seconds at most."
    )
    other_secret_keys: SecretStr | None = _setting(
        None, "Other keys, separated by commas. They only decrypt. `headwater keys list` shows which are needed."
    )
    host: str = _setting("127.0.0.1", "Address the web server listens on.")
    port: int = _setting(8080, "Port the web server listens on.", ge=1, le=65535)
    tls_certificate: Path | None = _setting(
        None, "The file with this server's certificate and chain (PEM). The server then speaks only TLS 1.3."
    )
    tls_key: Path | None = _setting(None, "The file with that certificate's private key (PEM, not encrypted).")
    max_connections: int = _setting(
        1000,
        "Most connections to the web server at once. Beyond that, the one that has been idle longest is closed.",
        ge=1,
        le=100_000,
    )
    request_seconds: float = _setting(
        15.0, "How long a client may take to send a request's head. The body may take 8 times as long.", gt=0, le=600
    )
    public_url: str | None = _setting(
        None, "Address at which others reach this instance, such as https://news.example."
    )
    trusted_proxies: str = _setting(
        "",
        "Addresses or networks of proxies in front of this server, such as 127.0.0.1,10.0.0.0/8. X-Forwarded-For is "
        "believed only if one of them sent it.",
    )
    rate_limit: int = _setting(6000, "Requests per minute of one person, over all tokens and browsers.", ge=1)
    rate_limits: str = _setting(
        "", "Lower limits per minute for single scopes, such as stories:write=60,sources=300 (sources:* together)."
    )
    plans: str = _setting(
        "", "Plans and their limits, such as free requests=120 stories=10, team requests=3000. First: default."
    )
    jwt_issuer: str | None = _setting(
        None, "Another issuer whose access tokens (JWTs) are accepted: exactly the `iss` of its tokens."
    )
    jwt_keys_url: str | None = _setting(None, "Where that issuer publishes its keys (a JWK set).")
    jwt_audience: str | None = _setting(
        None, "The `aud` that its tokens must have. Default: the address of this instance."
    )
    oidc_issuer: str | None = _setting(
        None, "The issuer of an OpenID Connect provider where people sign in, such as https://login.example."
    )
    oidc_client_id: str | None = _setting(None, "This instance's client id at that provider.")
    oidc_client_secret: SecretStr | None = _setting(
        None, "Its client secret. Default: the one stored by `headwater oidc secret`. Without one, PKCE alone is used."
    )
    oidc_providers: str = _setting("", "More providers, separated by commas. Each is `key issuer client-id name`.")
    oidc_name: str | None = _setting(None, "What the button on the sign-in page calls the provider. Default: its host.")
    oidc_scopes: str = _setting("openid email profile", "The scopes that are requested from the provider.")
    oidc_join_tenant: str | None = _setting(
        None, "The tenant that uninvited people from the provider join. Default: none; they are refused."
    )
    oidc_join_role: Literal["viewer", "member", "operator"] = _setting("member", "Their role.")
    oidc_domains: str = _setting(
        "", "Domains of verified e-mail addresses that may join that way, such as example.org. *: all."
    )
    redis_url: SecretStr | None = _setting(
        None,
        "Redis, such as redis://127.0.0.1:6379/0. Processes share rate limits, cached pages and the marks of visits "
        "through it. Default: the broker, if it is Redis; otherwise none.",
        also="REDIS_URL",
    )
    cache_mb: int = _setting(
        16, "Memory for cached results, such as first pages of the stream, in MB. Not used with Redis.", ge=0
    )
    allow_private_networks: str = _setting(
        "false",
        "Whether sources on private, loopback and link-local addresses may be fetched: true, false, or networks "
        "such as 10.1.0.0/16,127.0.0.0/8.",
    )
    market_url: str | None = _setting(
        None,
        "Address of daily figures of the Bitcoin market: CSV or JSON with date, price_usd, difficulty, height_eod, "
        "blocks and fees_btc. Default: none; `headwater market import` reads a file instead.",
    )
    telemetry_days: int = _setting(
        35, "How many days single readings of machines are kept. A reading may arrive this late.", ge=2, le=3660
    )
    telemetry_hours_days: int = _setting(
        800, "How many days hourly totals of readings are kept. Daily totals are kept for good.", ge=2, le=36600
    )
    user_agent: str = _setting(f"Headwater/{__version__}", "The user agent that Headwater sends to servers.")
    proxy_url: SecretStr | None = _setting(
        None, "Proxy for all requests to sources, such as http://proxy.example:3128."
    )
    check_interval_seconds: int = _setting(
        1800,
        "How often a source is visited, unless its tier, its readers or the source itself decide.",
        ge=60,
        le=604800,
    )
    max_sources: int = _setting(20000, "How many sources one reader may follow. 0: any number.", ge=0)
    post_versions: int = _setting(
        10,
        "How many earlier texts of a post are kept. Beyond that, those that were current for the shortest time are "
        "deleted. 0: all are kept.",
        ge=0,
    )
    max_concurrency: int = _setting(64, "How many visits run at once.", ge=1, le=2000)
    host_gap_seconds: float = _setting(
        1.0, "Shortest time between two requests to one host, over all processes.", ge=0, le=3600
    )
    lease_seconds: int = _setting(180, "How long a visit may hold a source; more than visit_seconds.", ge=10, le=3600)
    visit_seconds: int = _setting(120, "How long a whole visit may take.", ge=5, le=3000)
    fetch_seconds: float = _setting(30.0, "How long one answer may take, including redirects.", ge=1, le=600)
    fetch_max_bytes: int = _setting(10 * 1024 * 1024, "The largest answer that is read, after decompression.", ge=1024)
    parser_processes: int = _setting(
        2, "How many processes parse what was fetched.", also="HEADWATER_READER_PROCESSES", ge=1, le=64
    )
    parser_seconds: float = _setting(
        10.0, "CPU time after which parsing one document is stopped.", also="HEADWATER_READER_SECONDS", ge=0.1, le=600
    )
    parser_memory_mb: int = _setting(
        512, "Memory that a parser process may use, in MB.", also="HEADWATER_READER_MEMORY_MB", ge=128
    )
    browser_sandbox: Literal["on", "off"] = _setting(
        "on",
        "Whether Chromium needs its sandbox, which root cannot have. on: refuse to start as root. off: start anyway.",
    )
    browser_memory_mb: int = _setting(
        1024, "Memory for all processes of Chromium together, in MB. A page that needs more is abandoned.", ge=256
    )
    fold: Literal["off", "repeats", "stories"] = _setting(
        "stories", "What is folded: nothing, repeats of a text, or all posts about one event. Readers may choose less."
    )
    fold_embeddings: bool = _setting(
        False, "Whether word embeddings help to find stories (needs headwater[embeddings]; half the speed)."
    )
    fold_embedding_model: Literal["wordllama"] = _setting("wordllama", "The embedding model.")
    fold_threshold: float | None = _setting(
        None,
        "Fold only what scores at least this. Default: 0; in runs that name posts by `tweet_ids`, 0.85.",
        ge=0,
        le=1,
    )
    fold_exact: bool = _setting(True, "Whether exact repeats are folded.")
    fold_similar: bool = _setting(True, "Whether similar posts and stories are folded.")
    fold_method: Literal["auto", "manual", "hybrid"] = _setting(
        "auto", "auto folds what arrives; hybrid folds only exact repeats; manual folds nothing until somebody asks."
    )
    fold_batch_size: int = _setting(1000, "How many posts are decided in one transaction.", ge=1, le=10_000)
    fold_window_hours: int = _setting(72, "How far apart in time the posts of one story may be.", ge=1, le=720)
    fold_run_seconds: float = _setting(
        30.0,
        "How long a requested run may look for stories. After that it finds only exact repeats, and says so.",
        ge=0,
        le=3600,
    )
    transaction_seconds: float = _setting(
        30.0,
        "How long a process that hangs may hold a transaction open (PostgreSQL). Then its work is rolled back.",
        ge=1,
        le=3600,
    )
    lock_seconds: float = _setting(5.0, "How long a statement waits for a lock (PostgreSQL).", ge=0.1, le=600)
    statement_seconds: float = _setting(
        60.0, "How long one statement may take (PostgreSQL). Migrations are not limited.", ge=0.1, le=3600
    )
    kafka_bootstrap_servers: str | None = _setting(
        None,
        "Kafka's address, host:port. If set, consumers read the topics that Debezium fills instead of the table.",
        also="KAFKA_BOOTSTRAP_SERVERS",
    )
    kafka_connect_url: str = _setting("http://127.0.0.1:8083", "Where Kafka Connect listens.", also="KAFKA_CONNECT_URL")
    kafka_database_url: SecretStr | None = _setting(
        None, "How Kafka Connect reaches PostgreSQL, if not by HEADWATER_DATABASE_URL."
    )
    celery_broker_url: SecretStr | None = _setting(
        None,
        "The broker for Celery workers, such as redis://host:6379/1. If set, `headwater up` leaves visits and periodic "
        "work to the workers.",
        also="CELERY_BROKER_URL",
    )
    celery_result_backend: SecretStr | None = _setting(
        None,
        "Where Celery keeps results, for 24 hours. Default: the broker, if it is Redis; otherwise nowhere.",
        also="CELERY_RESULT_BACKEND",
    )
    celery_worker_count: int | None = _setting(
        None,
        "Processes of one Celery worker. Each runs as many visits at once as `headwater up`. Default: one for each "
        "processor.",
        also="CELERY_WORKER_COUNT",
        ge=1,
        le=256,
    )
    celery_queue_names: str | None = _setting(
        None,
        "Queues from which a Celery worker takes periodic tasks, separated by commas. Default: all. The queues of "
        "visits, high and default, are added unless the list names one of them.",
        also="CELERY_QUEUE_NAMES",
    )
    hot_cache_ttl_hours: int = _setting(
        24,
        "How long a post stays in the hot store, from which the first pages of the stream are read.",
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
        "How far back a community's `top` listing goes. Default: by its tier; warm-ups: month.",
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
        "An alert is raised if a smaller share of feeds' answers is unchanged.",
        also="MONITOR_CACHE_HIT_THRESHOLD",
        ge=0,
        le=1,
    )
    monitor_crawl_stale_minutes: int = _setting(
        90,
        "An alert is raised if a source waits longer than this for a visit, in minutes.",
        also="MONITOR_CRAWL_STALE_MINUTES",
        ge=1,
        le=10080,
    )
    images: Literal["off", "on"] = _setting(
        "off", "Whether images in posts are downloaded and served from here. Their records are kept either way."
    )
    image_max_bytes: int = _setting(5 * 1024 * 1024, "The largest image that is downloaded.", ge=1024)
    images_total_mb: int = _setting(2048, "How much disk space all downloaded images may take, in MB.", ge=1)
    remote_images: Literal["ask", "show"] = _setting(
        "ask",
        "Images that are not downloaded. ask: load them only if the reader asks, so that their server does not learn "
        "who reads. show: load them at once.",
    )
    visit_history_days: int = _setting(30, "How many days the record of each visit is kept.", ge=1)
    event_history_days: int = _setting(7, "How many days events are kept, if every consumer has seen them.", ge=1)
    audit_days: int = _setting(
        365, "How many days the audit log is kept. PostgreSQL keeps at least the last 30.", ge=30
    )
    shutdown_seconds: float = _setting(10.0, "How long running visits may take to finish when Headwater stops.", ge=0)
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "The lowest level that is logged.")
    log_format: Literal["auto", "text", "json"] = _setting(
        "auto", "The format of the log. auto: text on a terminal, otherwise json."
    )
    reddit_client_id: str | None = _setting(
        None, "The id of your app at Reddit. Without it, communities are read as feeds.", also="REDDIT_CLIENT_ID"
    )
    reddit_client_secret: SecretStr | None = _setting(
        None, "The secret of your app at Reddit.", also="REDDIT_CLIENT_SECRET"
    )
    reddit_user_agent: str | None = _setting(
        None, "The user agent for Reddit. Default: the one for every other server.", also="REDDIT_USER_AGENT"
    )
    reddit_rate_limit: int = _setting(
        60,
        "Most requests to Reddit's API in one window, over all processes. 0: no limit of our own.",
        also="REDDIT_RATE_LIMIT",
        ge=0,
        le=10000,
    )
    reddit_rate_limit_window_seconds: float = _setting(
        60.0, "How long that window is.", also="REDDIT_RATE_LIMIT_WINDOW_SECONDS", gt=0, le=3600
    )
    reddit_feed_gap_seconds: float = _setting(
        60.0, "Shortest time between two requests for feeds of communities, over all processes.", ge=0, le=3600
    )
    reddit_request_timeout_seconds: float = _setting(
        30.0, "How long one answer from Reddit may take.", also="REDDIT_REQUEST_TIMEOUT_SECONDS", ge=0.1, le=600
    )
    reddit_max_concurrency: int = _setting(
        10, "How many requests to Reddit run at once.", also="REDDIT_MAX_CONCURRENCY", ge=1, le=100
    )
    reddit_api_url: str = _setting("https://oauth.reddit.com", "Where Reddit's API is.")
    reddit_url: str = _setting("https://www.reddit.com", "Where Reddit issues tokens and has its feeds.")
    x_bearer_token: SecretStr | None = _setting(
        None,
        "The token for X's API. Default: the one stored by `headwater x token`. Without one, X sources wait.",
        also="X_BEARER_TOKEN",
    )
    x_api_url: str = _setting("https://api.x.com", "Where X's API is.")
    x_rate_limit: int = _setting(
        300, "Most requests to X's API in one window, over all processes. 0: no limit of our own.", ge=0, le=100000
    )
    x_rate_limit_window_seconds: float = _setting(900.0, "How long that window is.", gt=0, le=86400)
    x_monthly_requests: int = _setting(
        10000, "Most requests to X's API in a month, over all processes. Then X sources wait. 0: any number.", ge=0
    )
    x_monthly_posts: int = _setting(
        10000, "Most posts read from X in a month, over all processes. Then X sources wait. 0: any number.", ge=0
    )

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any, given: ValidationInfo) -> Any:
        return None if value == "" and cls.model_fields[given.field_name or ""].default is None else value

    def store_url(self) -> str:
        if self.database_url:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir / 'headwater.db'}"
