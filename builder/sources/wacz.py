"""WACZ files (Webrecorder, WACZ 1.1.1): zip files with web archives in their archive folder."""

import zipfile
import zlib
from collections.abc import Iterator
from io import RawIOBase
from typing import IO, BinaryIO

from builder.sources.event import Fault
from functions.archive.zip import DAMAGE


class Inner(RawIOBase):
    """A file within a zip file, which ends where the zip file is damaged."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._inner = stream
        self.damage = ""

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; none at the end, and none behind any damage."""
        if self.damage:
            return b""
        try:
            return self._inner.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            self.damage = str(error) or "the zip file ends too early"
            return b""


def inner_files(stream: BinaryIO, name: str) -> Iterator[tuple[str, Inner] | Fault]:
    """Return the archives in a WACZ, each with its name within, and what is wrong with it."""
    try:
        archive = zipfile.ZipFile(stream)
    except DAMAGE as error:
        yield Fault(name, None, "wacz-damaged", None, str(error), "not read")
        return
    with archive:
        entries = [e for e in archive.infolist() if _is_archive(e)]
        if not entries:
            yield Fault(name, None, "wacz-empty", None, "", "nothing to read")
        for entry in entries:
            yield from _opened(archive, entry, name)


def _opened(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str
) -> Iterator[tuple[str, Inner] | Fault]:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        detail = f"{entry.filename} by zip method {entry.compress_type}"
        yield Fault(name, entry.header_offset, "unsupported-compression", None, detail, "not read")
        return
    if entry.flag_bits & 1:
        detail = f"{entry.filename} is encrypted"
        yield Fault(name, entry.header_offset, "wacz-damaged", None, detail, "not read")
        return
    try:
        stream = archive.open(entry)
    except DAMAGE as error:
        yield Fault(name, entry.header_offset, "wacz-damaged", None, str(error), "not read")
        return
    with stream:
        inner = Inner(stream)
        yield entry.filename, inner
        if inner.damage:
            detail, done = f"{entry.filename}: {inner.damage}", "read up to there"
            yield Fault(name, entry.header_offset, "wacz-damaged", None, detail, done)


def _is_archive(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith("archive/") and not entry.is_dir()
