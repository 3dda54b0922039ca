"""Rows: what the log of a run holds, one JSON object a line.

All tables of the obi store follow from these rows. What could be found out again from the stored
bytes alone is there only where it would be dear to find.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

TEMPLATE, FILE, SOURCE = "tobi", "fobi", "redif"
"""Classes of objects: templates, files behind URLs, and files of ReDIF as they were found."""

APPEARANCE, CHANGE, DELETION = "appearance", "change", "deletion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The object has these bytes from this run on: they were stored at `key`.

    md5 and sha256 are of the bytes as stored, in hexadecimal digits; text_md5 and text_sha256 of
    the text that decides on a change of a template, or of a file's text, by `text_method`.
    `modified` is the source's own time in seconds since 1970: of a file its mtime or Last-Modified.
    A template's `source`, `place` and `length` say where it stood, `home` is the archive's folder.
    """

    row: ClassVar[str] = "version"
    id: str
    kind: str
    key: str
    bytes: int
    md5: str
    sha256: str
    text_md5: str | None = None
    text_sha256: str | None = None
    text_method: str | None = None
    modified: int | None = None
    home: str | None = None
    source: str | None = None
    place: int | None = None
    length: int | None = None
    encoding: str | None = None
    type: str | None = None
    valid: bool | None = None
    handle: str | None = None
    """A template's handle as it was written."""
    media_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    """The header as it was sent, for conditional requests."""
    flags: tuple[str, ...] = ()
    """Of a file: landing-page, soft-404, text-same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidence:
    """Something happened to a template or file: it appeared, perhaps again, changed or was lost.

    `key` is where its bytes lie: those that it has now or, of a lost one, had last.
    """

    row: ClassVar[str] = "incidence"
    id: str
    kind: str
    what: str
    key: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refipo:
    """A file block of a template's version: `position` from 0, `url` as written.

    `id` is that of the file, None where the URL is none to be fetched. A template's rows of one run
    replace all its earlier ones; a version of it without such rows in its run has no files.
    """

    row: ClassVar[str] = "refipo"
    handle: str
    position: int
    url: str
    id: str | None = None
    format: str | None = None
    function: str | None = None
    size: str | None = None
    restriction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRow:
    """An object was there and as before: a file that was fetched, a template that stands elsewhere.

    `status` is a file's HTTP status. `home`, `source` and `place` are given where they changed.
    """

    row: ClassVar[str] = "seen"
    id: str
    kind: str
    status: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    home: str | None = None
    source: str | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A URL led to another; `key` is where that is written down, None for a mere slash at the end.

    `target_key` is where the bytes of the chain's last URL lie, None where there are none.
    """

    row: ClassVar[str] = "redirect"
    origin: str
    target: str
    status: int
    key: str | None = None
    target_key: str | None = None

    def document(self, tist: int) -> bytes:
        """Return what lies at `key` if the run `tist` wrote it down."""
        told = {
            "from": self.origin, "to": self.target, "status": self.status, "tist": tist,
            "to_key": self.target_key,
        }  # fmt: skip
        return json.dumps(told, ensure_ascii=False, indent=1).encode() + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """A file could not be had, which is no loss of it; `code` is one of builder.http.outcomes."""

    row: ClassVar[str] = "failure"
    id: str
    code: str
    status: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRow:
    """An archive's folder was read: whether all of it was, and what is missing there.

    `held` counts templates that vanished and are not taken for lost until that is accepted.
    """

    row: ClassVar[str] = "archive"
    home: str
    complete: bool
    files: int
    templates: int
    held: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """What was wrong in the source: the columns of schema.FAULT."""

    row: ClassVar[str] = "fault"
    source: str
    place: int | None
    code: str
    field: str | None
    detail: str
    done: str


Row = Version | Incidence | Refipo | SeenRow | Redirect | FailureRow | ArchiveRow | FaultRow

ROWS: Mapping[str, type[Any]] = {
    kind.row: kind
    for kind in (Version, Incidence, Refipo, SeenRow, Redirect, FailureRow, ArchiveRow, FaultRow)
}
"""What the member `row` of a line may be, with what the line then is."""


_MEMBERS = {kind: tuple((f.name, f.default) for f in fields(kind)) for kind in ROWS.values()}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def line(row: Row) -> bytes:
    """Return a row as a line of the log, LF included; what has its default is left out."""
    told: dict[str, Any] = {"row": row.row}
    for name, usual in _MEMBERS[type(row)]:
        value = getattr(row, name)
        if usual is MISSING or value != usual:
            told[name] = value
    return _ENCODER.encode(told).encode() + b"\n"
