"""Renders records by columns: the texts of all records at once, from the pieces of their template.

A value is escaped, joined and read as an element without a loop over records. It is apart from the
writer, and imports pyarrow like it.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from builder.parquet.texts import read_elements, unescape
from functions.oai.render.loop import END
from functions.oai.render.pieces import (
    Choice,
    ColumnTest,
    ElementPiece,
    FixedText,
    NoColumnsError,
    Piece,
    PrintedColumn,
    RenderedPiece,
)
from functions.oai.render.template import FAULTS
from functions.oai.repository_duckdb.record_rows import Page

_REMOVED = bytes(byte for byte in range(0x20) if byte not in b"\t\n")
"""Characters that XML forbids, and the one that a parser replaces."""
_NONCHARACTERS = b"\xef\xbf\xbe", b"\xef\xbf\xbf"
_NONE = "None"
"""How a template prints what is NULL."""
_STRANGE = ("<!", "<?", "record>", "xmlns", "\r")
"""What a part may not print: it would hide or change what the other pieces print."""

_Parts = list[Any]
"""Texts, each the same for all records, and arrays of texts."""


class PieceColumns:
    """Renders the records of a page, all of one kind. Every method raises NoColumnsError.

    `datestamps` are their datestamps as text, for printed columns; `since` is for Jinja2.
    """

    def __init__(
        self,
        records: Page,
        datestamps: Sequence[str],
        since: datetime | None,
        names: Sequence[str],
    ) -> None:
        """`names` are those of the elements whose values are returned, in order."""
        self._records, self._since, self._names = records, since, names
        self._count = len(records)
        self._arrays: dict[str, pa.Array] = {}
        self._printed: dict[tuple[str, ...], pa.StringArray] = {}
        self._texts = {"datestamp": datestamps}

    def render(
        self, pieces: Sequence[Piece]
    ) -> tuple[pa.StringArray, Mapping[str, pa.ListArray]]:
        """Return the records' texts, and the non-empty values of elements by name."""
        try:
            parts, values = self._all(pieces, None)
            text = _join(parts)
        except FAULTS as error:
            raise NoColumnsError from error
        if not isinstance(text, pa.StringArray):
            raise NoColumnsError
        found: dict[str, list[pa.StringArray]] = {}
        for name, array_ in values:
            found.setdefault(name, []).append(array_)
        if not found.keys() <= {*self._names}:
            raise NoColumnsError
        return text, {name: _lists(found[name]) for name in self._names if name in found}

    def _all(
        self, pieces: Iterable[Piece], mask: pa.BooleanArray | None
    ) -> tuple[_Parts, list[tuple[str, pa.StringArray]]]:
        """Return the parts of records, and their elements' values; others than `mask` may be odd."""
        parts: _Parts = []
        values: list[tuple[str, pa.StringArray]] = []
        for piece in pieces:
            match piece:
                case FixedText():
                    made, found = [piece.text], []
                case PrintedColumn():
                    made, found = [self._print(piece.names)], []
                case Choice():
                    made, found = self._choose(piece, mask)
                case ElementPiece():
                    made, found = self._element(piece, mask)
                case RenderedPiece():
                    made, found = self._render(piece, mask)
            parts += made
            values += found
        return parts, values

    def _array(self, name: str) -> pa.Array:
        if name not in self._arrays:
            values = self._texts.get(name) or self._records.column(name)
            made = pa.array(values)
            if pa.types.is_null(made.type):
                made = made.cast(pa.string())
            if pa.types.is_string(made.type):
                _check_characters(made)
            self._arrays[name] = made
        return self._arrays[name]

    def _print(self, names: tuple[str, ...]) -> pa.StringArray:
        if names not in self._printed:
            *others, last = names
            text = pc.fill_null(self._array(last).cast(pa.string()), _NONE)
            for name in reversed(others):
                text = pc.if_else(self._is_true(name), self._array(name), text)
            self._printed[names] = _escape(text)
        return self._printed[names]

    def _is_true(self, name: str) -> pa.BooleanArray:
        column = self._array(name)
        if pa.types.is_string(column.type):
            column = pc.not_equal(column, "")
        elif not pa.types.is_boolean(column.type):
            column = pc.not_equal(column, 0)
        return pc.fill_null(column, False)

    def _passes(self, test: ColumnTest, mask: pa.BooleanArray | None) -> pa.BooleanArray:
        if test.kind == "true":
            return self._is_true(test.name)
        column = self._array(test.name)
        if test.kind == "none":
            return pc.is_null(column)
        missing = pc.is_null(column)
        if pc.any(missing if mask is None else pc.and_(missing, mask)).as_py():
            raise NoColumnsError  # an error in Python
        return pc.fill_null(pc.match_substring(column, test.text), False)

    def _choose(
        self, choice: Choice, mask: pa.BooleanArray | None
    ) -> tuple[_Parts, list[tuple[str, pa.StringArray]]]:
        passed = self._passes(choice.test, mask)
        failed = pc.invert(passed)
        if choice.negated:
            passed, failed = failed, passed
        if pc.all(passed).as_py():
            return self._all(choice.then, mask)
        if pc.all(failed).as_py():
            return self._all(choice.otherwise, mask)
        made, found = [], []
        for own, pieces in ((passed, choice.then), (failed, choice.otherwise)):
            parts, values = self._all(pieces, own if mask is None else pc.and_(own, mask))
            made.append(_join(parts))
            found += [(name, pc.if_else(own, value, None)) for name, value in values]
        return [pc.if_else(passed, *made)], found

    def _element(
        self, element: ElementPiece, mask: pa.BooleanArray | None
    ) -> tuple[_Parts, list[tuple[str, pa.StringArray]]]:
        parts, values = self._all(element.body, mask)
        if values:
            raise NoColumnsError
        value = _join(parts)
        if not isinstance(value, pa.StringArray):
            value = pa.repeat(value, self._count)
        if any(isinstance(one, RenderedPiece) for one in element.body):
            if pc.any(pc.match_substring(value, "<")).as_py():
                raise NoColumnsError
        tag = f"{element.prefix}:{element.name}>"
        found = pc.utf8_trim_whitespace(unescape(value))
        found = pc.if_else(pc.equal(found, ""), None, found)
        return [f"<{tag}", value, f"</{tag}"], [(element.name, found)]

    def _render(
        self, piece: RenderedPiece, mask: pa.BooleanArray | None
    ) -> tuple[_Parts, list[tuple[str, pa.StringArray]]]:
        """Let Jinja2 render each combination of values once."""
        names = piece.loop.names
        if not names:
            text = piece.loop.render(Page({"position": (0,)}), piece.constants, self._since)
            return [*_check_texts(text.split(END)[:1])], []
        columns = [self._records.column(name) for name in names]
        rows: Iterable[Any] = columns[0] if len(names) == 1 else zip(*columns, strict=True)
        chosen = None if mask is None else mask.to_pylist()
        keys = [*rows] if chosen is None else [*compress(rows, chosen)]
        try:
            seen = dict.fromkeys(keys)
        except TypeError:  # of lists
            keys = [_freeze(key, len(names)) for key in keys]
            seen = dict.fromkeys(keys)
        seen = {key: number for number, key in enumerate(seen)}
        distinct = [[*seen]] if len(names) == 1 else [*zip(*seen, strict=True)]
        if not seen:
            return [""], []
        page = Page({"position": range(len(seen)), **dict(zip(names, distinct, strict=True))})
        texts = piece.loop.render(page, piece.constants, self._since).split(END)[:-1]
        if len(texts) != len(seen):
            raise NoColumnsError
        codes = [seen[key] for key in keys]
        if chosen is not None:
            given = iter(codes)
            codes = [next(given) if one else None for one in chosen]
        indices = pa.array(codes, pa.int32())
        made = pa.array(_check_texts(texts))
        return [pc.fill_null(made.take(indices), "")], self._read(made, indices)

    def _read(
        self, texts: pa.StringArray, indices: pa.Int32Array
    ) -> list[tuple[str, pa.StringArray]]:
        """Return the values of elements that Jinja2 printed."""
        if not self._names or not pc.any(pc.match_substring(texts, "<dc:")).as_py():
            return []
        elements = read_elements(texts, "dc", self._names, None)
        if elements is None:
            raise NoColumnsError
        found = []
        for name, lists in elements.items():
            values = lists.to_pylist()
            for place in range(max(len(one or ()) for one in values)):
                each = [one[place] if one and len(one) > place else None for one in values]
                found.append((name, pa.array(each, pa.string()).take(indices)))
        return found


