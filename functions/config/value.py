"""Tests of configuration values."""

import re
from collections.abc import Callable
from typing import Any

from functions.config import description
from functions.snapshot import address, identifier, instant, setspec
from functions.url import endpoint

_EMAIL = re.compile(r"[^\s@<>:]+@([^\s@.]+\.)+[^\s@.]+")
_ENDPOINT = re.compile(r"https?://[^/?#]*")


def is_text(value: Any) -> bool:
    """Return whether the value is a text of one printable line."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def is_store(value: Any) -> bool:
    """Return whether the value names a store: a folder, or the URL of a bucket."""
    return is_text(value) and ("://" not in value or address.is_valid(value))


def between(low: int, high: int) -> Callable[[Any], bool]:
    """Return a test for whole numbers from `low` to `high`."""
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def seconds(low: float, high: float) -> Callable[[Any], bool]:
    """Return a test for numbers from `low` to `high`, which may be fractions."""
    return lambda v: isinstance(v, int | float) and not isinstance(v, bool) and low <= v <= high


def are_some_of(*names: str) -> Callable[[Any], bool]:
    """Return a test for lists of some of these names."""
    return lambda v: isinstance(v, list) and all(isinstance(n, str) and n in names for n in v)


def is_second(value: Any) -> bool:
    """Return whether the value is an instant of the protocol, to the second."""
    try:
        return isinstance(value, str) and instant.to_text(instant.from_text(value)) == value
    except ValueError:
        return False


def is_flag(value: Any) -> bool:
    """Return whether the value is true or false."""
    return isinstance(value, bool)


def is_emails(value: Any) -> bool:
    """Return whether the value is a list of one or more e-mail addresses."""
    return (
        isinstance(value, list)
        and value != []
        and all(isinstance(e, str) and _EMAIL.fullmatch(e) for e in value)
    )


def is_prefixes(value: Any) -> bool:
    """Return whether the value is a list of metadata prefixes."""
    return isinstance(value, list) and all(
        isinstance(v, str) and re.fullmatch(r"[A-Za-z0-9\-_.!~*'()]+", v) for v in value
    )


def is_names(value: Any) -> bool:
    """Return whether the value is a table from set specifications to names."""
    return isinstance(value, dict) and all(
        setspec.is_valid(spec) and is_text(name) for spec, name in value.items()
    )


def is_prose(value: Any) -> bool:
    """Return whether the value is a text of one or more lines."""
    return isinstance(value, str) and is_text(" ".join(value.split()))


def is_descriptions(value: Any) -> bool:
    """Return whether the value is a table from set specifications to texts."""
    return isinstance(value, dict) and all(
        setspec.is_valid(spec) and is_prose(text) for spec, text in value.items()
    )


def is_base_url(value: Any) -> bool:
    """Return whether the value is a server's http or https URL without user, query, fragment."""
    if not description.is_url(value) or "?" in value or "#" in value:
        return False
    found = _ENDPOINT.match(value)
    return found is not None and endpoint.is_valid(found[0])


def is_namespace(value: Any) -> bool:
    """Return whether the value is a valid namespace of OAI identifiers."""
    return isinstance(value, str) and identifier.is_namespace(value)
