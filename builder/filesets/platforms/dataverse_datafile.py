"""Files of a Dataverse dataset.

For an ingested table, digests and original size describe the uploaded file. Dataverse serves a
derived table by default, so the original is requested. Files are requested by number, which all
have; many have no persistent id.
"""

from collections.abc import Mapping
from typing import Any

from builder.filesets.item import FilesetManifestFile
from builder.filesets.metadata.json_document import (
    day,
    digest,
    inner,
    mapping,
    name,
    objects_of,
    size,
    text,
)
from builder.filesets.protocols import FilesetError

_DIGESTS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-512": "sha512"}
_EXTENSIONS = {
    "application/x-spss-por": "por",
    "application/x-spss-sav": "sav",
    "application/x-stata": "dta",
    "application/x-stata-6": "dta",
    "application/x-stata-13": "dta",
    "application/x-stata-14": "dta",
    "application/x-stata-15": "dta",
    "application/x-rlang-transport": "RData",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/comma-separated-values": "csv",
    "text/tsv": "tsv",
}
"""File extensions of original formats, for installations that do not give the original's name."""


def manifest(version: Mapping[str, Any], api: str, today: str) -> tuple[FilesetManifestFile, ...]:
    """Return the files of a version, as available on a day (W3CDTF).

    `api` is the start of the API's URLs. Raises FilesetError (platform-bad-response).
    """
    files = objects_of(version.get("files", []), "the files")
    return tuple(_file(file, api, today) for file in files)


def _file(file: Mapping[str, Any], api: str, today: str) -> FilesetManifestFile:
    data = mapping(file.get("dataFile", file.get("datafile")), "a file")
    number = size(data.get("id"))
    path = name(file.get("label") or data.get("filename"), "a file")
    if number is None:
        raise FilesetError("platform-bad-response", f"{path} has no number")
    url = f"{api}/access/datafile/{number}"
    extra: dict[str, Any] = {"id": str(number)}
    length, kind = data.get("filesize"), data.get("contentType")
    original = text(data.get("originalFileFormat")) or text(data.get("originalFileName"))
    if original is not None:
        extra["derived"] = path
        path = text(data.get("originalFileName")) or _original_name(path, original)
        url, length = f"{url}?format=original", data.get("originalFileSize")
        kind = data.get("originalFileFormat")
    folder = (text(file.get("directoryLabel")) or "").strip("/")
    why = _withheld(file, data, today)
    digests = _digests(data)
    return FilesetManifestFile(
        path=f"{folder}/{path}" if folder else path,
        size=size(length),
        md5=digests.get("md5"),
        sha1=digests.get("sha1"),
        sha256=digests.get("sha256"),
        sha512=digests.get("sha512"),
        mimetype=text(kind),
        extra=extra | why,
        status="withheld" if why else None,
        platform_url=url,
    )


def _withheld(file: Mapping[str, Any], data: Mapping[str, Any], today: str) -> dict[str, str]:
    """Return the reason why the platform withholds a file, empty if it does not."""
    available = day(inner(data, "embargo").get("dateAvailable"))
    if available and available > today:
        return {"withheld": "embargoed", "until": available}
    ends = day(inner(data, "retention").get("dateUnavailable"))
    if ends and ends <= today:
        return {"withheld": "its retention has ended"}
    restricted = file.get("restricted") is True or data.get("restricted") is True
    return {"withheld": "restricted"} if restricted else {}


def _original_name(table: str, original: str) -> str:
    """Return the likely name of the original, from the name of the derived table."""
    extension = _EXTENSIONS.get(original)
    return f"{table.removesuffix('.tab')}.{extension}" if extension else table


def _digests(data: Mapping[str, Any]) -> dict[str, str | None]:
    told = inner(data, "checksum")
    given = {"MD5": data.get("md5"), text(told.get("type")): told.get("value")}
    return {called: digest(given.get(kind), called) for kind, called in _DIGESTS.items()}
