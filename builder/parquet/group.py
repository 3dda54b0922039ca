"""Row groups of Parquet files: their distribution over files, and their byte ranges."""

from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def files_of(groups: Iterator[T], size: int) -> Iterator[Iterator[T]]:
    """Yield groups of `size` for each file. Each must be used up before the next is requested."""
    for first in groups:

        def run(first: T = first) -> Iterator[T]:
            yield first
            for _, group in zip(range(size - 1), groups, strict=False):
                yield group

        yield run()


def span(group: Any) -> tuple[int, int, int]:
    """Return a row group's number of rows, and the offset and length of its bytes."""
    starts, ends = [], []
    for index in range(group.num_columns):
        column = group.column(index)
        start = column.data_page_offset
        if column.has_dictionary_page:
            start = min(start, column.dictionary_page_offset)
        starts.append(start)
        ends.append(start + column.total_compressed_size)
    return group.num_rows, min(starts), max(ends) - min(starts)
