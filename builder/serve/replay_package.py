"""The package of ReplayWeb.page, as `npm pack` writes it: its service worker is taken.

It is AGPL, so that Sheaf neither ships nor imports it: the operator installs it beside.
"""

import gzip
import json
import re
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from builder.errors import UsageError, explaining
from functions.snapshot import layout
from functions.snapshot.store import Writer

_WHOLE = 64 << 20
"""Largest number of bytes of an unpacked package; version 2.5.3 has 9 MB."""
_LARGEST = 4 << 20
"""Largest number of bytes of a file: one answer of Lambda holds it."""
_ABOUT = "package/package.json"
_WORKER = "package/sw.js"
_NAME = "replaywebpage"
_PLAIN = re.compile(r"[A-Za-z0-9.+() -]{1,60}")
_NEEDED = b"remotewarcproxy"
"""The kind of collection by which the service worker asks this server."""


@dataclass(frozen=True, slots=True)
class ReplayPackage:
    """A package: its version and licence as it names them, and its service worker."""

    version: str
    licence: str
    worker: bytes


def read_package(path: Path) -> ReplayPackage:
    """Return the package in a tarball. Raises UsageError with the reason."""
    members: dict[str, bytes] = {}
    with explaining(path, "read"):
        try:
            with gzip.open(path) as packed, tarfile.open(fileobj=packed, mode="r:") as archive:
                for member in archive:
                    if member.offset_data + member.size > _WHOLE:
                        raise UsageError(f"{path} has more than {_WHOLE:,} bytes unpacked")
                    # Links and what lies elsewhere are passed over.
                    if member.name not in (_ABOUT, _WORKER) or not member.isreg():
                        continue
                    if member.name in members:
                        raise UsageError(f"{path} has {member.name} twice")
                    if not 0 < member.size <= _LARGEST:
                        size = f"{member.size:,} bytes, expected 1 to {_LARGEST:,}"
                        raise UsageError(f"{path}: {member.name} has {size}")
                    source = archive.extractfile(member)
                    assert source is not None  # it is a regular file
                    members[member.name] = source.read()
                while packed.read(_LARGEST):
                    pass  # its checksum is behind all
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
            raise UsageError(f"{path} is no tarball that `npm pack` writes: {error}") from error
    for name in (_ABOUT, _WORKER):
        if name not in members:
            raise UsageError(f"{path} has no file {name}: expected `npm pack {_NAME}`")
    try:
        about = json.loads(members[_ABOUT])
        fields = [about[name] for name in ("name", "version", "license")]
        if fields[0] != _NAME or not all(map(_PLAIN.fullmatch, fields)):
            raise ValueError(_ABOUT)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"does not say that it is {_NAME}, its version and licence"
        raise UsageError(f"{path}: {_ABOUT} {reason}") from error
    if _NEEDED not in members[_WORKER]:
        raise UsageError(f"{path}: its service worker has no {_NEEDED.decode()}")
    return ReplayPackage(fields[1], fields[2], members[_WORKER])


def install(store: Writer, package: ReplayPackage) -> None:
    """Write the worker, in place of an earlier one. Raises Conflict if another process does too."""
    store.replace(layout.REPLAY_FILE, package.worker, store.tag(layout.REPLAY_FILE))
