"""Reads bytes in the store itself: files of datasets, and objects of interest."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from functions.archive import record_reader
from functions.archive.coding import Pieces
from functions.archive.declared_digest import DeclaredDigest
from functions.archive.record_reader import NoDocumentError
from functions.archive.redif_text import restore_text
from functions.content import archived_payload
from functions.content.header_fields import UNKNOWN_TYPE
from functions.content.protocols import ByteRange, ContentError
from functions.reading.redirects import RedirectTables
from functions.reading.repository import PublishedRecord
from functions.snapshot import obi
from functions.snapshot.errors import MissingObject
from functions.snapshot.instant import from_digits
from functions.snapshot.manifest import Manifest
from functions.snapshot.redirects import RedirectChainError
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files
from functions.store.slice import Slices

WARC, DEFLATED, PACKED = "warc", "deflated", "redif"
"""Packing of a file in a WARC record, a deflated member of a bundle, and a template in a pack."""
BUNDLE = "bundle.zip"
"""File name of a dataset's bundle."""
TEMPLATE, GATHERED = "tobi", "fobi"
"""Kinds of objects of interest: a template, and a file behind a URL."""

_TEXT = "text/plain; charset=utf-8"
_NAMES = ("original", "platform_url", "terminal_url")
# Those that the table has: snapshots from before there were packs lack `pack` and `start`.
_COLUMNS = "tist|key|bytes|sha256|length|encoding|media_type|pack|start"
_VERSION = (
    f"SELECT COLUMNS('^({_COLUMNS})$') FROM {FILE} WHERE id = $id AND kind = $kind "
    "AND tist <= $at ORDER BY tist DESC LIMIT 1"
)
_BLOCKS = f"SELECT url, id FROM {FILE} WHERE handle = $handle ORDER BY position"
_FOREVER = 1 << 40  # seconds
_STEP = 1 << 16  # bytes


@dataclass(frozen=True, slots=True)
class Holding:
    """An object of the store, or bytes in one: location, packing and properties.

    `place` is None for a whole object. `packing` is "", DEFLATED or WARC, and `size` counts the
    unpacked bytes. `within` is the offset of a bundle's member in the payload of a WARC record.
    `packed` is the number of bytes of a deflated member, or of a template in its file, which has
    this `encoding`. `name` is the file's name, if the last part of the URL is another.
    """

    key: str
    place: int | None
    packing: str
    size: int | None
    digest: DeclaredDigest | None
    media_type: str
    url: str
    date: datetime | None = None
    name: str = ""
    packed: int | None = None
    within: int | None = None
    encoding: str = ""

    @property
    def length(self) -> int | None:
        """Number of bytes in the object; None for the whole object, or if unknown."""
        if self.place is None or self.packing == WARC:
            return None
        return self.packed if self.packing else self.size


def find_file(record: PublishedRecord, file: str) -> Holding:
    """Return a file of a dataset by path or URL; without either, its only file or its bundle.

    The path is ours or the platform's own. Raises ContentError.
    """
    files: Sequence[Mapping[str, Any]] = record.fields.get("files") or ()
    bundle: Mapping[str, Any] = record.fields.get("bundle") or {}
    if not files:
        raise ContentError("no-content", f"{record.identifier}: its files are not stored here")
    if not file and bundle.get("key") and len(files) != 1:
        return _find_bundle(record, bundle, files)
    # A path of ours comes before URLs and paths on the platform.
    own = [row for row in files if row["path"] == file]
    named = own or [row for row in files if file in map(row.get, _NAMES)] if file else files
    if len(named) != 1:
        what = f"it has no file {file!r}" if file else f"it has {len(files)} files: name one"
        raise ContentError("unknown", f"{record.identifier}: {what}")
    return hold_file(record, named[0])


def hold_file(record: PublishedRecord, file: Mapping[str, Any]) -> Holding:
    """Return where a file of a dataset is, given the file as in its record. Raises ContentError."""
    bundle = record.fields.get("bundle")
    if not file.get("key"):
        where = record.fields.get("archiveorg_item")
        detail = f"in the item {where} of archive.org" if where else "at another service"
        raise ContentError("elsewhere", f"{record.identifier}: {file['path']} lies {detail}")
    packing = "" if file.get("compression") in (None, "stored") else file["compression"]
    if packing == WARC and bundle and file.get("within") is None:
        detail = f"the place of {file['path']} in its bundle was not recorded"
        raise ContentError("unplaced", f"{record.identifier}: {detail}")
    return Holding(
        key=file["key"],
        place=file.get("place"),
        packing=packing,
        size=file["bytes"],
        digest=_declared_digest(file),
        media_type=file.get("mimetype") or UNKNOWN_TYPE,
        url=file.get("terminal_url") or file.get("platform_url") or "",
        date=from_digits(file["terminal_dt"]) if file.get("terminal_dt") else None,
        name=(file.get("original") or file["path"]).rpartition("/")[2],
        packed=file.get("packed"),
        within=file.get("within"),
    )


def _find_bundle(
    record: PublishedRecord, bundle: Mapping[str, Any], files: Sequence[Mapping[str, Any]]
) -> Holding:
    """Return a dataset's bundle: an object, or the payload of the WARC record of its files."""
    is_record = files[0].get("compression") == WARC
    return Holding(
        key=bundle["key"],
        place=files[0]["place"] if is_record else None,
        packing=WARC if is_record else "",
        size=bundle["bytes"],
        digest=_declared_digest(bundle),
        media_type="application/zip",
        url=record.fields["url"],
        name=BUNDLE,
    )


