"""Archive files on Hadoop clusters: finds them by webhdfs:// and hdfs:// addresses, and opens them.

WebHDFS is HTTP and needs only the network. hdfs:// needs the native client of Hadoop. A file is
known by its size and modification time, which are compared after each range. HADOOP_USER_NAME is
the user, as for Hadoop's own commands.
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from builder.errors import UsageError
from builder.ingest import splits
from builder.ingest.remote.access import SourceAccess
from builder.ingest.remote.range_stream import RangeStream
from builder.ingest.splits import ArchiveFile

RANGED_FROM = splits.MOST
"""Bytes from which a file may be split."""
_BUFFER = 1 << 18  # bytes
USER = "HADOOP_USER_NAME"


@dataclass(frozen=True, slots=True)
class HadoopStatus:
    """A file or folder: its path, size in bytes and modification time in nanoseconds since 1970."""

    path: str
    is_folder: bool
    size: int = 0
    modified: int = 0


class HadoopClient(Protocol):
    """Reads a file system by absolute paths. Thread-safe. All methods raise OSError."""

    def status(self, path: str) -> HadoopStatus:
        """Return the status of a path. Raises FileNotFoundError if it does not exist."""
        ...

    def list(self, path: str) -> list[HadoopStatus]:
        """Return the files and folders in a folder."""
        ...

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return `length` bytes of a file from `start`."""
        ...


def find(source: str, access: SourceAccess, environment: Mapping[str, str]) -> list[ArchiveFile]:
    """Return the file at an address, or all files below it, sorted by path.

    Names that begin with a dot or, as in Hadoop, with an underscore are left out. Raises UsageError
    if there are none, or the address is invalid or cannot be read.
    """
    place, path = _parse(source)
    client = _connect(place, access, environment)
    try:
        top = client.status(path)
        if not top.is_folder:
            return [_describe(client, place, top, named=True)]
        below = sorted(_walk(client, top.path), key=lambda one: one.path.encode())
        if not below:
            raise UsageError(f"{source} is an empty folder: expected archive files in it")
        return [_describe(client, place, one) for one in below]
    except FileNotFoundError as error:
        raise UsageError(f"{source}: no such file or folder") from error
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}") from error


def open_file(
    file: ArchiveFile, access: SourceAccess, environment: Mapping[str, str], end: int | None
) -> io.BufferedReader:
    """Open a file as a seekable stream that fetches ranges up to `end` (None: the file's end).

    Raises OSError if it is unavailable, as does the stream if it is replaced while it is read.
    """
    place, path = _parse(file.address)
    client = _connect(place, access, environment)

    def check() -> None:
        try:
            now = client.status(path)
        except FileNotFoundError as error:
            raise OSError(splits.REPLACED) from error
        if (now.size, now.modified, now.is_folder) != (file.bytes, file.modified, False):
            raise OSError(splits.REPLACED)

    def read(start: int, length: int) -> bytes:
        try:
            data = client.read(path, start, length)
        except OSError:
            check()
            raise
        check()
        if len(data) != length:
            raise OSError(f"{len(data):,} of {length:,} bytes arrived")
        return data

    check()
    return io.BufferedReader(RangeStream(read, file.bytes, end), _BUFFER)


def _parse(source: str) -> tuple[str, str]:
    """Return the place of an address, such as webhdfs://host:9870, and the path as it is written.

    Raises UsageError.
    """
    scheme, _, rest = source.partition("://")
    host, _, path = rest.partition("/")
    place = f"{scheme.lower()}://{host}"
    try:
        has_host = bool(urlsplit(place).hostname) and urlsplit(place).port != 0
    except ValueError:
        has_host = False
    if "@" in host:
        raise UsageError(f"{scheme}://…/{path}: give the user in {USER}, not in the address")
    if not has_host and not (scheme.lower() == "hdfs" and not host):
        raise UsageError(f"{source}: expected {scheme}://host:port/path")
    return place, "/" + path.rstrip("/")


def _walk(client: HadoopClient, folder: str) -> Iterator[HadoopStatus]:
    for one in client.list(folder):
        if one.path.rpartition("/")[2].startswith((".", "_")):
            continue
        if one.is_folder:
            yield from _walk(client, one.path)
        else:
            yield one


def _describe(
    client: HadoopClient, place: str, one: HadoopStatus, named: bool = False
) -> ArchiveFile:
    where = place + one.path
    file = ArchiveFile(Path(one.path), where, one.size, one.modified, where, named=named)
    if one.size < RANGED_FROM:
        return file

    def read(start: int, length: int) -> bytes:
        return client.read(one.path, start, length)

    with io.BufferedReader(RangeStream(read, one.size), _BUFFER) as stream:
        try:
            return replace(file, ranged=splits.is_ranged(stream, file.is_likely))
        except OSError:  # reading it reports the error
            return file


def _connect(place: str, access: SourceAccess, environment: Mapping[str, str]) -> HadoopClient:
    if place.startswith("hdfs:"):
        from builder.ingest.remote import hdfs

        return hdfs.connect(place, environment.get(USER, ""))
    from builder.ingest.remote import webhdfs

    return webhdfs.connect(place, access, environment)
