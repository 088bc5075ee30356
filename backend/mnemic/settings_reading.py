"""Reads the settings, says where each value came from, and what is wrong with those refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import structlog
from pydantic import ValidationError
from pydantic_settings import SettingsError

from mnemic.errors import ConfigurationError
from mnemic.settings import (
    PREFIX,
    SETTINGS_FILE,
    MemorySettings,
    environment,
    settings_file,
    value_names,
    variable_of,
)

__all__ = ["explained", "origins", "read_settings", "unknown_variables"]

# Read by the command line itself, as the defaults of options.
_VARIABLES_OF_COMMANDS = frozenset(
    {SETTINGS_FILE, "MEM_ADMIN_URL", "MEM_DEBUG", "MEM_LOG_LEVEL", "MEM_USER"}
)
_LIKENESS = 0.75

log = structlog.get_logger("mnemic")


def read_settings(*, warns: bool = True) -> MemorySettings:
    """The settings of this process, for entry points.

    A variable that sets nothing but reads like one that would is logged, unless the caller tells of
    it: a mistyped `MEM_DATABASE_URL` would start embedded servers without a word.

    Raises `ConfigurationError` whose context lists `problems`: each a name, what is wrong with its
    value, and the remedy.
    """
    if warns:
        for name, meant in unknown_variables().items():
            if meant:
                log.warning("settings.misspelt", variable=name, meant=meant)
    try:
        settings = MemorySettings()
    except ValidationError as fault:
        raise explained(fault) from None
    except SettingsError as fault:
        raise ConfigurationError(f"{fault}; write a JSON object, or set its parts") from None
    except RecursionError:
        raise ConfigurationError(f"{_nested_too_deep()} is nested too deep; flatten it") from None
    except (OSError, ValueError) as fault:  # not TOML, not UTF-8, numbers without an end
        raise ConfigurationError(
            f"{environment().get(SETTINGS_FILE)} is not TOML that can be read: {fault}; correct it"
        ) from None
    _refuse_null_sections()
    return settings


def explained(fault: ValidationError) -> ConfigurationError:
    """What pydantic refused, in our words; the refused values are not repeated."""
    came_from = origins()
    problems = []
    for error in fault.errors(include_url=False, include_input=False):
        name = ".".join(map(str, error["loc"])) or "settings"
        origin = came_from.get(name) or _origin_in_environment(name) or "the settings file"
        problem, remedy = _words(name, error)
        problems.append({"name": name, "origin": origin, "problem": problem, "remedy": remedy})
    lines = [
        f"{one['name']} ({one['origin']}) {one['problem']}; {one['remedy']}" for one in problems
    ]
    return ConfigurationError("\n".join(lines), problems=problems)


def _refuse_null_sections() -> None:
    """A section that is null would hide the variables of its parts, and leave them the default."""
    for variable, text in _given_sections().items():
        if text.strip() == "null":
            raise ConfigurationError(f"{variable} is null; write a JSON object, or unset it")


def _nested_too_deep() -> str:
    """The first variable of a section that no reader comes to the end of, else the file."""
    for variable, text in _given_sections().items():
        try:
            json.loads(text)
        except RecursionError:
            return variable
        except ValueError:
            continue
    return str(environment().get(SETTINGS_FILE))


def _given_sections() -> dict[str, str]:
    """The variables that set a whole section as JSON."""
    known = {variable_of(section) for section in MemorySettings.model_fields}
    return {name: text for name, text in environment().items() if name.upper() in known}


def origins() -> dict[str, str]:
    """Where the process has each value from, by dotted name.

    "environment variable NAME", "file PATH" or "default", in the order in which they count.
    """
    try:
        named = settings_file()
        written = tomllib.loads(named.read_text("utf-8")) if named else {}
    except (ConfigurationError, OSError, ValueError, RecursionError):
        named, written = None, {}
    found = {}
    for name in value_names():
        if variable := _origin_in_environment(name):
            found[name] = variable
        else:
            found[name] = f"file {named}" if _is_in(written, name) else "default"
    return found


def unknown_variables() -> dict[str, str]:
    """Variables that begin with `MEM_` and set nothing, each with the one it may be meant for."""
    known = {variable_of(name) for name in value_names()} | _VARIABLES_OF_COMMANDS
    known |= {f"{PREFIX}{name.upper()}" for name in MemorySettings.model_fields}
    unknown = [
        name
        for name in sorted(environment())
        if name.upper().startswith(PREFIX) and name.upper() not in known
    ]
    return {name: "".join(get_close_matches(name.upper(), known, 1, _LIKENESS)) for name in unknown}


def _origin_in_environment(name: str) -> str | None:
    given = {variable.upper(): variable for variable in environment()}
    if variable := given.get(variable_of(name)):
        return f"environment variable {variable}"
    section, _, inner = name.partition(".")
    whole = given.get(variable_of(section))
    if not whole or not inner:
        return None
    try:
        holds = _is_in(json.loads(environment()[whole]), inner)
    except (ValueError, RecursionError):
        holds = True
    return f"environment variable {whole}" if holds else None


def _is_in(values: Any, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _words(name: str, error: Mapping[str, Any]) -> tuple[str, str]:
    """What is wrong with a value, and what to do."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        close = get_close_matches(name, value_names(), 1, _LIKENESS)
        return "is no setting", f"did you mean {close[0]}?" if close else "remove it"
    said = {
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be at least {ge}",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be at most {le}",
        "int_parsing": "must be a whole number",
        "int_from_float": "must be a whole number",
        "float_parsing": "must be a number",
        "bool_parsing": "must be true or false",
        "literal_error": "must be {expected}",
        "time_delta_parsing": 'must be a duration, such as "00:30:00" or "PT30M"',
        "value_error": "cannot be used: {error}",
    }
    problem = said.get(kind, error["msg"].replace("Input should", "must")).format(**limits)
    if name not in value_names():
        return problem, "correct it"
    return problem, "correct it, or unset it for the default"
