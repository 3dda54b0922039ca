"""Texts as columns. It is apart from the writer, and imports pyarrow like it."""

import pyarrow as pa
import pyarrow.compute as pc


def lines_of(data: bytes) -> pa.Table:
    """Return a table of one column, `line`: the lines of a Latin-1 text.

    The text is not copied if it is ASCII.
    """
    text = data if data.isascii() else data.decode("latin-1").encode("utf-8")
    bounds = pa.array([0, len(text)], pa.int64()).buffers()[1]
    whole = pa.LargeStringArray.from_buffers(1, bounds, pa.py_buffer(text))
    return pa.table({"line": pc.split_pattern(whole, "\n").flatten()})
