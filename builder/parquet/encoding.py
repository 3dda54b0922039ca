"""Encodings and compression of each table's columns in Parquet. Pure.

They were chosen by measurement (bench/README.md). A dictionary helps for values that repeat within
a row group and costs space for others. DuckDB and pyarrow read all of these encodings.
"""

from dataclasses import dataclass

from functions.snapshot import schema

_FRONT_CODED = ("identifier", "url", "url_surtkey", "refers_to_url", "surt")
_DISTINCT = (
    *("content_digest", "fetch_date", "fetch_redirect", "refers_to_date", "title"),
    *("document", "detail", "manifest"),
)
_BY_TYPE = {
    "BIGINT": "DELTA_BINARY_PACKED",
    "INTEGER": "DELTA_BINARY_PACKED",
    "TIMESTAMP": "BYTE_STREAM_SPLIT",
}
# A higher level makes digests larger, and most other columns no smaller.
_THOROUGH = ("url", "url_surtkey", "surt", "refers_to_url", "title", "document", "manifest")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table's columns are written, by their paths in Parquet.

    `encodings` are Parquet's names for columns without a dictionary, `dictionaries` the other
    columns, `levels` the levels of Zstandard.
    """

    encodings: dict[str, str]
    dictionaries: list[str]
    levels: dict[str, int]


def of(table: str) -> Encoding:
    """Return the encoding of the columns of `table`."""
    encodings = {}
    paths = []
    for column in schema.TABLES[table]:
        path = f"{column.name}.list.element" if column.type.endswith("[]") else column.name
        paths.append(path)
        if column.type in _BY_TYPE:
            encodings[path] = _BY_TYPE[column.type]
        elif column.name in _FRONT_CODED:
            encodings[path] = "DELTA_BYTE_ARRAY"
        elif column.name in _DISTINCT:
            encodings[path] = "DELTA_LENGTH_BYTE_ARRAY"
    levels = {path: 3 if path in _THOROUGH else 1 for path in paths}
    return Encoding(encodings, [path for path in paths if path not in encodings], levels)
