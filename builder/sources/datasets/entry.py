"""Entries: the rows and the list item that an outcome produces. Pure.

The same outcome gives the same bytes. So does an outcome that finds all files archived before,
because an entry does not say when a file was found again.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builder.http.secrets import clean_text
from builder.sources.datasets import status
from builder.sources.datasets.item import (
    PACKED,
    RAW,
    WITHIN,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestOutcome,
    total_size,
)
from builder.sources.datasets.manifest_file import ORDER
from builder.sources.datasets.result import file_json
from functions.kinds import datasets
from functions.snapshot import item_tables, oai_name
from functions.snapshot.instant import from_digits

LIST, DELETE, LEAVE = "list", "delete", "leave"
"""Action on an item: list it as in the entry, mark it as deleted, or leave it as it is."""

_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SETS = ("platform", "host", "strategy", "status")
_DETAILS = {"packed": PACKED, "within": WITHIN}
"""What the document says of a file where it applies, and the keys in `extra` with the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesetEntry:
    """What an outcome says about an item, and its row in the table of results.

    `identity` is the local part of the dataset's identifier, None if no platform described it, and
    `version_identity` that of its version, if it has one.
    `kind`, `sets` (the most specific, sorted) and `document` (JSON) describe the item to be listed.
    `result` has the columns of functions.snapshot.item_tables.RESULT except identifier.
    """

    deed: str
    identity: str | None
    version_identity: str | None
    kind: str | None
    sets: tuple[str, ...]
    document: str | None
    result: tuple[Any, ...]


def entry(outcome: IngestOutcome) -> FilesetEntry:
    """Return the entry of an outcome.

    Characters that XML forbids become U+FFFD.
    """
    item, row = outcome.item, status.of(outcome.status)
    names = (item.platform_name, item.platform_domain, item.platform_id) if item else ("",)
    identity = oai_name.dataset_identity(*map(_legible, names)) if all(names) else None
    version = _legible(_line(item.version)) if item else ""
    archived = outcome.archived
    strategy = archived.ingest_strategy if archived else ""
    files: list[FilesetManifestFile] = []
    if archived and row.hit:
        files = [file for file in archived.manifest if status.of(file.status or "").hit]
        files.sort(key=lambda file: file.path)
    document = None
    if item and identity and row.lists and bool(files) == row.hit:
        document = _document(outcome, item, files)
    return FilesetEntry(
        deed=DELETE if row.gone else LIST if document else LEAVE,
        identity=identity,
        version_identity=oai_name.version_identity(identity, version)
        if identity and version
        else None,
        kind=("file" if strategy.endswith("-file") else "fileset") if document else None,
        sets=oai_name.most_specific_sets(
            oai_name.join_set(name, document[name]) for name in _SETS if document[name]
        )
        if document
        else (),
        document=_json(document) if document else None,
        result=_result(outcome),
    )


def _document(
    outcome: IngestOutcome, item: FilesetPlatformItem, files: Sequence[FilesetManifestFile]
) -> dict[str, Any]:
    about = item.description
    archived = outcome.archived if files else None
    strategy = archived.ingest_strategy if archived else None
    manifest = outcome.archived.manifest if outcome.archived else ()
    left_out = (*item.withheld, *(file for file in manifest if file.status in status.FAIL_ALONE))
    bundle = None
    if archived and (meta := archived.bundle_file_meta):
        cdx = archived.bundle_cdx
        key = cdx.warc_path if cdx else next((file.key for file in files if file.key), None)
        bundle = {"key": key, "bytes": meta.size_bytes, "sha256": meta.sha256hex}
    name = outcome.status
    if outcome.archived and status.of(name).hit:  # that of the run that archived the dataset
        states = [file.status for file in (*manifest, *left_out)]
        name = status.of_dataset(outcome.archived.ingest_strategy, states)
    verified = {f.path for f in item.manifest or () if any(getattr(f, digest) for digest in ORDER)}
    document = {
        "platform": item.platform_name,
        "host": item.platform_domain,
        "id": item.platform_id,
        "version": _line(item.version),
        "version_order": item.order,
        "edition": _line(about.version),
        "status": name,
        "strategy": strategy,
        "until": _line(item.until),
        "title": _line(about.title),
        "creators": [asdict(person) for person in about.creators],
        "contributors": [asdict(person) for person in about.contributors],
        "publisher": _line(about.publisher),
        "published": _line(about.published),
        "type": _line(about.type) or "Dataset",
        "abstract": (about.abstract or "").strip() or None,
        "subjects": [line for line in map(_line, about.subjects) if line],
        "language": _line(about.language),
        "licences": [asdict(licence) for licence in about.licences],
        "doi": _line(about.doi),
        "url": _line(about.url) or _line(item.web_base_url),
        "related": [asdict(related) for related in about.related],
        "archiveorg_item": _archiveorg(item, strategy),
        "bundle": bundle,
        "bytes": sum(file.size or 0 for file in files),
        "files": [_file(file, file.path in verified) for file in files],
        "withheld": [
            {"path": file.path, "bytes": file.size}
            for file in sorted(left_out, key=lambda file: file.path)
        ],
    }
    assert document.keys() == {c.name for c in datasets.COLUMNS} - datasets.COMPUTED
    return document