class ObjectReader:
    """Reads objects of interest of a store's snapshots. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self.redirects = RedirectTables(catalogue, files)

    def of_template(self, manifest: Manifest, handle: str, at: datetime | None) -> Holding:
        """Return a template's text as of a time. Raises ContentError."""
        return self._version(manifest, handle, TEMPLATE, at)

    def of_file(
        self, manifest: Manifest, template: Mapping[str, Any], url: str, at: datetime | None
    ) -> Holding:
        """Return a file in a template, by its URL as written, its id, or a URL that it led to.

        `template` are the fields of the template. Redirects are followed. Raises ContentError.
        """
        handle, gathered = template["handle"], template.get(obi.GATHERED) or {}
        if url in gathered and at is None:  # the publish followed the redirects
            return self._version(manifest, gathered[url], GATHERED, at)
        rows = self._rows(manifest, "refipo", handle, _BLOCKS, handle=handle)
        named = [id_ for written, id_ in rows if id_ and url in (written, id_)]
        if not named and {id_ for _, id_ in rows} & {*self.redirects.lead_to(manifest, url)}:
            named = [url]
        if not named:
            raise ContentError("unknown", f"{handle} names no file {url}")
        return self.of_url(manifest, named[0], at)

    def of_url(self, manifest: Manifest, url: str, at: datetime | None) -> Holding:
        """Return the file with a URL as its id, or that its redirects led to.

        Raises ContentError.
        """
        try:
            *earlier, last = self.redirects.chain(manifest, url, at)
        except RedirectChainError as error:
            raise ContentError("redirect-loop", str(error)) from error
        if earlier:
            with suppress(ContentError):  # bytes of an earlier time are better than none
                return self._version(manifest, last, GATHERED, at)
        return self._version(manifest, url, GATHERED, at)

    def _version(self, manifest: Manifest, id_: str, kind: str, at: datetime | None) -> Holding:
        until = _FOREVER if at is None else int(at.timestamp())
        rows = self._rows(manifest, "version", id_, _VERSION, id=id_, kind=kind, at=until)
        if not rows:
            when = "" if at is None else f" of {at:%Y-%m-%dT%H:%M:%SZ} or before"
            raise ContentError("not-held", f"{id_}: there is no version{when} of it")
        newest = max(rows, key=lambda row: int(row[0]))
        tist, key, size, sha256, length, encoding, media_type, *packed = newest
        pack, start = packed or (None, None)
        return Holding(
            key=key if pack is None else obi.PACKS + pack,
            place=start,
            packing="" if pack is None else PACKED,
            size=size,
            packed=length,
            encoding=encoding or "",
            digest=DeclaredDigest("sha256", bytes.fromhex(sha256)),
            media_type=_TEXT if kind == TEMPLATE else media_type or UNKNOWN_TYPE,
            url="" if kind == TEMPLATE else id_,
            date=datetime.fromtimestamp(tist, UTC),
        )

    def _rows(
        self, manifest: Manifest, table: str, id_: str, sql: str, **values: Any
    ) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for file, _ in self._catalogue.groups(manifest, table, id_, id_):
            rows += self._files.rows(sql, file, **values)
        return rows


def stretch(store: Slices, holding: Holding) -> ByteRange | None:
    """Return the location of the bytes, or None if they are packed."""
    if holding.packing:
        return None
    bucket, key = store.bucket(holding.key)
    address = f"{store.address}/{holding.key}"
    return ByteRange(address, holding.place or 0, holding.length, bucket, key)


@contextmanager
def open_stored(store: Slices, holding: Holding, *, checked: bool) -> Iterator[Pieces]:
    """Open the bytes: their unpacked pieces. Raises ContentError and StoreError."""
    where, place = holding.key, holding.place or 0
    try:
        source = store.open(holding.key, place, holding.length)
    except MissingObject as error:
        raise ContentError("not-at-hand", f"{where} does not exist") from error
    with source:
        pieces = archived_payload.read_pieces(source)
        if holding.packing == WARC:
            try:
                pieces = record_reader.read_record(source, place).payload()
            except NoDocumentError as error:
                raise ContentError("damaged", f"{where}, byte {place}: {error}") from error
        if holding.within is not None:
            packed = holding.size if holding.packed is None else holding.packed
            pieces = archived_payload.cut_pieces(pieces, holding.within, packed or 0)
        if holding.packing == PACKED:
            pieces = iter([_restore(store, holding)])
        elif holding.packing == DEFLATED or holding.packed is not None:
            pieces = archived_payload.inflate_pieces(pieces, where)
        yield archived_payload.verify_pieces(pieces, holding.digest if checked else None, where)


def _restore(store: Slices, holding: Holding) -> bytes:
    """Return the text of a template in a pack. Raises ContentError."""

    def read(size: int) -> bytes:
        with store.open(holding.key, holding.place or 0, size) as source:
            return b"".join(iter(lambda: source.read(_STEP), b""))

    digest = holding.digest.value.hex() if holding.digest else ""
    size, length = holding.size or 0, holding.packed or 0
    text = restore_text(read, length, size, holding.encoding, digest)
    if text is None:
        raise ContentError("damaged", f"{holding.key}, byte {holding.place}: its bytes differ")
    return text


def _declared_digest(file: Mapping[str, Any]) -> DeclaredDigest | None:
    names = (name for name in ("sha256", "sha1", "md5") if file.get(name))
    return next((DeclaredDigest(name, bytes.fromhex(file[name])) for name in names), None)
