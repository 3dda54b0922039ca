"""Texts as columns: the lines of a text, and the elements of many small XML documents.

It is apart from the writer, and imports pyarrow like it: a loop in Python over each element takes
several times as long.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

_MARK = 3
"""Characters by which the names of elements differ."""
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&#34;", '"'), ("&#39;", "'"), ("&amp;", "&"))
"""References and their characters; the ampersand's is the last."""


def lines_of(data: bytes) -> pa.Table:
    """Return a table of one column, `line`: the lines of a Latin-1 text.

    The text is not copied if it is ASCII.
    """
    text = data if data.isascii() else data.decode("latin-1").encode("utf-8")
    bounds = pa.array([0, len(text)], pa.int64()).buffers()[1]
    whole = pa.LargeStringArray.from_buffers(1, bounds, pa.py_buffer(text))
    return pa.table({"line": pc.split_pattern(whole, "\n").flatten()})


class TextColumn(Sequence[bytes]):
    """A column of texts, as texts in UTF-8; less than 2 GB in all."""

    def __init__(self, column: pa.StringArray) -> None:
        self.column = column
        _, bounds, data = column.buffers()
        bounds_ = memoryview(bounds).cast("i")
        self._bounds = bounds_[column.offset : column.offset + len(column) + 1]
        self._data = memoryview(data)

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        start, end = self._bounds[index], self._bounds[index + 1]
        return bytes(self._data[start:end])

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, self.views())

    def views(self) -> Iterator[memoryview]:
        """Return an iterator over the texts, which are not copied."""
        data, bounds = self._data, self._bounds.tolist()
        return (data[start:end] for start, end in pairwise(bounds))


def texts_of(texts: Sequence[bytes]) -> pa.StringArray:
    """Return texts in UTF-8 as a column; less than 2 GB in all."""
    if isinstance(texts, TextColumn):
        return texts.column
    bounds = array("i", accumulate(map(len, texts), initial=0))
    data = pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(bounds), data)


def longest(texts: Sequence[bytes]) -> int:
    """Return the bytes of the longest text, 0 if there is none."""
    if isinstance(texts, TextColumn):
        return pc.max(pc.binary_length(texts.column)).as_py() or 0
    return max(map(len, texts), default=0)


def bytes_of(texts: pa.StringArray) -> bytes:
    """Return the characters of all texts in UTF-8, without anything between them."""
    _, bounds, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    places = memoryview(bounds).cast("i")
    return bytes(memoryview(data)[places[texts.offset] : places[texts.offset + len(texts)]])


def list_values(values: Sequence[Any] | pa.Array) -> Sequence[Any]:
    """Return the values of a column as Python objects."""
    return values.to_pylist() if isinstance(values, pa.Array) else values


def read_elements(
    texts: pa.StringArray, prefix: str, names: Sequence[str], end: str | None
) -> Mapping[str, pa.ListArray] | None:
    """Return the non-empty values of elements by name, for each text; null where it has none.

    Only what comes before `end` is read, if that is given. Return None if a parser is needed: for
    elements with attributes, other names or inner elements. The texts may have no other references
    than those of _ESCAPES, and no sections and comments. Names differ in their first letters.
    """
    if end is not None:
        texts = pc.list_element(pc.split_pattern(texts, end, max_splits=1), 0)
    lists = pc.split_pattern(texts, f"<{prefix}:")
    pieces, parents = lists.flatten(), pc.list_parent_indices(lists)
    marks = pc.dictionary_encode(pc.utf8_slice_codeunits(pieces, 0, _MARK))
    codes = {mark: code for code, mark in enumerate(marks.dictionary.to_pylist())}
    left, found = len(pieces) - len(texts), {}
    for name in names:
        if name[:_MARK] not in codes:
            continue
        mask = pc.equal(marks.indices, codes[name[:_MARK]])
        values = _values(pieces.filter(mask), name, f"</{prefix}:{name}>")
        if values is None:
            return None
        left -= len(values)
        full = pc.not_equal(values, "")
        found[name] = _lists(values.filter(full), parents.filter(mask).filter(full), len(texts))
    return found if left == 0 else None


def _values(pieces: pa.StringArray, name: str, end: str) -> pa.StringArray | None:
    """Return the values of elements without what surrounds them; None if one is not plain."""
    if not pc.all(pc.starts_with(pieces, f"{name}>")).as_py():
        return None
    parts = pc.split_pattern(pieces, end, max_splits=1)
    values = pc.list_element(parts, 0)
    if len(parts.flatten()) != 2 * len(pieces) or pc.any(pc.match_substring(values, "<")).as_py():
        return None
    values = pc.replace_substring(values, f"{name}>", "", max_replacements=1)
    return pc.utf8_trim_whitespace(unescape(values))


def unescape(texts: pa.StringArray) -> pa.StringArray:
    """Replace the references of _ESCAPES by their characters."""
    if b"&" in bytes_of(texts):
        for reference, character in _ESCAPES:
            texts = pc.replace_substring(texts, reference, character)
    return texts


def _lists(values: pa.StringArray, parents: pa.Array, count: int) -> pa.ListArray:
    """Return for each of `count` parents the list of its values, or null."""
    if len(values) == count and parents.equals(pa.array(range(count), parents.type)):
        return pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), values)
    counts = [0] * count
    for parent in parents.to_pylist():
        counts[parent] += 1
    ends = accumulate(counts)
    starts = [end - many if many else None for end, many in zip(ends, counts, strict=True)]
    return pa.ListArray.from_arrays(pa.array([*starts, len(values)], pa.int32()), values)
