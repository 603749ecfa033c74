"""Settings: names, files, errors that name the setting (A12)."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert load({"CRAWLER_MAX_CONCURRENCY": "2"}).settings.max_concurrency == 2
    both = load({"CRAWLER_MAX_CONCURRENCY": "2", "HEADWATER_MAX_CONCURRENCY": "3"})
    assert (both.settings.max_concurrency, both.origins["max_concurrency"]) == (3, "HEADWATER_MAX_CONCURRENCY")


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


def test_variables_of_tests_and_benchmarks_are_not_ours() -> None:
    loaded = load({"HEADWATER_TEST_POSTGRES_URL": "x", "HEADWATER_BENCH_FEEDS": "1"})
    assert set(loaded.origins.values()) == {"default"}
