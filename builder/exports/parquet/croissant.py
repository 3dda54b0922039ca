"""Croissant 1.0: describes exported files and their columns for tools of machine learning.

https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.config.configuration import Configuration
from functions.snapshot.manifest import Manifest

_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject"),
            *("fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key"),
            *("md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
            *("replace", "samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
_PARQUET = "application/x-parquet"
"""The name that readers of Croissant know for Parquet."""
_TYPES: Mapping[str, str] = {
    "BOOLEAN": "sc:Boolean",
    "DATE": "sc:Date",
    "DOUBLE": "sc:Float",
    "TIMESTAMP": "sc:DateTime",
    **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "UTINYINT"), "sc:Integer"),
}
"""Data types by DuckDB's types; all others are texts."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an export: name, rows, bytes, and SHA-256 in hexadecimal."""

    name: str
    rows: int
    bytes: int
    sha256: str


def describe(
    configuration: Configuration,
    manifest: Manifest,
    view: str,
    columns: Sequence[tuple[str, str, str]],
    files: Sequence[ExportedFile],
) -> dict[str, Any]:
    """Return the description of Parquet files that hold a view of a snapshot.

    `columns` are name, DuckDB's type and meaning. The files lie beside the description.
    """
    publisher = configuration["repository.publisher"]
    description: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": configuration["repository.name"],
        "description": f"The view {view} of snapshot {manifest.snapshot}: metadata that is also "
        "available by OAI-PMH.",
        "url": configuration["repository.base_url"] or None,
        "license": configuration["rights.statement"] or None,
        "publisher": {"@type": "sc:Organization", "name": publisher} if publisher else None,
        "version": f"{manifest.snapshot}.0.0",
        "datePublished": f"{manifest.effective:%Y-%m-%dT%H:%M:%SZ}",
        "distribution": _list_files(view, files),
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": view,
                "name": view,
                "field": [_describe_column(view, *column) for column in columns],
            }
        ],
    }
    return {name: value for name, value in description.items() if value is not None}


def _list_files(table: str, files: Sequence[ExportedFile]) -> list[dict[str, Any]]:
    """Return each file, and the set of all."""
    objects = [
        {
            "@type": "cr:FileObject",
            "@id": file.name,
            "name": file.name,
            "contentUrl": file.name,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": _PARQUET,
            "sha256": file.sha256,
        }
        for file in files
    ]
    whole = {
        "@type": "cr:FileSet",
        "@id": f"{table}-files",
        "name": f"{table}-files",
        "encodingFormat": _PARQUET,
        "includes": f"{table}-*",
    }
    return [*objects, whole]


def _describe_column(table: str, name: str, type_: str, meaning: str) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table}/{name}",
        "name": name,
        "description": meaning or None,
        "dataType": _TYPES.get(type_.removesuffix("[]").partition("(")[0], "sc:Text"),
        "repeated": True if type_.endswith("[]") else None,
        "source": {"fileSet": {"@id": f"{table}-files"}, "extract": {"column": name}},
    }
    return {name: value for name, value in field.items() if value is not None}