def _freeze(key: Any, many: int) -> Any:
    """Return a combination of values with tuples instead of lists."""
    if many == 1:
        return tuple(key) if isinstance(key, list) else key
    return tuple(tuple(one) if isinstance(one, list) else one for one in key)


def _check_texts(texts: Sequence[str]) -> Sequence[str]:
    if any(one in text for text in texts for one in _STRANGE):
        raise NoColumnsError
    _check_characters(pa.array(texts, pa.string()))
    return texts


def _check_characters(column: pa.StringArray) -> None:
    """Raise NoColumnsError for characters that are not printed as they are."""
    data = _bytes(column)
    if len(data.translate(None, _REMOVED)) != len(data):
        raise NoColumnsError
    if any(one in data for one in _NONCHARACTERS):
        raise NoColumnsError


_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("'", "&#39;"))


def _escape(texts: pa.StringArray) -> pa.StringArray:
    """Escape like template_filters.escape."""
    data = _bytes(texts)
    for character, reference in _ESCAPES:
        if character.encode() in data:
            texts = pc.replace_substring(texts, character, reference)
    return texts


def _bytes(texts: pa.StringArray) -> bytes:
    """Return the characters of all texts in UTF-8."""
    _, bounds, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    places = memoryview(bounds).cast("i")
    return bytes(memoryview(data)[places[texts.offset] : places[texts.offset + len(texts)]])


