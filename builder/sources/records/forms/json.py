"""JSON: MARC-in-JSON and other objects, in an array, in lines, one behind the other or alone."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from builder.sources.records.forms import form
from builder.sources.records.forms.columns import flatten, make_columns
from builder.sources.records.forms.form import ByteSource, Piece
from builder.sources.records.forms.marcxml import Repair, fit_leader, make_marc
from builder.sources.records.record import (
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
)

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, strict=False)  # numbers as they stand
_WRAPPERS = ("data", "records", "items", "results")
_OWN = frozenset(("id", "_id", "@id", "identifier", "uuid", "doi", "title", "name", "label"))
"""Members that a record has, and an answer of an API around records has not."""
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|(?P<open>))|[\[\]{}]', re.DOTALL)
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
        yield from form.read_pieces(_split(texts, options.element), "json", options, _parse)


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


def _split(texts: Iterator[str], element: str | None) -> Iterator[Piece | RecordFault]:
    """Yield each value of a file. Raises RecordsError.

    In a file of lines, a line that is not JSON harms no other.
    """
    buffer = next(texts, "").lstrip("\ufeff \t\r\n")
    if element:
        buffer = _find_member(buffer + "".join(texts), element)
    first, _, rest = buffer.partition("\n")
    while buffer.startswith("{") and not rest.strip() and len(buffer) <= form.LONGEST:
        if not (more := next(texts, "")):
            break
        buffer += more
        first, _, rest = buffer.partition("\n")
    # An object that is alone may be an answer of an API around all records.
    if rest.strip() and _is_whole(first.strip()):
        for number, line in enumerate(form.read_lines(chain((buffer,), texts)), 1):
            if len(line) > form.LONGEST:
                yield RecordFault(f"line {number}", "bad-record", None, form.TOO_LONG)
            elif line.strip():
                yield _make_piece(f"line {number}", line.strip())
        return
    is_array, number = buffer.startswith("["), 0
    at = int(is_array)
    while True:
        match = _BETWEEN.match(buffer, at)
        at = match.end() if match else at
        if is_array and buffer.startswith("]", at):
            return
        try:
            value, end = _decode(buffer, at)
        except ValueError as error:
            # As much again as there is: then a long value is not read anew too often.
            more = "".join(islice(texts, 1 + (len(buffer) - at) // form.CHUNK))
            if not more and not is_array and not buffer[at:]:
                return
            if not more or len(buffer) - at > form.LONGEST:
                raise RecordsError(f"it is no JSON behind record {number}: {error}") from error
            buffer, at = buffer[at:] + more, 0
            continue
        members = [] if is_array or number else _unwrap(value)
        while members and not buffer[end:].strip() and (more := next(texts, "")):
            buffer += more
        is_alone = bool(members) and not buffer[end:].strip()
        for text in map(json.dumps, members) if is_alone else (buffer[at:end],):
            number += 1
            yield _make_piece(f"record {number}", text)
        at = end


def _make_piece(place: str, text: str) -> Piece:
    return Piece(place, text.encode("utf-8", "surrogateescape"))


def _is_whole(line: str) -> bool:
    """Return whether a line is one object, however deep."""
    try:
        return isinstance(json.loads(line, strict=False), dict)
    except RecursionError:
        return line.startswith("{") and line.endswith("}")
    except ValueError:
        return False


def _decode(text: str, start: int) -> tuple[object, int]:
    """Return the value that begins at a place, and its end; None for one that is nested too deep.

    Raises ValueError.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        depth = 0
        for token in _TOKEN.finditer(text, start):
            depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
            if token["open"] is not None:
                break
            if not depth:
                return None, token.end()
        raise ValueError("it has no end") from error


def _unwrap(value: object) -> list[object]:
    """Return the objects that an answer of an API has in one member, as JSON:API says.

    What has an identifier or a title of its own is a record.
    """
    if not isinstance(value, dict) or not _OWN.isdisjoint(map(str.lower, value)):
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
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        where = f": {error}" if isinstance(error, json.JSONDecodeError) else ""
        raise RecordsError(f"it is no JSON with a member {element}{where}") from error
    return json.dumps(value if isinstance(value, list) else [value])
