"""Content of a run: the rows of its log, and the bytes of its versions.

A row is one JSON object a line. All tables of the obi store follow from these rows. Facts that
follow from the stored bytes are included only if it would be expensive to find them again.
The bytes of a version are checked against the digest in its row.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import MISSING, dataclass, fields
from typing import Any, BinaryIO, ClassVar, cast, get_args

from builder.obi import key as keys
from builder.store.durable import read_chunks
from functions.archive.redif_text import restore_text
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader
from functions.store.window_stream import PieceStream

_CHUNK = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentRow:
    """A ReDIF file that was there before, and that this reading of its archive has not."""

    row: ClassVar[str] = "absent"
    id: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """How an ingest read its sources: what it needs to be compared with an older state.

    `accepted` has the archives whose losses were accepted, or `*` for all. `encodings` has the
    encodings that were named, as `archive=encoding`.
    """

    row: ClassVar[str] = "reading"
    accepted: tuple[str, ...] = ()
    encodings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneRow:
    """Rows of earlier runs that do not count any more: those of `what` about `id`, of one time."""

    row: ClassVar[str] = "undone"
    what: str
    id: str


TEMPLATE, FILE, SOURCE = "tobi", "fobi", "redif"
"""Kinds of objects: templates, files behind URLs, and ReDIF files as they were found."""

APPEARANCE, CHANGE, DELETION = "appearance", "change", "deletion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The object has these bytes from this run on; they were stored at `key`.

    `md5` and `sha256` are of the stored bytes, in hexadecimal digits. `text_md5` and `text_sha256`
    are of the text that decides on a change of a template, or of a file's text, by `text_method`.
    With a `pack`, `key` is only a name: the bytes are in that pack from the byte `start` on. Of a
    template these are `length` bytes of its file, which give its text again, or the text itself.
    `modified` is the source's own time in seconds since 1970; for a file it is the mtime or
    Last-Modified. For a template, `source`, `place` and `length` say where it was found, and `home`
    is the archive's folder.
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
    """The handle of a template as written."""
    media_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    """The header field as sent, for conditional requests."""
    flags: tuple[str, ...] = ()
    """For a file: landing-page, soft-404, text-same."""
    pack: str | None = None
    """SHA-256 of the pack that holds the bytes; None for an object of its own."""
    start: int | None = None
    """The first byte of the range in the pack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidence:
    """A template or file appeared, appeared again, changed, or was lost.

    `key` is the key of its present bytes, or of its last ones if it was lost.
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

    `id` is the id of the file, None if the URL cannot be fetched. The rows of a template in one run
    replace all its earlier ones. A version without such rows in its run has no files.
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
    """An object is unchanged: a file that was fetched, or a template that was found elsewhere.

    `status` is the HTTP status of a file. `home`, `source` and `place` are given if they changed.
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
    """A URL led to another; `key` is that of the record, None if only a final slash differs.

    `target_key` is the key of the bytes of the chain's last URL, None if there are no bytes.
    """

    row: ClassVar[str] = "redirect"
    origin: str
    target: str
    status: int
    key: str | None = None
    target_key: str | None = None

    def document(self, tist: int) -> bytes:
        """Return the object at `key`, as the run `tist` recorded it."""
        members = {
            "from": self.origin,
            "to": self.target,
            "status": self.status,
            "tist": tist,
            "to_key": self.target_key,
        }
        return json.dumps(members, ensure_ascii=False, indent=1).encode() + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """A file could not be fetched, which is no loss; `code` is one of builder.http.errors."""

    row: ClassVar[str] = "failure"
    id: str
    code: str
    status: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """The request and the response, at `at` in seconds since 1970, of a new version or redirect.

    An import has one for each capture. `sent` and `headers` are the fields of both, as
    `Name: value`. `address` is the server's.
    """

    row: ClassVar[str] = "exchange"
    id: str
    at: int
    status: int
    reason: str = ""
    address: str | None = None
    sent: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRow:
    """The reading of an archive's folder: whether it was complete, and what is missing.

    `held` counts missing templates whose loss was not accepted yet.
    """

    row: ClassVar[str] = "archive"
    home: str
    complete: bool
    files: int
    templates: int
    held: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """A fault in the source: the columns of schema.FAULT."""

    row: ClassVar[str] = "fault"
    source: str
    place: int | None
    code: str
    field: str | None
    detail: str
    done: str


