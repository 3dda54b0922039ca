"""Arguments of commands as rows of a table: what the usage shows, and what it means."""

from collections.abc import Mapping
from typing import Any

_TYPES = {"N": int, "TIST": int, "MB": int, "BYTES": int, "PORT": int, "PERCENT": float}
"""Types of values by their placeholders; other values are texts."""


def declare(parser: Any, rows: Mapping[str, str], **more: Mapping[str, Any]) -> None:
    """Declare arguments by rows such as `--limit N`, each with its meaning.

    `[N]` may be left out, and `N...` may be given more than once: its values are a list. Behind
    `as` is the name of the attribute. `more` has further parameters of add_argument, by attribute.
    """
    for row, meaning in rows.items():
        usage, _, attribute = row.partition(" as ")
        names, _, value = usage.partition(" ")
        is_option, is_optional, is_list = names[0] == "-", value[:1] == "[", value[-3:] == "..."
        named: dict[str, Any] = {"help": meaning}
        if attribute:
            named["dest"] = attribute
        if value:
            named["metavar"] = value.removesuffix("...").strip("[]")
            named["type"] = _TYPES.get(named["metavar"])
        elif is_option:
            named["action"] = "store_true"
        if is_option and is_list:
            named |= {"action": "append", "default": []}
        elif is_list:
            named["nargs"] = "*" if is_optional else "+"
        if is_optional and not (is_list and not is_option):
            named["nargs"] = "?"
        dest = attribute or names.rpartition(",")[2].lstrip("-").replace("-", "_")
        parser.add_argument(*names.split(","), **{**named, **more.get(dest, {})})
