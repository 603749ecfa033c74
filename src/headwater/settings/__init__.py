"""How settings are read. `settings/table.py` has them all. Only `wire` reads them; everyone else takes arguments.

A setting `check_interval_seconds` is set by HEADWATER_CHECK_INTERVAL_SECONDS, or read from the file that
HEADWATER_CHECK_INTERVAL_SECONDS_FILE names (for secrets). Some have a second name that other tools use. A TOML file can
set what the environment does not: `check_interval_seconds = 900`, `secret_key_file = "/run/secrets/key"`.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from headwater.errors import BadSetting
from headwater.settings.table import Settings

PREFIX = "HEADWATER_"
CONFIG = "HEADWATER_CONFIG"
CONFIG_FILES = (Path("headwater.toml"), Path("/etc/headwater/headwater.toml"))
NOT_SETTINGS = ("HEADWATER_TEST_", "HEADWATER_BENCH_")


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
    raise BadSetting(f"{origin} must be text, a number, true, false or a list of texts.")


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    parts = []
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        origin = origins.get(name, "default")
        variable = origin if origin not in ("default", "command line") else PREFIX + name.upper()
        parts.append(f"{variable}: {problem['msg']}.")
    return " ".join(parts)
