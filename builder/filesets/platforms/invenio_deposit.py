"""Deposits: what the two forms of InvenioRDM's records have in common once they are read.

One form is InvenioRDM's own (invenio_native), the other Zenodo's older one, which it has kept over
the years with the names of some fields changed (invenio_legacy).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from builder.filesets.item import Description, FilesetManifestFile
from builder.filesets.metadata.json_document import digest, join_url, name, size, text

OPEN, EMBARGOED, RESTRICTED = "open", "embargoed", "restricted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """A record that was read.

    `parent` is the id that all its versions have, where there is one, and `index` counts them from
    1, where that is told. `access` is open, embargoed (`until` a day) or restricted. `count` and
    `total` are how many files it has and their bytes, where the platform tells that apart from the
    list; `files` is None where the record has no list of them. `keeps` is false for records that
    are to have no files.
    """

    id: str
    parent: str | None = None
    index: int | None = None
    draft: bool = False
    access: str = OPEN
    until: str | None = None
    keeps: bool = True
    files: tuple[FilesetManifestFile, ...] | None = None
    count: int | None = None
    total: int | None = None
    page: str | None = None
    bundle: str | None = None
    description: Description = field(default_factory=Description)


def file(given: Mapping[str, Any], record: str) -> FilesetManifestFile:
    """Return a file of the record at the URL `record` of its API.

    Its name is `key` or `filename`, its bytes are behind the link `content`, `download` or, if
    that does not lead to metadata, `self`. Raises FilesetError (platform-bad-response).
    """
    path = name(given.get("key") or given.get("filename"), "a file")
    links = given.get("links")
    named = links if isinstance(links, Mapping) else {}
    own = text(named.get("self")) or ""
    bytes_of = own if own.endswith("/content") or "/api/files/" in own else None
    link = text(named.get("content")) or text(named.get("download")) or bytes_of
    made = f"{record}/files/{quote(path, safe='/')}/content"
    algorithm, colon, value = (text(given.get("checksum")) or "").rpartition(":")
    digests = _digests(algorithm if colon else "md5", value)
    access = given.get("access")
    hidden = isinstance(access, Mapping) and access.get("hidden") is True
    return FilesetManifestFile(
        path=path,
        size=size(given.get("size", given.get("filesize"))),
        md5=digests.get("md5"),
        sha1=digests.get("sha1"),
        sha256=digests.get("sha256"),
        sha512=digests.get("sha512"),
        mimetype=text(given.get("mimetype")),
        extra={"checksum": text(given.get("checksum"))} if value and not digests else {},
        status="withheld" if hidden else None,
        platform_url=join_url(record, link) or made,
    )


def _digests(algorithm: str, value: str) -> dict[str, str]:
    kind = algorithm.lower().replace("-", "")
    known = kind in ("md5", "sha1", "sha256", "sha512")
    found = digest(value, kind) if known else None
    return {kind: found} if found else {}
