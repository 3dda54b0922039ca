"""Results: the JSON documents of an outcome, and its summary for people. Pure.

The documents are as in the fileset ingest proposal. Fields of our own: `detail`, `code`,
`retryable`, `updated`, `platform_version`, `until` and `strategy_reason`, and for a file those that
FilesetManifestFile names. `to_json` writes dataclasses; builder.store.documents builds them again.
"""

import dataclasses
import functools
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from builder.http.errors import OUTCOMES
from builder.http.secrets import clean_document, clean_text
from builder.sources.datasets import status
from builder.sources.datasets.item import (
    LEFT_OUT,
    ArchiveStrategyResult,
    Cdx,
    DatasetResource,
    FileMeta,
    FilesetManifestFile,
    IngestOutcome,
    IngestRequest,
    Terminal,
    total_size,
)
from builder.sources.datasets.manifest_file import ORDER, compute_digests, meta, with_digests
from builder.text import tally, visible

FILE = "dataset-file"
"""Ingest type of the second result, for a dataset of one file."""

_LONGEST = 1600  # characters of a detail
_PROPOSED = 11  # fields of a file, the first ones: those of the proposal
_UNITS = ("byte", "kB", "MB", "GB", "TB", "PB")


def result(outcome: IngestOutcome) -> dict[str, Any]:
    """Return the result of a request, without secrets in its URLs; metadata is as it was given."""
    document = _describe_result(outcome)
    biblio = {"html_biblio": document["html_biblio"]}
    return {name: clean_document(value) for name, value in document.items()} | biblio


def _describe_result(outcome: IngestOutcome) -> dict[str, Any]:
    row, resource, item = status.of(outcome.status), outcome.resource, outcome.item
    archived = outcome.archived
    files = archived.manifest if archived else ()
    detail, page = outcome.detail, None
    if len(detail) > _LONGEST:
        detail = detail[: _LONGEST - 1] + "…"
    if resource and resource.body is not None:
        body = FilesetManifestFile(path="", mimetype=resource.media_type)
        page = asdict(meta(with_digests(body, compute_digests([resource.body]))))
    document: dict[str, Any] = {
        "hit": row.hit,
        "status": outcome.status,
        "detail": detail or None,
        "code": outcome.code or None,
        "retryable": status.may_pass(outcome.status, [file.status for file in files]),
        "updated": outcome.at,
        "request": request(outcome.request),
        "hops": [*resource.hops, resource.url] if resource else [],
        "terminal": _landing(resource),
        "file_meta": page,
        "cdx": None,
        "revisit_cdx": None,
        "html_biblio": dict(resource.html_biblio) if resource and resource.html_biblio else None,
    }
    if item is None:
        return document | {"platform_name": outcome.platform}
    manifest = files or item.manifest or ()
    document |= {
        "manifest": [file_json(file) for file in manifest],
        "platform_name": item.platform_name,
        "platform_domain": item.platform_domain,
        "platform_id": item.platform_id,
        "platform_version": item.version,
        "platform_base_url": item.web_base_url,
        "until": item.until,
        "ingest_strategy": archived.ingest_strategy if archived else outcome.strategy,
        "strategy_reason": outcome.reason or None,
        "file_count": len(manifest),
        "total_size": total_size(file.size for file in manifest),
    }
    if (document["ingest_strategy"] or "").startswith("archiveorg-"):
        document["archiveorg_item_name"] = item.archiveorg_item_name
    if archived and row.hit:
        document |= _bundle_json(archived)
    return document


def file_result(outcome: IngestOutcome) -> dict[str, Any] | None:
    """Return the second result, for the file of a one-file dataset archived just now, or None."""
    archived = outcome.archived
    if outcome.status != "success-file" or archived is None:
        return None
    document = {
        "hit": True,
        "status": "success",
        "updated": outcome.at,
        "request": {**request(outcome.request), "ingest_type": FILE},
        **_part(archived.file_file_meta, archived.file_terminal, archived.file_cdx),
    }
    return {name: clean_document(value) for name, value in document.items()}


def results(outcome: IngestOutcome) -> list[dict[str, Any]]:
    """Return one or both results of an outcome."""
    return list(filter(None, (result(outcome), file_result(outcome))))


def request(original: IngestRequest) -> dict[str, Any]:
    """Return the request as the result repeats it."""
    return {**original.given, "base_url": original.base_url, "ingest_type": original.ingest_type}


