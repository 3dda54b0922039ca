"""A file of a manifest: what its platform tells of its bytes, and what is known once they came."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from builder.filesets.download.digests import EVERY, ORDER, Digests, best
from builder.filesets.item import FileMeta, FilesetManifestFile, FilesetPlatformItem, Terminal
from builder.filesets.protocols import FilesetError, Received
from functions.snapshot.errors import StoreError


def compute_digests(chunks: Iterable[bytes]) -> Digests:
    """Return the digests of bytes that come one after the other."""
    digests = Digests()
    for chunk in chunks:
        digests.take(chunk)
    return digests


def with_digests(file: FilesetManifestFile, digests: Digests) -> FilesetManifestFile:
    """Return the file with the digests of its bytes, which are its own, and with its status."""
    status = "verified" if best(file) else "unverified"
    every: dict[str, Any] = digests.every()
    return replace(file, status=status, size=digests.size, **every)


def with_received(file: FilesetManifestFile, received: Received) -> FilesetManifestFile:
    """Return the file with what is known since it came."""
    return replace(
        file,
        status="verified" if received.verified else "unverified",
        size=received.size,
        **{name: getattr(received, name) for name in EVERY},
        mimetype=file.mimetype or received.media_type,
        terminal_url=received.terminal_url,
        terminal_dt=received.terminal_dt,
    )


def like(file: FilesetManifestFile, known: FilesetManifestFile) -> FilesetManifestFile:
    """Return the file to be fetched again: the very bytes that are known, whatever is told now."""
    return replace(file, size=known.size, **{name: getattr(known, name) for name in ORDER})


def meta(file: FilesetManifestFile) -> FileMeta:
    """Return what a result tells of a file that is archived."""
    return FileMeta(
        size_bytes=file.size or 0,
        md5hex=file.md5 or "",
        sha1hex=file.sha1 or "",
        sha256hex=file.sha256 or "",
        mimetype=file.mimetype,
    )


def terminal(received: Received) -> Terminal:
    """Return where it came from."""
    return Terminal(
        terminal_url=received.terminal_url,
        terminal_dt=received.terminal_dt,
        terminal_status_code=received.terminal_status_code,
        terminal_sha1hex=received.sha1,
    )


def each(
    item: FilesetPlatformItem,
    keep: Callable[[FilesetManifestFile], FilesetManifestFile],
    files: Sequence[FilesetManifestFile],
    *,
    together: bool = False,
) -> Iterator[FilesetManifestFile]:
    """Yield what `keep` makes of each file, in order, and stop at the first that fails.

    Raises its FilesetError with the item and its manifest, in which it has the status, those
    before have theirs, and those behind are skipped. Of files that are kept `together` or not at
    all, those before are skipped as well: none of them is kept.
    """
    done: dict[str, FilesetManifestFile] = {}
    for file in files:
        try:
            with wrap_store_errors(item):
                done[file.path] = keep(file)
        except FilesetError as error:
            if together:
                done.clear()
            done[file.path] = replace(file, status=error.status)
            manifest = [
                done.get(f.path, f if f.status == "withheld" else replace(f, status="skipped"))
                for f in item.manifest or ()
            ]
            detail = f"{file.path}: {error.detail}" if error.detail else file.path
            raise FilesetError(
                error.status, detail, item=item, manifest=manifest, code=error.code
            ) from error
        yield done[file.path]


@contextmanager
def wrap_store_errors(
    item: FilesetPlatformItem, status: str = "error-store-upload"
) -> Iterator[None]:
    """Wrap what the store raises as a FilesetError with that status."""
    try:
        yield
    except StoreError as error:
        raise FilesetError(status, str(error), item=item) from error
