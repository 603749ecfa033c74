"""Settings: names, files, errors that name the setting (A12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from headwater.errors import BadSetting
from headwater.settings import load


def test_without_any_variable_everything_has_its_default() -> None:
    loaded = load({})
    assert loaded.settings.port == 8080
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.settings.store_url() == "sqlite:///data/headwater.db"


def test_a_variable_sets_its_setting_and_is_named_as_the_origin() -> None:
    loaded = load({"HEADWATER_PORT": "9000"})
    assert (loaded.settings.port, loaded.origins["port"]) == (9000, "HEADWATER_PORT")


def test_the_other_name_of_a_setting_works_and_ours_wins() -> None:  # A12
    assert load({"CRAWLER_BATCH_SIZE": "2"}).settings.crawler_batch_size == 2
    both = load({"CRAWLER_BATCH_SIZE": "2", "HEADWATER_CRAWLER_BATCH_SIZE": "3"})
    assert (both.settings.crawler_batch_size, both.origins["crawler_batch_size"]) == (
        3,
        "HEADWATER_CRAWLER_BATCH_SIZE",
    )


def test_a_secret_is_read_from_a_file_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://me:hunter2@db/headwater\n")
    loaded = load({"HEADWATER_DATABASE_URL_FILE": str(file)})
    assert loaded.settings.store_url() == "postgresql://me:hunter2@db/headwater"
    assert loaded.origins["database_url"] == "HEADWATER_DATABASE_URL_FILE"
    assert "hunter2" not in str(loaded)


def test_the_command_line_wins() -> None:
    loaded = load({"HEADWATER_PORT": "9000"}, port=9001, host=None)
    assert (loaded.settings.port, loaded.origins["port"]) == (9001, "command line")
    assert loaded.origins["host"] == "default"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"HEADWATER_PROT": "1"}, "HEADWATER_PROT is not a setting. Did you mean HEADWATER_PORT"),
        ({"HEADWATER_XYZZY": "1"}, "HEADWATER_XYZZY is not a setting"),
        ({"HEADWATER_PORT": "many"}, "HEADWATER_PORT: "),
        ({"HEADWATER_PORT": "0"}, "HEADWATER_PORT: "),
        ({"CRAWLER_MAX_CONCURRENCY": "-1"}, "CRAWLER_MAX_CONCURRENCY: "),
        ({"HEADWATER_LOG_LEVEL": "loud"}, "HEADWATER_LOG_LEVEL: "),
        ({"HEADWATER_DATABASE_URL_FILE": "/does/not/exist"}, "HEADWATER_DATABASE_URL_FILE: "),
    ],
)
def test_what_is_wrong_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        load(environ)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "headwater.toml"
    (tmp_path / "key").write_text("a secret\n")
    file.write_text(
        f"""