def _join(parts: _Parts) -> Any:
    """Return texts joined for each record: an array, or a scalar if all are the same."""
    merged: _Parts = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "" or not isinstance(part, str):
            merged.append(part)
    if not merged:
        return pa.scalar("")
    if len(merged) == 1:
        return pa.scalar(merged[0]) if isinstance(merged[0], str) else merged[0]
    return pc.binary_join_element_wise(*merged, "")


def _lists(values: Sequence[pa.StringArray]) -> pa.ListArray:
    """Return for each record the list of its values that are not null, or null."""
    count, many = len(values[0]), len(values)
    counts = values[0].is_valid().cast(pa.int32())
    for other in values[1:]:
        counts = pc.add(counts, other.is_valid().cast(pa.int32()))
    flat = values[0] if many == 1 else pa.concat_arrays(values).take(_interleave(count, many))
    ends = pc.cumulative_sum(counts)
    starts = pc.if_else(pc.equal(counts, 0), None, pc.subtract(ends, counts))
    offsets = pa.concat_arrays([starts, ends.slice(count - 1)])
    return pa.ListArray.from_arrays(offsets, flat.drop_null())


@lru_cache(maxsize=64)
def _interleave(count: int, many: int) -> pa.Array:
    """Return the places of the values of each record in turn, where one column follows another."""
    return pa.array(array("i", (n + k * count for n in range(count) for k in range(many))))


def add_namespaces(
    texts: pa.StringArray, begin: str, around: Iterable[tuple[str, str]]
) -> pa.StringArray:
    """Return texts behind a tag `begin` with declarations.

    `around` are the declarations in scope, each with what a text contains that needs it.
    """
    added: _Parts = [begin]
    for use, declaration in around:
        used = pc.match_substring(texts, use)
        if pc.all(used).as_py():
            added.append(declaration)
        elif pc.any(used).as_py():
            added.append(pc.if_else(used, declaration, ""))
    return _join([*added, ">", texts])
