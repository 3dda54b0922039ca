"""Description of a written data file, for a leaf of the manifest."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.parquet.group import span
from functions.snapshot.manifest import Key, RowGroup


@dataclass(frozen=True, slots=True)
class Written:
    """A finished local data file: digest of its bytes, size, footer, row groups."""

    path: Path
    digest: str
    bytes: int
    footer: int
    groups: tuple[RowGroup, ...]


def describe_file(
    path: Path, metadata: Any, bounds: Sequence[tuple[Key, Key]], ends: Sequence[int]
) -> Written:
    """Describe a finished file by its metadata, its row groups' bounds and its parts' ends.

    A part is one row group, or all of them if there is only one part.
    """
    spans = [span(metadata.row_group(n)) for n in range(metadata.num_row_groups)]
    if len(ends) < len(spans):
        ends = [offset + length for _, offset, length in spans]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    return Written(
        path,
        digest,
        path.stat().st_size,
        metadata.serialized_size + 8,  # the footer's length and the closing magic follow it
        tuple(
            RowGroup(first, last, rows, offset, length, end - offset - length)
            for (first, last), (rows, offset, length), end in zip(bounds, spans, ends, strict=True)
        ),
    )
