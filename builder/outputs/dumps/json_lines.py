"""Records as JSON lines: one object a line, in UTF-8, with keys in a fixed order.

The keys are identifier, datestamp, sets, kind and deleted. Those of a live record's kind follow in
the order of their columns (functions.kinds.KINDS). A field without a value has no key.
"""

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from builder.store.documents import encode_json
from functions.kinds import CAPTURES, KINDS
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant

NAME = "jsonl"

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FIELDS = {name: [column.name for column in kind.columns] for name, kind in KINDS.items()}


def encode_lines(records: Sequence[PublishedRecord]) -> list[bytes]:
    """Return each record as a line that ends with a line break."""
    return [_encode_record(record) + b"\n" for record in records]


def _encode_record(record: PublishedRecord) -> bytes:
    values: dict[str, Any] = {
        "identifier": record.identifier,
        "datestamp": instant.to_text(record.datestamp),
        "sets": record.sets,
        "kind": record.kind,
        "deleted": record.deleted,
    }
    for name in () if record.deleted else _FIELDS[record.kind]:
        if (value := record.fields.get(name)) is not None:
            values[name] = _plain(value)
    # Captures have texts and whole numbers alone, which both encoders write alike.
    return encode_json(values) if record.kind in CAPTURES else _dumps(values).encode()


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: a time as in OAI-PMH, bytes in base64."""
    if isinstance(value, datetime):
        return f"{value.isoformat()}Z"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
