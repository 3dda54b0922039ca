"""Row groups that are decoded without DuckDB: as the builder writes them, and as others do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.store.parquet.data_file import encoding_of
from functions.content.search import CaptureSearch
from functions.snapshot import layout, schema
from functions.snapshot.manifest import DataFile, RowGroup
from functions.store import files
from functions.store.plain_columns import NotPlain, decode_columns
from tests.builder.conftest import World, capture

TYPES = {"BIGINT": pa.int64(), "VARCHAR": pa.string()}
VALUES = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
}


def written(table: str, columns: list[list[Any]], **encoding: Any) -> bytes:
    """Return a row group, from its first page on."""
    names = schema.names(table)
    types = [TYPES[column.type] for column in schema.TABLES[table]]
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=list(names)), out, **(encoding or encoding_of(table)))
    return out.getvalue().to_pybytes()[4:]


def decoded(table: str, data: bytes, rows: int) -> list[list[Any]]:
    types = [column.type for column in schema.TABLES[table]]
    return [[*column] for column in decode_columns(data, types, rows)]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(sorted(layout.PLAIN)))
    count = data.draw(st.integers(1, 50))
    columns = [
        data.draw(st.lists(VALUES[column.type], min_size=count, max_size=count))
        for column in schema.TABLES[table]
    ]
    group = written(table, columns)
    assert decoded(table, group, count) == columns
    cut = data.draw(st.integers(0, len(group) - 1))
    broken = bytearray(group)
    broken[cut] ^= data.draw(st.integers(1, 255))
    for damaged in (group[:cut], bytes(broken)):
        try:
            decoded(table, damaged, count)
        except (NotPlain, UnicodeDecodeError):
            continue


def test_long_texts_are_in_one_page() -> None:
    columns = [[*range(512)], ["ž" * 4096] * 512]
    assert decoded("singles", written("singles", columns), 512) == columns


def test_threads_decode_at_once() -> None:
    texts = [Random(seed).randbytes(200_000).hex() for seed in range(8)]
    groups = [written("singles", [[1], [text]]) for text in texts]

    def decode(number: int) -> bool:
        return all(decoded("singles", groups[number], 1)[1] == [texts[number]] for _ in range(60))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(decode, range(8)))


@pytest.mark.parametrize(
    ("keys", "encoding"),
    [
        ([1, 2, 3], {"compression": "zstd"}),  # a dictionary
        ([1, None, 3], {"compression": "zstd", "use_dictionary": False}),
        ([1, 2, 3], {"compression": "snappy", "use_dictionary": False}),
        (
            [1, 2, 3],
            {
                "compression": "zstd",
                "use_dictionary": False,
                "column_encoding": {"key": "DELTA_BINARY_PACKED"},
            },
        ),
    ],
)
def test_other_encodings_are_refused(keys: list[int | None], encoding: dict[str, Any]) -> None:
    group = written("lookup", [keys, [7, 8, 9]], **encoding)
    with pytest.raises(NotPlain):
        decoded("lookup", group, 3)


@pytest.mark.parametrize("most", [0, 8 << 20])
def test_a_row_group_is_decoded_once_for_look_ups_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    world, counts = World(tmp_path / "store"), Counter[str]()
    world.add([capture(n) for n in range(40)])
    monkeypatch.setattr(files, "_DECODED", most)
    repository, manifest = world.repository(), world.newest()
    read = repository.files._checked.cut

    def cut(file: DataFile, groups: Sequence[RowGroup]) -> Iterator[bytes]:
        counts[file.key.split("/")[1]] += len(groups)
        return read(file, groups)

    monkeypatch.setattr(repository.files._checked, "cut", cut)
    search = CaptureSearch(repository.catalogue, repository.files)
    for number in range(40):
        key = f"cz,example,h{number % 17})/{number:06}"
        (row,) = search.captures(manifest, key, key + " ", None, 2)
        assert row.url == capture(number).url
    assert counts["urls"] == counts["singles"] == (1 if most else 40)
    world.close()
