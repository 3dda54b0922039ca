"""The package of ReplayWeb.page, as `npm pack` writes it: two of its files are taken.

It is AGPL, so that Sheaf neither ships nor imports it: the operator installs it beside.
"""

import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Mapping
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
_MEMBERS = {f"package/{key.removeprefix(layout.REPLAY)}": key for key in layout.REPLAY_FILES}
"""Members of the package by the key under which the store has them."""
_NAME = "replaywebpage"
_PLAIN = re.compile(r"[A-Za-z0-9.+() -]{1,60}")
_NEEDED = b"remotewarcproxy"
"""The kind of collection by which the service worker asks this server."""


@dataclass(frozen=True, slots=True)
class ReplayPackage:
    """A package: its version and licence as it names them, and its files by key."""

    version: str
    licence: str
    files: Mapping[str, bytes]


def read_package(path: Path) -> ReplayPackage:
    """Return the package in a tarball. Raises UsageError with the reason."""
    with explaining(path, "read"):
        try:
            with gzip.open(path) as packed:
                data = packed.read(_WHOLE + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UsageError(f"{path} is no tarball that `npm pack` writes: {error}") from error
    if len(data) > _WHOLE:
        raise UsageError(f"{path} has more than {_WHOLE:,} bytes unpacked")
    members = _read_members(path, data)
    for name in (_ABOUT, *_MEMBERS):
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
    files = {key: members[name] for name, key in _MEMBERS.items()}
    if _NEEDED not in files[layout.REPLAY_FILES[0]]:
        raise UsageError(f"{path}: its service worker has no {_NEEDED.decode()}")
    return ReplayPackage(fields[1], fields[2], files)


def _read_members(path: Path, data: bytes) -> dict[str, bytes]:
    """Return the members that are taken; links and what lies elsewhere are passed over."""
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if member.name not in (_ABOUT, *_MEMBERS) or not member.isreg():
                    continue
                if member.name in members:
                    raise UsageError(f"{path} has {member.name} twice")
                if not 0 < member.size <= _LARGEST:
                    size = f"{member.size:,} bytes, expected 1 to {_LARGEST:,}"
                    raise UsageError(f"{path}: {member.name} has {size}")
                source = archive.extractfile(member)
                assert source is not None  # it is a regular file
                members[member.name] = source.read()
    except (tarfile.TarError, ValueError, OSError) as error:
        raise UsageError(f"{path} is no tarball that `npm pack` writes: {error}") from error
    return members


def install(store: Writer, package: ReplayPackage) -> None:
    """Write the files, in place of earlier ones. Raises Conflict if another process does too."""
    for key, data in sorted(package.files.items(), reverse=True):
        store.replace(key, data, store.tag(key))
