"""Rules of an operator's own sets: the configuration key `sets.rules`."""

import re
from collections.abc import Callable
from typing import Any

from functions.snapshot import setspec

RESERVED = ("domain", "mime", "collection")
"""First levels of generated sets, not allowed in rules."""

_TYPE = r"[a-z0-9!#$&^_.+\-]+"


def _like(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


CONDITIONS: dict[str, tuple[Callable[[str], bool], str]] = {
    # condition: test of each of its values, and the expected values
    "hosts": (
        _like(r"[a-z0-9_]([a-z0-9_.\-]*[a-z0-9_\-])?|[0-9a-f:.]*:[0-9a-f:.]*"),
        "host names such as idnes.cz, internationalized ones as punycode",
    ),
    "url_prefixes": (
        lambda text: bool(re.match(r"[A-Za-z][A-Za-z0-9+\-]*:", text)) and text.isprintable(),
        "URL prefixes with the scheme, such as http://www.idnes.cz/news/",
    ),
    "types": (_like(rf"{_TYPE}/(\*|{_TYPE})"), "media types such as text/html or image/*"),
    "languages": (_like(r"[a-z]{1,8}"), "language codes without a region, such as cs or en"),
    "collections": (
        lambda text: all(text.split(":")) and text.isprintable(),
        "collections as in `sheaf ingest --collection`, such as serials:novinky",
    ),
}
_ONE_OR_MORE = f"one or more of {', '.join(CONDITIONS)}"
EXPECTED = f"a list of tables, each with set and {_ONE_OR_MORE}"


def problem(value: Any) -> tuple[str, Any, str] | None:
    """Return the fault of a value of `sets.rules`; None if it is valid.

    The fault is its place, such as `[0].hosts`, the value there, and the expected values.
    """
    if not isinstance(value, list):
        return "", value, EXPECTED
    found = (_of_rule(f"[{number}]", rule) for number, rule in enumerate(value))
    return next((one for one in found if one is not None), None)


def _of_rule(where: str, rule: Any) -> tuple[str, Any, str] | None:
    if not isinstance(rule, dict):
        return where, rule, f"a table with set and {_ONE_OR_MORE}"
    spec = rule.get("set")
    root = spec.partition(":")[0] if isinstance(spec, str) and setspec.is_valid(spec) else ""
    if not root or root in RESERVED:
        reserved = f"{', '.join(RESERVED[:-1])} or {RESERVED[-1]}"
        expected = f"a setSpec such as topic:news, whose first level is not {reserved}"
        if "set" not in rule:
            return where, rule, f"a set: {expected}"
        return f"{where}.set", spec, expected
    for name, values in rule.items():
        if name == "set":
            continue
        if name not in CONDITIONS:
            return f"{where}.{name}", values, f"one of the keys set, {', '.join(CONDITIONS)}"
        fits, what = CONDITIONS[name]
        texts = isinstance(values, list) and all(isinstance(one, str) for one in values)
        if not (texts and values and all(map(fits, values))):
            return f"{where}.{name}", values, f"a list of {what}"
    return (where, rule, f"{_ONE_OR_MORE} besides the set") if len(rule) == 1 else None