Row = (
    Version
    | Incidence
    | Refipo
    | SeenRow
    | Redirect
    | FailureRow
    | ExchangeRow
    | ArchiveRow
    | FaultRow
    | AbsentRow
    | ReadingRow
    | UndoneRow
)

ROWS: Mapping[str, type[Any]] = {kind.row: kind for kind in get_args(Row)}
"""The values of the member `row` of a line, with the class of each."""
_MEMBERS = {kind: tuple((f.name, f.default) for f in fields(kind)) for kind in ROWS.values()}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def row_line(row: Row) -> bytes:
    """Return a row as a line of the log, with its LF; members with their default are left out."""
    members: dict[str, Any] = {"row": row.row}
    for name, usual in _MEMBERS[type(row)]:
        value = getattr(row, name)
        if usual is MISSING or value != usual:
            members[name] = value
    return _ENCODER.encode(members).encode() + b"\n"


def read_version(store: Reader, version: Version) -> bytes:
    """Return the bytes of a version. Raises MissingObject, and DamagedStore if they differ."""
    if version.pack is None:
        stored = store.read(version.key)
        if hashlib.sha256(stored).hexdigest() != version.sha256:
            raise _damage(version.key)
        return stored
    where, start = keys.pack(version.pack), version.start or 0

    def read(size: int) -> bytes:
        with store.local(where, [(start, size)]).open("rb") as file:
            return os.pread(file.fileno(), size, start)

    if version.length is not None and version.encoding is not None:
        data = restore_text(read, version.length, version.bytes, version.encoding, version.sha256)
    else:
        data = read(version.bytes)
        data = data if hashlib.sha256(data).hexdigest() == version.sha256 else None
    if data is None:
        place = f"byte {version.start} of {where}"
        raise DamagedStore(f"{version.key} is damaged: {place} differs")
    return data


def open_version(store: Reader, version: Version) -> BinaryIO:
    """Return the bytes of a version as a stream that is read forwards; the caller closes it.

    Raises MissingObject. The stream raises DamagedStore at its end if the bytes differ.
    """
    if version.pack is None:
        source = store.open(version.key)
    elif version.length is not None:  # a template: its text is made from its range
        source = io.BytesIO(read_version(store, version))
    else:
        start = version.start or 0
        file = store.local(keys.pack(version.pack), [(start, version.bytes)]).open("rb")
        file.seek(start)

        def pieces(left: int) -> Iterator[bytes]:
            while data := file.read(min(left, _CHUNK)):
                left -= len(data)
                yield data

        source = cast(BinaryIO, PieceStream(pieces(version.bytes), file))
    raw = PieceStream(_check(source, version.key, version.sha256), source)
    return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))


def version_parts(store: Reader, version: Version) -> Iterator[bytes]:
    """Yield the bytes of a version in parts. Raises as `open_version` does."""
    with closing(open_version(store, version)) as source:
        yield from read_chunks(source, version.key)


def read_parts(store: Reader, key: str, sha256: str | None = None) -> Iterator[bytes]:
    """Yield the object at `key` in parts.

    Raises MissingObject, and DamagedStore at the end if its SHA-256 is not `sha256`.
    """
    with closing(store.open(key)) as source:
        yield from _check(source, key, sha256)


def _check(source: BinaryIO, key: str, sha256: str | None) -> Iterator[bytes]:
    digest = hashlib.sha256()
    for chunk in read_chunks(source, key):
        if sha256 is not None:
            digest.update(chunk)
        yield chunk
    if sha256 is not None and digest.hexdigest() != sha256:
        raise _damage(key)


def _damage(key: str) -> DamagedStore:
    return DamagedStore(f"{key} is damaged: its bytes differ from those stored")
