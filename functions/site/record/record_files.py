"""The files of a dataset or a template, each with the address of its stored copy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from functions.kinds import find_kind
from functions.reading.repository import ObjectLife, PublishedRecord
from functions.site.fields import is_web, weigh
from functions.site.page import IMAGES, LARGEST_IMAGE, TABLE_ROWS, PageRequest, PageTable
from functions.snapshot import obi

_ROOM = 30_000
"""Characters of files with their markup escaped: a page should stay below 150 kB."""
_COLUMNS = ("path", "mimetype", "bytes", "sha256")


def read_lives(request: PageRequest, record: PublishedRecord) -> Sequence[ObjectLife]:
    """Return the life of a template and of the files that it names. Raises StoreError."""
    handle = record.fields.get("handle")
    if not find_kind(record.kind).named_files or not handle:
        return ()
    gathered = record.fields.get(obi.GATHERED) or {}
    return request.parts.repository.template_files(request.manifest, handle, gathered)


def list_files(
    request: PageRequest, record: PublishedRecord, lives: Sequence[ObjectLife]
) -> list[dict[str, Any]]:
    """Return the files of a dataset or a template, each with the address of its copy."""
    kind = find_kind(record.kind)
    if kind.has_files:
        return [_link_file(request, record, file) for file in record.fields.get("files") or ()]
    if kind.named_files:
        by_url = {life.url: life for life in lives if life.url}
        return [
            {
                "path": url,
                "mimetype": media_type,
                "url": url if is_web(url) else None,
                "life": life,
                "bytes": life and life.bytes,
                "sha256": life and life.digest,
                "copy": _find_address(request, record, url) if life and life.versions else None,
            }
            for url, media_type in kind.named_files(record.fields)
            for life in (by_url.get(url),)
        ]
    return []


def find_copy(
    request: PageRequest, record: PublishedRecord, files: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the address of a record's archived copy: its own, or that of its only stored file."""
    own = request.find_copy(record)
    stored = [file["copy"] for file in files if file["copy"]]
    return stored[0] if own is None and len(stored) == 1 else own


def list_items(
    record: PublishedRecord, copy: str | None, files: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Return the addresses of a record's stored bytes, with media types or ""."""
    items = [(file["copy"], file.get("mimetype") or "") for file in files if file["copy"]]
    if not items and copy is not None:
        items = [(copy, record.fields.get("content_mime_type") or "")]
    return items


def describe_files(
    request: PageRequest, record: PublishedRecord, files: Sequence[Mapping[str, Any]]
) -> PageTable:
    """Return files as a table, from the argument `start` on. Raises PageError."""
    start, arguments = request.number("start"), {"id": record.identifier}
    rows = [
        (*(file.get(name) for name in _COLUMNS), file.get("copy") or file.get("url"))
        for file in files[start : start + TABLE_ROWS]
    ]
    end = start + len(rows)
    more = {**arguments, "start": end} if end < len(files) else None
    return PageTable("files", "", (*_COLUMNS, "address"), rows, arguments, more)


def take_files(files: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield files as long as their rows have room."""
    room = _ROOM
    for file in files:
        room -= 200 + 2 * weigh(str(file.get("path"))) + len(str(file.get("copy")))
        if room < 0:
            return
        yield file


def _link_file(
    request: PageRequest, record: PublishedRecord, file: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a file of a dataset with its copy, or with its URL if it is kept elsewhere."""
    if file.get("key"):
        address = _find_address(request, record, file["path"])
        image = None
        if address and address.startswith(f"{request.address.root}/content/"):
            is_small = (file.get("bytes") or 0) <= LARGEST_IMAGE
            if is_small and file.get("mimetype") in IMAGES:
                image = request.address.shorten(address)
        return {**file, "copy": address, "image": image}
    url = str(file.get("platform_url") or "")
    return {**file, "copy": None, "url": url if is_web(url) else None}


def _find_address(request: PageRequest, record: PublishedRecord, file: str) -> str | None:
    """Return the address of a stored file of a record: the configured one, else our own."""
    address = request.parts.renderer.copies.find_file(record.identifier, file)
    if address is None and request.serves_content:
        address = request.address.content(record.identifier, file)
    return address
