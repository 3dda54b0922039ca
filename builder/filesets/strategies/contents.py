"""Comparison of a platform's bundle with the platform's list of files."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from builder.filesets.item import FilesetManifestFile, FilesetPlatformItem
from builder.filesets.protocols import FilesetError
from builder.filesets.strategies.file import with_digests
from builder.filesets.strategies.zip_reader import ArchivedMember

MISSING, EXTRA = "bundle-missing-member", "bundle-extra-member"
PACKED = "packed_bytes"
"""Key in `extra` of a deflated file: its size in the bundle, in bytes."""


def reconcile(
    item: FilesetPlatformItem, members: Sequence[ArchivedMember], key: str
) -> tuple[FilesetManifestFile, ...]:
    """Return the item's files with their places in the bundle at `key`, and its extra files.

    A platform's bundle may lack large or restricted files, and may have files of the platform's
    own. Raises FilesetError with all files in its manifest: bundle-missing-member, mismatch-size,
    mismatch-md5 and so on. Correct files are then marked as skipped, because the bundle is not
    kept.
    """
    by_path = _by_path(item, members)
    manifest = []
    for file in item.manifest or ():
        member = by_path.pop(file.path, None)
        if file.status == "withheld" and member is None:
            manifest.append(file)
        elif member is None:
            manifest.append(replace(file, status=MISSING))
        elif wrong := member.digests.mismatch(file):
            manifest.append(replace(file, status=wrong))
        else:
            manifest.append(_place(with_digests(file, member.digests), member, key))
    for path, member in by_path.items():
        extra = with_digests(FilesetManifestFile(path=path), member.digests)
        manifest.append(replace(_place(extra, member, key), status=EXTRA))
    faults = [f for f in manifest if f.status == MISSING or str(f.status).startswith("mismatch-")]
    if faults:
        shown = ", ".join(file.path for file in faults[:5])
        detail = f"{len(faults)} of {len(item.files)} files are missing from the bundle or differ "
        wrong_by = {file.path: file for file in faults}
        told = [
            wrong_by.get(f.path, f if f.status == "withheld" else replace(f, status="skipped"))
            for f in item.manifest or ()
        ]
        raise FilesetError(
            str(faults[0].status), f"{detail}listed: {shown}", item=item, manifest=told
        )
    return tuple(manifest)


def _by_path(
    item: FilesetPlatformItem, members: Sequence[ArchivedMember]
) -> dict[str, ArchivedMember]:
    """Return the members by path, without a common top folder that the manifest does not have."""
    by_path = {member.entry.path: member for member in members}
    listed = {file.path for file in item.manifest or ()}
    heads = {path.partition("/")[0] for path in by_path}
    if len(heads) == 1 and not listed & by_path.keys():
        within = {path.partition("/")[2]: member for path, member in by_path.items()}
        if listed & within.keys():
            return within
    return by_path


def _place(file: FilesetManifestFile, member: ArchivedMember, key: str) -> FilesetManifestFile:
    extra: dict[str, Any] = dict(file.extra)
    entry = member.entry
    if (raw := entry.raw.decode("utf-8", "backslashreplace")) != file.path:
        extra["member"] = raw
    if entry.compression != "stored":
        extra[PACKED] = entry.packed
    return replace(file, key=key, offset=member.offset, compression=entry.compression, extra=extra)
