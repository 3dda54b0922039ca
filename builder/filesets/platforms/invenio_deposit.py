"""Common form of InvenioRDM's records, whichever of two JSON forms they were read from.

One form is InvenioRDM's own (invenio_native). The other is Zenodo's older form (invenio_legacy), in
which some fields were renamed over the years.
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
    """A parsed record.

    `parent` is the id that all versions share, if there is one. `index` is the version's number
    from 1, if given. `access` is open, embargoed (`until` a day) or restricted. `count` and `total`
    are the number and bytes of its files, if the platform gives them apart from the list. `files`
    is None if the record has no list. `keeps` is false for records that must not have files.
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

    Its name is `key` or `filename`. The URL of its bytes is the link `content`, `download` or,
    unless that leads to metadata, `self`. Raises FilesetError (platform-bad-response).
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
