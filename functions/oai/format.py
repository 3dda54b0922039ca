"""Metadata formats: rows of templates/formats.toml (OAI-PMH 2.0, sections 3.4 and 4.4)."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.oai.request import is_uri
from functions.snapshot.errors import ConfigurationError

TEMPLATES = Path(__file__).parents[2] / "templates"
MANDATORY = "oai_dc"
_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")


@dataclass(frozen=True, slots=True)
class Format:
    """A metadata format; `crosswalks` names for each kind of item the template that makes it."""

    prefix: str
    schema: str
    namespace: str
    crosswalks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Formats:
    """All formats, in the order of the table."""

    rows: tuple[Format, ...]

    def offered(self, kinds: Mapping[str, int]) -> tuple[Format, ...]:
        """Return what a repository with so many items of each kind has; oai_dc always."""
        present = {kind for kind, count in kinds.items() if count > 0}
        return tuple(f for f in self.rows if f.prefix == MANDATORY or present & set(f.crosswalks))

    def of_kind(self, kind: str) -> tuple[Format, ...]:
        """Return the formats in which an item of `kind` can be given."""
        return tuple(f for f in self.rows if kind in f.crosswalks)

    def get(self, prefix: str) -> Format | None:
        """Return the format with that prefix, if there is one."""
        return next((f for f in self.rows if f.prefix == prefix), None)


def load(templates: Path = TEMPLATES) -> Formats:
    """Read the table. Raises ConfigurationError, with the row, for one that is not right."""
    path = templates / "formats.toml"
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"formats.toml cannot be read: {error}") from error
    rows = tuple(_row(row, templates) for row in document.get("format", ()))
    prefixes = [row.prefix for row in rows]
    if MANDATORY not in prefixes or len(set(prefixes)) != len(prefixes):
        raise ConfigurationError(
            f"formats.toml has the prefixes {prefixes}, expected each once, {MANDATORY} among them"
        )
    return Formats(rows)


def _row(row: Any, templates: Path) -> Format:
    try:
        result = Format(**row)
        right = (
            _PREFIX.fullmatch(result.prefix)
            and is_uri(result.schema)
            and is_uri(result.namespace)
            and all(
                (templates / "crosswalks" / name).is_file() for name in result.crosswalks.values()
            )
        )
    except (TypeError, AttributeError) as error:
        raise ConfigurationError(f"formats.toml: {row} is no format: {error}") from error
    if not right:
        raise ConfigurationError(
            f"formats.toml: {row} is no format, expected prefix, schema, namespace, and crosswalks "
            "that are files under crosswalks/"
        )
    return result
