"""The configuration: `sheaf.toml`, overridden by environment variables `SHEAF_*`.

Each key is a row of the table in `keys`. An invalid value is refused with the key, the value and
what was expected.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from functions.config import signing
from functions.config.keys import KEYS
from functions.snapshot.errors import ConfigurationError, describe_failure

FILE = "sheaf.toml"
STORE = "SHEAF_STORE_URI"
"""The variable of `store.uri`: where it is set, a configuration file is not needed."""
_SECRET = re.compile(r"//[^/@]*@")
_LONGEST = 300
_BY_NAME = {key.name: key for key in KEYS}
_SECTIONS = {key.name.partition(".")[0] for key in KEYS}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values of all keys, including defaults."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def relative_to(self, folder: Path) -> "Configuration":
        """Return a copy with the folder of templates and the file of a key relative to `folder`."""
        own = self["formats.templates"]
        placed = self.having("formats.templates", str(folder / own) if own else "")
        key = self[signing.NAME]
        return placed.having(signing.NAME, str(folder / key) if signing.is_file(key) else key)

    def having(self, name: str, value: Any) -> "Configuration":
        """Return a copy with another value of a key."""
        return Configuration({**self.values, name: _BY_NAME[name].complete(value)})


def default(name: str) -> Any:
    """Return the default of a key."""
    return _BY_NAME[name].default


def check_namespace(namespace: str) -> None:
    """Raise ConfigurationError if that is the default: nothing may be published with it."""
    if namespace == default("repository.namespace"):
        raise ConfigurationError(
            f"repository.namespace is still {namespace}: it is part of every identifier and "
            "cannot change later, so set it to your domain name before the first publish"
        )


def load(path: Path, environment: Mapping[str, str], remedy: str = "") -> Configuration:
    """Return the configuration of the file at `path`, overridden by the environment.

    If the file is missing, all values are defaults; with a `remedy`, an error names it instead.
    Raises ConfigurationError.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        if remedy:
            raise ConfigurationError(f"no configuration at {path}: {remedy}") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {describe_failure(error)}") from error
    return parse(text, environment, str(path)).relative_to(path.parent)


def parse(text: str, environment: Mapping[str, str], source: str = FILE) -> Configuration:
    """Return the configuration of a TOML text, overridden by the environment.

    `SHEAF_PAGES_RECORDS=500` stands for `pages.records = 500`; lists and tables are written as in
    TOML. Raises ConfigurationError for an invalid text, an unknown key, or a wrong value.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(_explain(source, text, str(error))) from error
    values = {key.name: key.default for key in KEYS}
    for section, content in document.items():
        if section in _BY_NAME:  # a list of tables
            values[section] = content
            _check(source, section, content)
            continue
        if section not in _SECTIONS or not isinstance(content, dict):
            raise _unknown(source, section, _SECTIONS)
        for name, value in content.items():
            key = f"{section}.{name}"
            if key not in _BY_NAME:
                names = [k.partition(".")[2] for k in _BY_NAME if k.startswith(f"{section}.")]
                raise _unknown(source, key, names)
            values[key] = value
            _check(source, key, value)
    variables = {"SHEAF_" + name.upper().replace(".", "_"): name for name in values}
    for variable in sorted(v for v in environment if v.startswith("SHEAF_")):
        if variable not in variables:
            raise _unknown("the environment", variable, variables)
        name = variables[variable]
        values[name] = _from_variable(name, environment[variable])
        _check("the environment", name, values[name], variable)
    return Configuration({key.name: key.complete(values[key.name]) for key in KEYS})


def template(values: Mapping[str, Any]) -> str:
    """Return a `sheaf.toml` with these values; other keys are comments with their defaults."""
    lines: list[str] = ["# Sheaf's configuration. A value behind # is the default."]
    section = ""
    for key in KEYS:
        head, _, name = key.name.partition(".")
        if not name:  # in a comment, so that keys of a section do not follow it
            lines += ["", f"# [[{head}]]", f"# {key.meaning}"]
            continue
        if head != section:
            section = head
            lines += ["", f"[{section}]"]
        mark = "" if key.name in values else "# "
        value = to_toml(values.get(key.name, key.default))
        lines += [f"# {key.meaning} ({key.expected})", f"{mark}{name} = {value}"]
    return "\n".join(lines) + "\n"


def _from_variable(name: str, text: str) -> Any:
    """Return a variable's value: as text if that is valid for the key, else parsed as TOML."""
    key = _BY_NAME[name]
    if isinstance(key.default, str) and key.test(text):
        return text
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    is_text = isinstance(key.default, str) and not isinstance(value, dict)
    return text if is_text and not key.test(value) else value


def _unknown(source: str, name: str, keys: Iterable[str]) -> ConfigurationError:
    """Return the error of an unknown key, with the nearest of `keys`, else with all of them."""
    names, (section, dot, key) = sorted(keys), name.rpartition(".")
    likely = get_close_matches(key, names, 1)
    advice = f"is it {section}{dot}{likely[0]}?" if likely else f"known keys: {', '.join(names)}"
    return ConfigurationError(f"{source}: unknown key {name}; {advice}")


def _explain(source: str, text: str, error: str) -> str:
    """Return what is wrong in a text that is not TOML: the line, and what to do."""
    reason, _, place = error.partition(" (at ")
    lines = text.splitlines() or [""]
    number = int(match[1]) if (match := re.match(r"line (\d+)", place)) else len(lines)
    line = _SECRET.sub("//...@", lines[min(number, len(lines)) - 1].strip())[:_LONGEST]
    if twice := re.fullmatch(r"Cannot declare \((.*)\) twice", reason):
        section = ".".join(re.findall(r"'([^']*)'", twice[1]))
        reason = f"the section [{section}] stands there twice; put its keys together"
    elif reason == "Cannot overwrite a value":
        reason = "this key stands there twice; remove one of the lines"
    elif reason == "Invalid value":
        reason = "the value is missing or incomplete; texts stand in quotes"
    return f"{source} is not TOML, line {number}: {reason}: {line}"


def _check(source: str, name: str, value: Any, variable: str = "") -> None:
    if (fault := _BY_NAME[name].find_fault(value)) is not None:
        part, wrong, expected = fault
        where = f" ({variable})" if variable else ""
        text = _SECRET.sub("//...@", to_toml(wrong))
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise ConfigurationError(f"{source}: {name}{part}{where} is {text}, expected {expected}")


def to_toml(value: Any) -> str:
    """Return a value as it stands in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON strings are valid TOML except for one control character, which JSON does not escape.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_toml(k)} = {to_toml(v)}" for k, v in value.items()) + "}"
    return str(value)
