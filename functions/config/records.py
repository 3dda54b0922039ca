"""The key `[[records]]`: tables of the operator's own records, one for each source of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.config import check
from functions.config.key import Field, Fields, flag, list_of, row, table_of
from functions.snapshot import oai_name

FIELDS = (
    *("title", "creator", "contributor", "publisher", "date", "type", "subject", "description"),
    *("format", "language", "identifier", "source", "relation", "coverage", "rights", "url"),
)
"""Fields of an own record: the elements of Dublin Core, and its landing page."""
_TEXT = Field("", check.is_text, "a text")
_TEXTS = Field(
    [],
    lambda v: check.is_text(v) or (isinstance(v, list) and v != [] and all(map(check.is_text, v))),
    "a text or a list of texts",
    complete=lambda v: [v] if isinstance(v, str) else v,
)

_TABLE = Fields(
    {
        "name": Field(
            "",
            oai_name.is_table,
            f"letters, digits, - _ and ., and not {', '.join(oai_name.RESERVED)}",
        ),
        "files": replace(_TEXTS, expected="files or patterns such as export/*.mrc"),
        "query": replace(_TEXT, expected="a query of DuckDB"),
        "form": replace(_TEXT, expected="a form such as marc or csv"),
        "element": replace(_TEXT, expected="the name of the element of each record"),
        "identifier": replace(_TEXTS, expected="one or more paths"),
        "sets": list_of(check.is_text, 'patterns such as "type:{leader/6}"'),
        "set_names": table_of(oai_name.is_set, check.is_text, "from set specifications to names"),
        "url": replace(_TEXT, expected="a path, or a pattern such as https://a.cz/{001}"),
        "fields": table_of(FIELDS.__contains__, _TEXTS.test, f"from {', '.join(FIELDS)} to paths"),
        "formats": table_of(
            check.is_prefix, check.is_text, "from metadata prefixes to as-is or to crosswalks"
        ),
        "complete": flag(False),
        "deleted": replace(_TEXT, expected="a column or path, or a file with identifiers"),
        "separator": replace(_TEXT, test=lambda v: isinstance(v, str) and len(v) == 1),
        "encoding": replace(_TEXT, expected="an encoding such as windows-1250"),
    }
)


def _find_lack(table: Mapping[str, Any]) -> str:
    if "name" not in table:
        return "a table with a name"
    if ("files" in table) == ("query" in table):
        return "either files or query"
    return ""


def complete_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with all its keys; single texts of paths become lists."""
    whole = {name: _TABLE.fields[name].complete(value) for name, value in table.items()}
    fields = {name: _TEXTS.complete(paths) for name, paths in table.get("fields", {}).items()}
    return _TABLE.complete({**whole, "fields": fields})


def _are_tables(value: Any) -> bool:
    names = [table["name"] for table in value] if _RULES.test(value) else []
    return len({*names}) == len(names) and _RULES.test(value)


_RULES = _TABLE.rules("a name, files or query, and what else is known", _find_lack)
RECORD_KEYS: tuple[Field, ...] = (
    row(
        "records",
        replace(
            _RULES,
            test=_are_tables,
            complete=lambda value: [*map(complete_table, value)],
            expected=f"{_RULES.expected}; each name once",
        ),
        "your own records, one table `[[records]]` for each source (docs/guide/records.md)",
    ),
)