def _archiveorg(item: FilesetPlatformItem, strategy: str | None) -> str | None:
    return item.archiveorg_item_name if strategy and strategy.startswith("archiveorg-") else None


def _file(file: FilesetManifestFile, verified: bool) -> dict[str, Any]:
    """Return the columns of a file; it is `verified` if its platform gives a digest.

    Those of _DETAILS are only there with a value. A path that XML cannot hold has no
    `original`, because its %XX are all that a record can say.
    """
    columns = {
        "path": file.path,
        "status": "verified" if verified else "unverified",
        "bytes": file.size,
        "md5": file.md5,
        "sha1": file.sha1,
        "sha256": file.sha256,
        "crc32": file.crc32,
        "mimetype": file.mimetype,
        "key": file.key,
        "place": file.offset,
        "compression": file.compression,
        "platform_url": file.platform_url,
        "terminal_url": file.terminal_url,
        "terminal_dt": file.terminal_dt,
    }
    assert ["identifier", *columns] == [column.name for column in item_tables.FILE]
    raw = file.extra.get(RAW)
    if isinstance(raw, str) and _legible(raw) == raw:
        columns["original"] = raw
    details = {name: file.extra.get(key) for name, key in _DETAILS.items()}
    return columns | {name: value for name, value in details.items() if value is not None}


def _result(outcome: IngestOutcome) -> tuple[Any, ...]:
    item, archived = outcome.item, outcome.archived
    manifest = (archived.manifest if archived else ()) or (item.manifest if item else None)
    total = None if manifest is None else total_size(file.size for file in manifest)
    if total is not None and total >= 1 << 63:  # the column has 64 bits with a sign
        total = None
    strategy = archived.ingest_strategy if archived else None
    bundle = archived.bundle_terminal if archived else None
    values = (
        outcome.request.ingest_type,
        clean_text(outcome.request.base_url),
        from_digits(outcome.at).replace(tzinfo=None),
        status.of(outcome.status).hit,
        outcome.status,
        outcome.detail or None,
        item.platform_name if item else outcome.platform,
        item and item.platform_domain,
        item and item.platform_id,
        item and item.version,
        strategy,
        total,
        None if manifest is None else len(manifest),
        item and _archiveorg(item, strategy),
        archived and archived.bundle_archiveorg_path,
        bundle and bundle.terminal_url,
        bundle and bundle.terminal_dt,
        None if manifest is None else _json([file_json(file) for file in manifest]),
        item and item.until,
    )
    return tuple(_legible(value) if isinstance(value, str) else value for value in values)


def _json(value: Any) -> str:
    return json.dumps(_clean(value), ensure_ascii=False)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _legible(value)
    if isinstance(value, Mapping):
        return {_legible(str(name)): _clean(member) for name, member in value.items()}
    if isinstance(value, Iterable):
        return [_clean(member) for member in value]
    return value


def _line(text: str | None) -> str | None:
    """Return the text with single spaces, or None if it is empty."""
    return " ".join((text or "").split()) or None


def _legible(text: str | None) -> str:
    return _ILLEGIBLE.sub("\ufffd", text or "")
