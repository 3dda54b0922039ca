"""Results: the JSON documents of an outcome, as in the fileset ingest proposal. Pure.

Fields of our own: `detail`, `code`, `retryable`, `updated`, `platform_version`, `until` and
`strategy_reason`, and for a file those that FilesetManifestFile names.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from builder.filesets import status
from builder.filesets.item import (
    ArchiveStrategyResult,
    Cdx,
    DatasetResource,
    FileMeta,
    FilesetManifestFile,
    IngestOutcome,
    IngestRequest,
    Terminal,
)

FILE = "dataset-file"
"""Ingest type of the second result, for a dataset of one file."""

_LONGEST = 1600  # characters of a detail
_PROPOSED = (
    "path", "size", "md5", "sha1", "sha256", "mimetype", "extra", "status",
    "platform_url", "terminal_url", "terminal_dt",
)  # fmt: skip


def result(outcome: IngestOutcome) -> dict[str, Any]:
    """Return the result of a request."""
    row, resource, item = status.of(outcome.status), outcome.resource, outcome.item
    archived = outcome.archived
    told: dict[str, Any] = {
        "hit": row.hit,
        "status": outcome.status,
        "detail": _short(outcome.detail),
        "code": outcome.code or None,
        "retryable": row.retryable,
        "updated": outcome.at,
        "request": request(outcome.request),
        "hops": [*resource.hops, resource.url] if resource else [],
        "terminal": _landing(resource),
        "file_meta": _page(resource),
        "cdx": None,
        "revisit_cdx": None,
        "html_biblio": dict(resource.html_biblio) if resource and resource.html_biblio else None,
    }
    if item is None:
        return told
    manifest = (archived.manifest if archived else ()) or item.manifest or ()
    sizes = [file.size for file in manifest]
    told |= {
        "manifest": [file_json(file) for file in manifest],
        "platform_name": item.platform_name,
        "platform_domain": item.platform_domain,
        "platform_id": item.platform_id,
        "platform_version": item.version,
        "platform_base_url": item.web_base_url,
        "until": item.until,
        "ingest_strategy": archived.ingest_strategy if archived else outcome.strategy,
        "strategy_reason": outcome.reason or None,
        "file_count": len(sizes),
        "total_size": None if None in sizes else sum(size for size in sizes if size is not None),
    }
    strategy = told["ingest_strategy"] or ""
    if strategy.startswith("archiveorg-"):
        told["archiveorg_item_name"] = item.archiveorg_item_name
    if archived and row.hit:
        told |= _bundle_json(archived)
    return told


def file_result(outcome: IngestOutcome) -> dict[str, Any] | None:
    """Return the second result, for the file of a one-file dataset archived just now, or None."""
    archived = outcome.archived
    if outcome.status != "success-file" or archived is None:
        return None
    return {
        "hit": True,
        "status": "success",
        "updated": outcome.at,
        "request": {**request(outcome.request), "ingest_type": FILE},
        **_part(archived.file_file_meta, archived.file_terminal, archived.file_cdx),
    }


def results(outcome: IngestOutcome) -> list[dict[str, Any]]:
    """Return one or both results of an outcome."""
    return [found for found in (result(outcome), file_result(outcome)) if found is not None]


def request(asked: IngestRequest) -> dict[str, Any]:
    """Return the request as the result repeats it."""
    given = {"base_url": asked.base_url, "ingest_type": asked.ingest_type}
    return {**asked.given, **given}


def file_json(file: FilesetManifestFile) -> dict[str, Any]:
    """Return a file of a manifest: all fields of the proposal, our fields if they have a value."""
    found = {field.name: getattr(file, field.name) for field in fields(file)}
    found["extra"] = dict(file.extra)
    return {n: found[n] for n in _PROPOSED} | {
        n: v for n, v in found.items() if n not in _PROPOSED and v is not None
    }


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


def _page(resource: DatasetResource | None) -> Mapping[str, Any] | None:
    if resource is None or resource.body is None:
        return None
    body = resource.body
    return asdict(
        FileMeta(
            size_bytes=len(body),
            md5hex=hashlib.md5(body, usedforsecurity=False).hexdigest(),
            sha1hex=hashlib.sha1(body, usedforsecurity=False).hexdigest(),
            sha256hex=hashlib.sha256(body).hexdigest(),
            mimetype=resource.media_type,
        )
    )


def _short(text: str) -> str | None:
    return (text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…") or None