port = 9000
images = "on"
fold_embeddings = true
allow_private_networks = ["10.0.0.0/8", "127.0.0.0/8"]
secret_key_file = "{tmp_path / "key"}"
"""
    )
    return file


def test_a_file_sets_what_the_environment_does_not(config: Path) -> None:
    loaded = load(
        {"HEADWATER_CONFIG": str(config), "HEADWATER_IMAGES": "off", "CRAWLER_MAX_CONCURRENCY": "2"}, host="::1"
    )
    found = loaded.settings
    assert (found.port, found.images, found.fold_embeddings, found.crawler_max_concurrency) == (9000, "off", True, 2)
    assert found.allow_private_networks == "10.0.0.0/8,127.0.0.0/8"
    assert found.secret_key == SecretStr("a secret")
    assert loaded.origins["port"] == f"port in {config}"
    assert loaded.origins["secret_key"] == f"secret_key_file in {config}"
    assert [loaded.origins[name] for name in ("images", "crawler_max_concurrency", "host")] == [
        "HEADWATER_IMAGES",
        "CRAWLER_MAX_CONCURRENCY",
        "command line",
    ]


def test_a_setting_that_was_renamed_keeps_its_former_name(tmp_path: Path) -> None:
    file = tmp_path / "headwater.toml"
    file.write_text("reader_processes = 3", encoding="utf-8")
    assert load({"HEADWATER_CONFIG": str(file)}).settings.parser_processes == 3
    loaded = load({"HEADWATER_CONFIG": str(file), "HEADWATER_READER_PROCESSES": "5"})
    assert (loaded.settings.parser_processes, loaded.origins["parser_processes"]) == (5, "HEADWATER_READER_PROCESSES")


def test_the_file_in_the_folder_is_found_and_an_empty_name_means_none(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    assert load({}).settings.port == 9000
    assert load({"HEADWATER_CONFIG": ""}).settings.port == 8080


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", r"prot in .*headwater.toml is not a setting. Did you mean port\?"),
        ("HEADWATER_PORT = 1", "HEADWATER_PORT in .* is not a setting"),
        ("port = 0", "port in .*headwater.toml: "),
        ("[port]\nvalue = 1", "port in .* must be text"),
        ("port = [1]", "port in .* must be text"),
        ("secret_key = 'a'\nsecret_key_file = '/b'", "sets both secret_key and secret_key_file"),
        ("reader_seconds = 2\nparser_seconds = 3", "sets both reader_seconds and parser_seconds"),
        ("secret_key_file = '/does/not/exist'", "secret_key_file in .*: the file /does/not/exist cannot be read"),
        ("port = ", "is not TOML"),
        ("port = 1\nport = 2", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "headwater.toml").write_text(text)
    with pytest.raises(BadSetting, match=words):
        load({"HEADWATER_CONFIG": str(tmp_path / "headwater.toml")})


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    for name in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(BadSetting, match="cannot be read"):
            load({"HEADWATER_CONFIG": str(name)})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match="is not TOML"):
        load({"HEADWATER_CONFIG": str(tmp_path / "binary")})


def test_variables_of_tests_and_benchmarks_are_not_ours() -> None:
    loaded = load({"HEADWATER_TEST_POSTGRES_URL": "x", "HEADWATER_BENCH_FEEDS": "1"})
    assert set(loaded.origins.values()) == {"default"}


DOCUMENTED = {
    "CRAWLER_BATCH_SIZE": ("crawler_batch_size", "12", 12),
    "CRAWLER_MAX_CONCURRENCY": ("crawler_max_concurrency", "2", 2),
    "CRAWLER_POST_LIMIT": ("crawler_post_limit", "100", 100),
    "CRAWLER_TIME_FILTER": ("crawler_time_filter", "month", "month"),
    "CRAWLER_SORT": ("crawler_sort", "top", "top"),
    "HOT_CACHE_TTL_HOURS": ("hot_cache_ttl_hours", "24", 24),
    "REDDIT_CLIENT_ID": ("reddit_client_id", "an id", "an id"),
    "REDDIT_CLIENT_SECRET": ("reddit_client_secret", "a secret", SecretStr("a secret")),
    "REDDIT_USER_AGENT": ("reddit_user_agent", "a name", "a name"),
    "REDDIT_RATE_LIMIT": ("reddit_rate_limit", "60", 60),
    "REDDIT_RATE_LIMIT_WINDOW_SECONDS": ("reddit_rate_limit_window_seconds", "60", 60.0),
    "REDDIT_REQUEST_TIMEOUT_SECONDS": ("reddit_request_timeout_seconds", "30", 30.0),
    "REDDIT_MAX_CONCURRENCY": ("reddit_max_concurrency", "10", 10),
    "MONITOR_API_THRESHOLD": ("monitor_api_threshold", "55", 55),
    "MONITOR_CACHE_HIT_THRESHOLD": ("monitor_cache_hit_threshold", "0.70", 0.7),
    "MONITOR_CRAWL_STALE_MINUTES": ("monitor_crawl_stale_minutes", "90", 90),
    "CELERY_BROKER_URL": ("celery_broker_url", "redis://b/1", SecretStr("redis://b/1")),
    "CELERY_RESULT_BACKEND": ("celery_result_backend", "redis://b/2", SecretStr("redis://b/2")),
    "CELERY_WORKER_COUNT": ("celery_worker_count", "4", 4),
    "CELERY_QUEUE_NAMES": ("celery_queue_names", "analysis_queue,crawler_queue", "analysis_queue,crawler_queue"),
}


@pytest.mark.parametrize("variable", DOCUMENTED)
def test_every_variable_that_is_promised_sets_the_same_thing_here(variable: str) -> None:  # A12
    name, given, value = DOCUMENTED[variable]
    loaded = load({variable: given})
    assert (getattr(loaded.settings, name), loaded.origins[name]) == (value, variable)


def test_every_variable_that_is_promised_is_in_the_reference() -> None:  # A12
    reference = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
    written = reference.read_text(encoding="utf-8")
    assert [name for name in DOCUMENTED if f"`{name}`" not in written] == []
