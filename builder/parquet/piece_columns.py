"""Renders records by columns: the texts of all records at once, from the pieces of their template.

A value is escaped, joined and read as an element without a loop over records. It is apart from the
writer, and imports pyarrow like it.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from builder.parquet.combinations import combine, split_lists
from builder.parquet.pieces import (
    Choice,
    ColumnTest,
    ElementPiece,
    FixedText,
    NoColumnsError,
    Piece,
    PrintedColumn,
    RenderedPiece,
)
from builder.parquet.stored_columns import Arrays
from builder.parquet.texts import bytes_of, read_elements, unescape
from functions.oai.render.loop import END
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
_Value = tuple[str, pa.StringArray]
"""The name of an element, and its value in each record, or null."""


class PieceColumns:
    """Renders records of one kind by their columns, with datestamps as text.

    Every method raises NoColumnsError.
    """

    def __init__(self, columns: Arrays, names: Sequence[str]) -> None:
        """`names` are those of the elements whose values are returned, in order."""
        self._columns, self._names = columns, names
        self._count = len(columns["position"])
        self._checked: set[str] = set()
        self._printed: dict[tuple[str, ...], pa.StringArray] = {}

    def render(
        self, pieces: Sequence[Piece], begin: str, around: Iterable[tuple[str, str]]
    ) -> tuple[pa.StringArray, Mapping[str, pa.ListArray]]:
        """Return the records' texts, and the non-empty values of elements by name.

        Before the pieces stands a tag `begin` with declarations: `around` are those in scope, each
        behind what a text contains that needs it.
        """
        try:
            parts, values = self._all(pieces, None)
            text = _join([begin, *_declarations(parts, around), ">", *parts])
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
    ) -> tuple[_Parts, list[_Value]]:
        """Return the parts of records, and the values of their elements.

        Those of records outside of `mask` mean nothing.
        """
        parts: _Parts = []
        values: list[_Value] = []
        made: _Parts
        found: list[_Value]
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
        column = self._columns[name]
        if name not in self._checked and pa.types.is_string(column.type):
            _check_characters(column)
            self._checked.add(name)
        return column

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

    def _choose(self, choice: Choice, mask: pa.BooleanArray | None) -> tuple[_Parts, list[_Value]]:
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
    ) -> tuple[_Parts, list[_Value]]:
        parts, values = self._all(element.body, mask)
        if values:
            raise NoColumnsError
        value = _join(parts)
        if not isinstance(value, pa.StringArray):
            value = pa.repeat(value, self._count)
        is_free = any(isinstance(one, RenderedPiece) for one in element.body)
        if is_free and b"<" in bytes_of(value):
            raise NoColumnsError
        tag = f"{element.prefix}:{element.name}>"
        found = pc.utf8_trim_whitespace(unescape(value))
        found = pc.if_else(pc.equal(found, ""), None, found)
        return [f"<{tag}", value, f"</{tag}"], [(element.name, found)]

    def _render(
        self, piece: RenderedPiece, mask: pa.BooleanArray | None
    ) -> tuple[_Parts, list[_Value]]:
        """Let Jinja2 render each combination of values once."""
        names = piece.loop.names
        if not names:
            return [*_check_texts(self._texts(piece, 1, {}))], []
        columns, indices = combine([self._columns[name] for name in names], mask)
        count = len(columns[0])
        if not count:
            return [""], []
        values = {
            name: split_lists(column.to_pylist())
            if pa.types.is_list(self._columns[name].type)
            else column.to_pylist()
            for name, column in zip(names, columns, strict=True)
        }
        texts = self._texts(piece, count, values)
        made = pa.array(_check_texts(texts), pa.string())
        return [pc.fill_null(made.take(indices), "")], self._read(made, indices)

    def _texts(
        self, piece: RenderedPiece, count: int, columns: Mapping[str, Sequence[Any]]
    ) -> Sequence[str]:
        page = Page({"position": range(count), **columns})
        texts = piece.loop.render(page, piece.constants).split(END)[:-1]
        if len(texts) != count:
            raise NoColumnsError
        return texts

    def _read(self, texts: pa.StringArray, indices: pa.Int32Array) -> list[_Value]:
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


def _check_texts(texts: Sequence[str]) -> Sequence[str]:
    if any(one in text for text in texts for one in _STRANGE):
        raise NoColumnsError
    _check_characters(pa.array(texts, pa.string()))
    return texts


def _check_characters(column: pa.StringArray) -> None:
    """Raise NoColumnsError for characters that are not printed as they are."""
    data = bytes_of(column)
    if len(data.translate(None, _REMOVED)) != len(data):
        raise NoColumnsError
    if any(one in data for one in _NONCHARACTERS):
        raise NoColumnsError


_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("'", "&#39;"))


def _escape(texts: pa.StringArray) -> pa.StringArray:
    """Escape like escaping.escape."""
    data = bytes_of(texts)
    for character, reference in _ESCAPES:
        if character.encode() in data:
            texts = pc.replace_substring(texts, character, reference)
    return texts


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


def _declarations(parts: _Parts, around: Iterable[tuple[str, str]]) -> Iterator[Any]:
    """Yield the declarations that texts need, a column where only some texts need one."""
    fixed, text = "\0".join(part for part in parts if isinstance(part, str)), None
    for use, declaration in around:
        if use in fixed:
            yield declaration
            continue
        text = _join(parts) if text is None else text
        yield pc.if_else(pc.match_substring(text, use), declaration, "")


@lru_cache(maxsize=64)
def _interleave(count: int, many: int) -> pa.Array:
    """Return the places of the values of each record in turn, where one column follows another."""
    return pa.array(array("i", (n + k * count for n in range(count) for k in range(many))))
