"""The forms of records, as forms.toml has them: how each is served as it is, and default paths."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from builder.sources.records.paths import index_fields
from builder.sources.records.record import MarcRecord, SourceRecord
from functions.oai.format import TEMPLATES
from functions.snapshot.errors import ConfigurationError, describe_failure

FOLDER = "crosswalks/records"
"""Where tables are, in our folder of templates and in an operator's."""
AS_IS = "as-is"
"""Instead of a crosswalk: the record as its file has it."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordForm:
    """A form of records: the format in which it is served as it is, and paths by default.

    `identifier`: the first path with a value counts. `fields` are those of pages and of Dublin
    Core, by the names of its elements, and `url`. `oai_dc` is its crosswalk, or AS_IS.
    """

    name: str
    prefix: str
    schema: str
    namespace: str
    identifier: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    oai_dc: str


@cache
def read_forms() -> Mapping[str, RecordForm]:
    """Return the forms of records by name, as forms.toml has them."""
    forms = {}
    for name, row in read_table(TEMPLATES / FOLDER / "forms.toml").items():
        paths = {key: list_texts(value) for key, value in row.get("fields", {}).items()}
        names = (name, row["prefix"], row["schema"], row["namespace"])
        crosswalk = row.get("oai_dc", "fields-oai_dc")
        forms[name] = RecordForm(*names, list_texts(row["identifier"]), paths, crosswalk)
    return forms


def form_of(record: SourceRecord) -> RecordForm:
    """Return the form of a record. UNIMARC is what has a title in 200$a and none in 245."""
    forms = read_forms()
    if isinstance(record.content, MarcRecord):
        fields = index_fields(record.content)
        is_unimarc = "245" not in fields and any(
            code == "a" for f in fields.get("200", ()) for code, _ in f.subfields
        )
        return forms["unimarc" if is_unimarc else "marc"]
    return forms.get(record.form) or forms["xml"]


def list_texts(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the texts of a key that may have one or several."""
    return (value,) if isinstance(value, str) else tuple(value)


def read_table(path: Path) -> dict[str, Any]:
    """Return the document of a file in TOML. Raises ConfigurationError."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {describe_failure(error)}") from error
