"""JSON documents: dataclasses that are built of them, and their form in files for people."""

import json
from typing import Any

import msgspec

from functions.snapshot.seal import build as build

encode_json = msgspec.json.Encoder().encode
"""Returns a value as JSON without spaces, in UTF-8."""


def write_indented(document: Any) -> bytes:
    """Return JSON in UTF-8 with an indent of one, and names in order; lone surrogates are escaped.

    The bytes are those of json.dumps, which writes such JSON by a slow way of its own.
    """

    def dump(indent: int | None) -> bytes:
        text = json.dumps(document, ensure_ascii=False, indent=indent, sort_keys=True)
        return text.encode("utf-8", "backslashreplace")

    try:
        return msgspec.json.format(dump(None), indent=1)
    except msgspec.DecodeError:  # it takes no lone surrogates
        return dump(1)
