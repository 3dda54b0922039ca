"""SQL statements in files beside the modules: `sets.sql` has the statements of `sets.py`.

A line `-- name: set_cells` begins a statement; it ends at the next such line. Other comments stay.
A field such as `{files}` is replaced by SQL that the caller gives. Values are parameters (`$kind`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_FIELD = re.compile(r"\{(\w+)\}")


def read_statements(path: Path) -> Mapping[str, str]:
    """Return the statements of a file by name. Raises ValueError if a name stands twice."""
    _, *parts = _NAME.split(path.read_text("utf-8"))
    names, texts = parts[::2], [text.strip() for text in parts[1::2]]
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has two statements with one name")
    return dict(zip(names, texts, strict=True))


def insert_fields(statement: str, **fields: str) -> str:
    """Return a statement with its fields filled. Raises KeyError for an unknown or missing one."""
    if unknown := fields.keys() - set(_FIELD.findall(statement)):
        raise KeyError(f"the statement has no field {', '.join(sorted(unknown))}")
    return _FIELD.sub(lambda match: fields[match[1]], statement)


class Statements:
    """The statements of the .sql file beside a module."""

    def __init__(self, module: str) -> None:
        """Read the file; `module` is the module's __file__."""
        self._texts = read_statements(Path(module).with_suffix(".sql"))

    def get(self, name: str, **fields: str) -> str:
        """Return a statement by name, with its fields filled. Raises KeyError."""
        return insert_fields(self._texts[name], **fields)