def file_json(file: FilesetManifestFile) -> dict[str, Any]:
    """Return a file of a manifest: all fields of the proposal, our fields if they have a value."""
    values = {field.name: getattr(file, field.name) for field in fields(file)}
    values["extra"] = dict(file.extra)
    proposed = list(values)[:_PROPOSED]
    return {n: v for n, v in values.items() if n in proposed or v is not None}


def _bundle_json(archived: ArchiveStrategyResult) -> dict[str, Any]:
    strategy = archived.ingest_strategy
    if strategy.endswith("-bundled"):
        part = _part(archived.bundle_file_meta, archived.bundle_terminal, archived.bundle_cdx)
        path = archived.bundle_archiveorg_path
        return {"fileset_bundle": {**part, "archiveorg_bundle_path": path}}
    if strategy.endswith("-file"):
        file = _part(archived.file_file_meta, archived.file_terminal, archived.file_cdx)
        return {"fileset_file": file}
    return {}


def _part(meta: FileMeta | None, terminal: Terminal | None, cdx: Cdx | None) -> dict[str, Any]:
    return {
        "file_meta": meta and asdict(meta),
        "terminal": terminal and asdict(terminal),
        "cdx": cdx and asdict(cdx),
        "revisit_cdx": None,
    }


def _landing(resource: DatasetResource | None) -> Mapping[str, Any] | None:
    """Return the final landing page; unknown values are null if no page was fetched."""
    if resource is None:
        return None
    body = resource.body
    digest = None if body is None else hashlib.sha1(body, usedforsecurity=False).hexdigest()
    return {
        "terminal_url": resource.url,
        "terminal_dt": resource.at,
        "terminal_status_code": resource.status,
        "terminal_sha1hex": digest,
    }


def describe(outcome: IngestOutcome, whole: bool = False) -> str:
    """Return one line about an outcome; with `whole`, more lines list the title and the files."""
    item, archived = outcome.item, outcome.archived
    parts = [f"{outcome.status}  {clean_text(outcome.request.base_url)}"]
    if item is not None:
        where = [item.platform_name, item.platform_domain, item.platform_id]
        version = f" v{item.version}" if item.version else ""
        parts.append(" ".join(word for word in where if word) + version)
        files = (archived.manifest if archived else ()) or item.manifest or ()
        if files:
            available = [file.size for file in files if file.status not in LEFT_OUT]
            total = show_size(sum(size or 0 for size in available))
            total = f"at least {total}" if None in available else total
            left = Counter(str(file.status) for file in files if file.status in LEFT_OUT)
            others = "".join(f", {many:,} {why}" for why, many in sorted(left.items()))
            parts.append(f"{tally(len(available), 'file')}, {total}{others}")
        if item.until:
            parts.append(f"until {item.until}")
    if strategy := archived.ingest_strategy if archived else outcome.strategy:
        parts.append(strategy)
    meaning = f": {OUTCOMES[outcome.code].meaning}" if outcome.code in OUTCOMES else ""
    code = outcome.code and f"({outcome.code}{meaning})"
    detail = " ".join(part for part in (code, outcome.detail) if part)
    if detail and not status.of(outcome.status).hit:
        parts.append(detail)
    lines = [visible(": ".join(parts))]
    if whole:
        if item is not None and item.description.title:
            lines.append(f"  {visible(item.description.title)}")
        if outcome.reason:
            lines.append(f"  {visible(f'{outcome.strategy}: {outcome.reason}')}")
        for file in (item.manifest if item else None) or ():
            size = "size unknown" if file.size is None else show_size(file.size)
            best = next((name for name in ORDER if getattr(file, name)), None)
            proof = f"to be verified with {best}" if best else "no digest to verify it"
            proof = str(file.status) if file.status in LEFT_OUT else proof
            lines.append(visible(f"  {file.path}: {size}, {proof}"))
    return "\n".join(lines)


def show_size(many: int) -> str:
    """Return a number of bytes with a unit, for people."""
    value, unit = float(many), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return tally(many, "byte") if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def to_json(value: Any) -> Any:
    """Convert a value to JSON types; dataclass fields at their default are left out."""
    if value is None or isinstance(value, str | int | float):
        return value
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        return {
            name: to_json(member)
            for name, default in _defaults(kind)
            if (member := getattr(value, name)) != default
        }
    if isinstance(value, tuple | list):
        return [to_json(member) for member in value]
    if isinstance(value, Mapping):
        return {str(name): to_json(member) for name, member in value.items()}
    return value


@functools.cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the names and defaults of a dataclass's fields; MISSING equals no value."""
    return tuple(
        (f.name, f.default if f.default_factory is dataclasses.MISSING else f.default_factory())
        for f in dataclasses.fields(kind)
    )
