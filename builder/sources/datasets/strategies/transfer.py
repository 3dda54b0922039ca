"""Transfer of a dataset's files: fetched in parallel, and kept in their order.

What is kept, and which failure is reported, depends on the order of the files and not on timing.
"""

import io
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from builder.http.limits import Stop
from builder.http.settings import Settings, http_settings
from builder.sources.datasets.item import (
    LEFT_OUT,
    PROBLEM,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.manifest_file import wrap_store_errors
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.status import FAIL_ALONE
from builder.store.durable import writing
from builder.threads import map_in_order

_TOTAL = "total"
T = TypeVar("T")

Fetch = Callable[[FilesetManifestFile, Stop], T]
"""Fetches a file, in any thread, until it is stopped. Raises FilesetError."""
Keep = Callable[[FilesetManifestFile, T], FilesetManifestFile]
"""Keeps what was fetched, and returns the file. Raises FilesetError."""


def ahead_of(settings: Settings) -> int:
    """Return how many files may be fetched, or be waiting to be kept, at a time."""
    return 2 * http_settings(settings, "fileset").host_concurrent


_HEAD = 1 << 16  # bytes around a file in an object with several


@dataclass(slots=True)
class Quota:
    """The bytes that the files of a dataset may have: each of them, and together.

    A file of unknown size may have what the others leave, as far as their sizes are known.
    """

    files: Sequence[FilesetManifestFile]
    settings: Settings
    _declared: int = field(init=False)
    _taken: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._declared = sum(file.size or 0 for file in self.files)

    @property
    def most(self) -> int:
        """The bytes that all files may have."""
        return int(self.settings["fileset.limits"]["bytes"])

    @property
    def most_written(self) -> int:
        """The bytes of one object with all files, in a WARC or a zip, with heads around them."""
        files = int(self.settings["fileset.limits"]["files"])
        return self.most + self.most // 100 + _HEAD * (files + 1)

    def limit(self, file: FilesetManifestFile) -> int:
        """Return the bytes that a file may have."""
        left = max(0, self.most - self._declared + (file.size or 0))
        return min(int(self.settings["fileset.limits"]["file_bytes"]), left)

    def take(self, size: int) -> None:
        """Count the bytes of a file. Raises FilesetError (over-limit-stream, code total)."""
        self._taken += size
        if self._taken > self.most:
            detail = f"more than {self.most:,} bytes in all"
            raise FilesetError("over-limit-stream", detail, code=_TOTAL)


def transfer(
    item: FilesetPlatformItem,
    fetch: Fetch[T],
    keep: Keep[T],
    files: Sequence[FilesetManifestFile],
    settings: Settings,
    *,
    connections: int | None = None,
    together: bool = False,
    idle: Callable[[], None] | None = None,
) -> Iterator[FilesetManifestFile]:
    """Yield each file once it is kept, in order; stop at the first failure.

    `connections` files are fetched at once, by default http.host_concurrent. `idle` is called when
    the next one takes longer; it raises StoreError or FilesetError to end the transfer. With
    fileset.partial, a file of FAIL_ALONE is yielded with that status, unless no other is kept.
    Raises the FilesetError of any other file with a manifest: the failed file has the error's
    status, earlier files have theirs, and later files are skipped. With `together`, earlier
    files are skipped too, because none of them is kept.
    """
    connections = connections or http_settings(settings, "fileset").host_concurrent
    many = min(connections, max(len(files), 1))
    stop = threading.Event()
    done: dict[str, FilesetManifestFile] = {}
    alone: list[tuple[FilesetManifestFile, FilesetError]] = []

    def attempt(file: FilesetManifestFile) -> list[T] | FilesetError:
        try:
            with wrap_store_errors():
                return [fetch(file, stop)]
        except FilesetError as error:
            return error

    fetched = (
        (attempt(file) for file in files)
        if many == 1
        else map_in_order(attempt, files, many, 2 * many, stop, idle)
    )
    with closing(fetched):
        for file, outcome in zip(files, fetched, strict=True):
            try:
                if isinstance(outcome, FilesetError):
                    raise outcome
                with wrap_store_errors():
                    done[file.path] = keep(file, outcome[0])
            except FilesetError as error:
                if not fails_alone(error, settings):
                    raise _failure(item, file, error, {} if together else done) from error
                extra = {**file.extra, PROBLEM: error.detail} if error.detail else file.extra
                done[file.path] = replace(file, status=error.status, extra=extra)
                alone.append((file, error))
            yield done[file.path]
    if alone and len(alone) == len(files):
        file, first = alone[0]
        raise _failure(item, file, first, done) from first


@contextmanager
def refill(buffer: io.BytesIO) -> Iterator[io.BytesIO]:
    """Yield a buffer for the bytes of one file, from the start."""
    buffer.seek(0)
    buffer.truncate()
    yield buffer


def fails_alone(error: FilesetError, settings: Settings) -> bool:
    """Return whether the other files are kept although this one failed."""
    return bool(settings["fileset.partial"]) and error.status in FAIL_ALONE and error.code != _TOTAL


def _failure(
    item: FilesetPlatformItem,
    file: FilesetManifestFile,
    error: FilesetError,
    done: dict[str, FilesetManifestFile],
) -> FilesetError:
    """Return the error of the dataset for that of a file."""
    manifest = skip_others(item, {**done, file.path: replace(file, status=error.status)})
    detail = f"{file.path}: {error.detail}" if error.detail else file.path
    return FilesetError(error.status, detail, manifest=manifest, code=error.code)


def skip_others(
    item: FilesetPlatformItem, files: Mapping[str, FilesetManifestFile]
) -> list[FilesetManifestFile]:
    """Return the item's manifest with `files` by their paths; others to archive are skipped."""
    return [
        files.get(f.path, f if f.status in LEFT_OUT else replace(f, status="skipped"))
        for f in item.manifest or ()
    ]


class FileSpool:
    """Sink for the bytes of one file, which are read again; more than `memory` go to `scratch`.

    `go_on` is called while they are read, and may raise.
    """

    def __init__(self, scratch: Path, memory: int, go_on: Callable[[], None]) -> None:
        self._scratch = scratch
        self._go_on = go_on
        self.file: Any = tempfile.SpooledTemporaryFile(memory, "w+b", dir=str(scratch))  # noqa: SIM115

    @contextmanager
    def open(self) -> Iterator["FileSpool"]:
        """Yield the sink, empty."""
        self.file.seek(0)
        self.file.truncate()
        yield self

    def write(self, data: bytes) -> None:
        """Append bytes. Raises StoreError if the disk is full."""
        with writing(self._scratch):
            self.file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes from the start."""
        self.file.seek(0)
        while piece := self.file.read(1 << 18):
            self._go_on()
            yield piece

    def close(self) -> None:
        """Discard the bytes."""
        self.file.close()
