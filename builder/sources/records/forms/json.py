"""JSON: MARC-in-JSON and other objects, in an array, in lines, one behind the other or alone."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain

from builder.sources.records.forms import form
from builder.sources.records.forms.columns import flatten, make_columns
from builder.sources.records.forms.form import ByteSource, Piece
from builder.sources.records.forms.marcxml import Repair, fit_leader, make_marc
from builder.sources.records.record import (
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordItem,
    RecordsError,
)

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, strict=False)  # numbers as they stand
_WRAPPERS = ("data", "records", "items", "results")
_BETWEEN = re.compile(r"[\s,]*")
_BEGIN = re.compile(r"\ufeff?\s*(?:\[\s*)?\{\s*[\"}]")


def recognise(head: bytes, is_declared: bool = False) -> bool:
    """Return whether a file begins as an object of JSON, or as an array of objects."""
    return bool(_BEGIN.match(head.decode(form.find_encoding(head, "utf-8"), "replace")))


def read(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the records of a file. Raises RecordsError where it cannot be read on.

    Of one object around all, `element` names the member that has the records.
    """
    with form.open_source(source) as stream:
        head = stream.read(form.HEAD)
        texts = form.read_text(head, stream, form.find_encoding(head, options.encoding))
        pieces = (
            Piece(place, text.encode("utf-8", "surrogateescape"))
            for place, text in _split(texts, options.element)
        )
        yield from form.read_pieces(pieces, "json", options, _parse)


def _parse(piece: Piece, digest: bytes) -> Iterator[RecordItem]:
    """Return the record of an object. Raises ValueError."""
    value = _DECODER.decode(piece.data.decode())
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    leader, fields = value.get("leader"), value.get("fields")
    if not isinstance(leader, str) or not isinstance(fields, list):
        return make_columns(piece.place, flatten(value), digest)
    pairs = (pair for members in fields for pair in dict(members).items())
    texts, repairs = tuple(_read_field(tag, field) for tag, field in pairs), list[Repair]()
    record = MarcRecord(fit_leader(leader, repairs), texts)
    return make_marc(piece.place, record, repairs, digest)


def _read_field(tag: str, value: object) -> MarcField:
    """Return a field of MARC-in-JSON: a text, or an object with subfields. Raises ValueError."""
    if isinstance(value, str):
        return MarcField(tag.zfill(3), data=value)
    if not isinstance(value, Mapping) or not isinstance(value.get("subfields"), list):
        raise ValueError(f"field {tag} is neither a text nor subfields")
    parts = [(code, str(text)) for part in value["subfields"] for code, text in dict(part).items()]
    indicators = "".join(str(value.get(name) or " ")[:1] for name in ("ind1", "ind2"))
    return MarcField(tag.zfill(3), indicators, "", tuple(parts))


def _split(texts: Iterator[str], element: str | None) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each value of a file. Raises RecordsError.

    In a file of lines, a line that is not JSON harms no other.
    """
    buffer = next(texts, "").lstrip("\ufeff \t\r\n")
    if element:
        buffer = _find_member(buffer + "".join(texts), element)
    with suppress(ValueError):
        if isinstance(json.loads(buffer.partition("\n")[0], strict=False), dict):
            for number, line in enumerate(form.read_lines(chain((buffer,), texts)), 1):
                if line.strip():
                    yield f"line {number}", line.strip()
            return
    is_array, number = buffer.startswith("["), 0
    at = int(is_array)
    while True:
        match = _BETWEEN.match(buffer, at)
        at = match.end() if match else at
        if is_array and buffer.startswith("]", at):
            return
        try:
            value, end = _DECODER.raw_decode(buffer, at)
        except (ValueError, RecursionError) as error:
            more = next(texts, "")
            if not more and not is_array and not buffer[at:]:
                return
            if not more or len(buffer) - at > form.LONGEST:
                raise RecordsError(f"it is no JSON behind record {number}: {error}") from error
            buffer, at = buffer[at:] + more, 0
            continue
        members = [] if is_array or number else _unwrap(value)
        for text in map(json.dumps, members) if members else (buffer[at:end],):
            number += 1
            yield f"record {number}", text
        at = end


def _unwrap(value: object) -> list[object]:
    """Return the objects that an answer of an API has in one member, as JSON:API says."""
    if not isinstance(value, dict):
        return []
    for name in _WRAPPERS:
        members = value.get(name)
        members = [members] if name == "data" and isinstance(members, dict) else members
        if isinstance(members, list) and members and all(isinstance(m, dict) for m in members):
            return members
    return []


def _find_member(text: str, element: str) -> str:
    """Return the member, whose name may be dotted, of one object around all records."""
    try:
        value = _DECODER.decode(text)
        for name in element.split("."):
            value = value[name]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordsError(f"it is no JSON with a member {element}: {error!r}") from error
    return json.dumps(value if isinstance(value, list) else [value])
