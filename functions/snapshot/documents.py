"""Documents: the JSON texts with the fields of items other than captures."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from functions.snapshot import markup, obi

TEMPLATE, HARVESTED = "template", "harvested"
MEMBERS = tuple(column.name for column in obi.TEMPLATE)
"""The members of a template's document."""


def read(kind: str, text: str) -> dict[str, Any]:
    """Return the fields of an item of that kind; values of templates are plain text (markup).

    Raises ValueError or TypeError if the text is no JSON object.
    """
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("a document is no object")
    if kind == TEMPLATE:
        fields.setdefault(obi.GATHERED)
        if markup.has_markup(text):
            markup.clean_template(fields)
    return fields


def read_members(texts: Sequence[str | None], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return some members of templates' documents as columns; None for what is missing.

    Values are as `read` returns them. Raises ValueError for a text that is no JSON object.
    """
    decode, nothing = _template_decoder(tuple(names)), (None,) * len(names)
    rows = []
    for text in texts:
        row = nothing if text is None else decode(text)
        if text is not None and markup.has_markup(text):
            members = dict(zip(names, row, strict=True))
            markup.clean_template(members)
            row = tuple(members.values())
        rows.append(row)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: [*column] for name, column in zip(names, columns, strict=True)}


@lru_cache(maxsize=64)
def _template_decoder(names: tuple[str, ...]) -> Callable[[str], tuple[Any, ...]]:
    """Return a function that reads members of a document, in order, and skips all others.

    A text that no list or record needs takes a quarter of the time that Python's json takes.
    """
    import msgspec

    members = msgspec.defstruct("TemplateMembers", [(name, Any, None) for name in names], gc=False)
    decode, values = msgspec.json.Decoder(members).decode, msgspec.structs.astuple
    return lambda text: values(decode(text))


def write_compact(document: Any) -> bytes:
    """Return JSON in UTF-8 without spaces; the document's texts have no lone surrogates.

    It takes a tenth of the time of Python's json, and gives the same bytes.
    """
    import msgspec

    return msgspec.json.encode(document)
