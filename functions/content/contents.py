"""Finds and reads the bytes of a snapshot's items."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from functions.archive import coding as codings
from functions.archive import declared_digest as digests
from functions.archive.coding import ContentCodingError
from functions.archive.declared_digest import DeclaredDigest
from functions.archive.record_reader import Document
from functions.content import archived_payload, stored
from functions.content.archives import PlacedArchives
from functions.content.capture_row import CaptureRow
from functions.content.protocols import ByteRange, Content, ContentError
from functions.content.stored import Holding, ObjectReader
from functions.kinds import CAPTURES, find_kind
from functions.reading.repository import PublishedRecord, Repository
from functions.snapshot import oai_name
from functions.snapshot.manifest import Manifest

_NOT_MODIFIED = 304
_STEP = 1 << 16
_NO_CODING = ("", "identity", "none")


@dataclass(frozen=True, slots=True)
class HeldContent(Content):
    """Content in the store itself; `holding` is its location."""

    holding: Holding | None = None


class ArchivedContents:
    """Reads the bytes of items from archive files and from their own store. Thread-safe.

    `objects` must be of the same store. `prefix` precedes handles in the identifiers of templates;
    if it is empty, it is oai: and the namespace.
    """

    def __init__(
        self,
        repository: Repository,
        objects: ObjectReader,
        archives: PlacedArchives,
        prefix: str = "",
    ) -> None:
        self._repository = repository
        self._objects = objects
        self.archives = archives
        self._store = archives.own
        self._prefix = prefix

    def find(
        self,
        manifest: Manifest,
        record: PublishedRecord | None,
        *,
        file: str = "",
        at: datetime | None = None,
    ) -> Content:
        """Return a description of a listed record's bytes, without reading all of them.

        `file` chooses a file of a dataset by its path, or a file of a template by its URL. `at`
        chooses the version of a file behind a URL at that time (None: the last one). Without a
        record, `file` is the id of an object of interest: a handle, or the URL of a file. Raises
        ContentError, StoreError.
        """
        if record is None:
            return self._object(manifest, file, at)
        if record.deleted:
            raise ContentError("withdrawn", f"{record.identifier} was withdrawn or deleted")
        kind = find_kind(record.kind)
        if kind.is_capture:
            capture = CaptureRow.of(record.identifier, record.position, record.sets, record.fields)
            return self.of_capture(manifest, capture)
        if kind.has_files:
            return self._object_content(record.identifier, stored.find_file(record, file))
        if kind.named_files:
            if file:
                holding = self._objects.of_file(manifest, record.fields, file, at)
            else:
                holding = self._objects.of_template(manifest, record.fields["handle"], at)
            return self._object_content(record.identifier, holding)
        raise ContentError("no-content", f"{record.identifier} has no bytes of its own")

    @contextmanager
    def open_content(
        self, content: Content, *, coded: bool = False, verified: bool = True
    ) -> Iterator[BinaryIO]:
        """Open the bytes as a stream for forward reading.

        Transfer and content codings are decoded. With `coded` the payload stays as stored. With
        `verified`, the last read raises ContentError damaged if the stored payload does not have
        the digest that its record declares. Raises ContentError, StoreError.
        """
        if isinstance(content, HeldContent) and content.holding is not None:
            with stored.open_stored(self._store, content.holding, checked=verified) as pieces:
                yield archived_payload.read_verified(pieces, pieces)
            return
        capture = content.original or content.capture
        if capture is None:
            raise ContentError("no-content", f"{content.identifier} has no bytes of its own")
        if capture.damaged:
            self._prove(content, capture, verified=verified)
        with archived_payload.open_record(self.archives, capture) as record:
            bears, chunked = _borne(record.document)
            source = archived_payload.verify_pieces(
                record.document.payload(),
                _declared_digest(capture) if verified else None,
                archived_payload.show_place(capture),
                chunked=chunked,
                # A known length means that we read the payload, so the digest is ours and not an
                # index's.
                head=record.document.head if capture.length is None else None,
            )
            try:
                decoded = source
                if not coded:
                    decoded = codings.decode_codings(source, bears, chunked=chunked)
            except ContentCodingError as error:
                raise ContentError("undecodable", str(error)) from error
            yield archived_payload.read_verified(decoded, source)

    def open_part(self, content: Content, first: int, length: int) -> BinaryIO:
        """Open `length` bytes, from the byte `first`, of content that is not packed (`stretch`).

        Raises ContentError, StoreError.
        """
        stretch = content.stretch
        assert stretch is not None
        if content.capture is not None:
            return self.archives.open(stretch.address, stretch.offset + first, length)
        key = stretch.address.removeprefix(f"{self._store.address}/")
        return self._store.open(key, stretch.offset + first, length)

    def _prove(self, content: Content, capture: CaptureRow, *, verified: bool) -> None:
        """Raise ContentError unless a digest can verify the bytes of a damaged member.

        If a part is read without verification, this reads and verifies all bytes first.
        """
        if _declared_digest(capture) is None:
            detail = "its compressed member is damaged, and it has no digest to verify its bytes"
            raise ContentError("damaged", f"{archived_payload.show_place(capture)}: {detail}")
        if not verified:
            with self.open_content(content, coded=True) as whole:
                while whole.read(_STEP):
                    pass

    def _object(self, manifest: Manifest, id_: str, at: datetime | None) -> Content:
        """Return an object of interest by its id; it must be listed and not withdrawn."""
        if not id_:
            raise ContentError("unknown", "no item was named")
        listed = self._template(manifest, id_)
        if listed is not None:
            return self.find(manifest, listed, at=at)
        holding = self._objects.of_url(manifest, id_, at)
        naming = self._objects.redirects.handles(manifest, id_)
        templates = [self._template(manifest, handle) for handle in naming]
        if not any(template is not None and not template.deleted for template in templates):
            raise ContentError("withdrawn", f"{id_}: no published template names it")
        return self._object_content(id_, holding)

    def _template(self, manifest: Manifest, handle: str) -> PublishedRecord | None:
        prefix = self._prefix or oai_name.to_oai(manifest.namespace, "")
        return self._repository.record(manifest, oai_name.template_identifier(prefix, handle))

    def _object_content(self, name: str, holding: Holding) -> Content:
        return HeldContent(
            identifier=name,
            url=holding.url,
            date=holding.date,
            status=None,
            media_type=holding.media_type,
            headers=(),
            digest=_label(holding.digest),
            size=holding.size,
            name=holding.name,
            stretch=stored.stretch(self._store, holding),
            holding=holding,
        )

    def of_capture(self, manifest: Manifest, capture: CaptureRow) -> Content:
        """Return a description of a listed capture's bytes. Raises ContentError, StoreError."""
        original = self._original(manifest, capture) if capture.is_revisit else None
        payload = original or capture
        with archived_payload.open_record(self.archives, payload) as record:
            own = self._own(capture) if original else record.document
            answer = own if own is not None and own.fields else record.document
            bears, chunked = _borne(record.document)
            # Other codings stay undecoded.
            undone = chunked or not codings.DECODABLE.isdisjoint(bears)
            named = [*bears, "chunked"] if chunked else bears
            facts = {"coded": ", ".join(named)} if named else {}
            if payload.truncated:
                facts["truncated"] = payload.truncated
            if payload.damaged:
                facts["damaged"] = payload.damaged
            place = record.document.place
            stretch = None
            if not undone and place is not None and payload.length is not None:
                bucket, key = self.archives.bucket(record.address)
                stretch = ByteRange(record.address, place, payload.length, bucket, key)
            # A revisit without a status, or with 304, has that of its original.
            has_own = original is None or capture.status not in (None, _NOT_MODIFIED)
            fields = (*answer.fields, *record.document.fields)
            types = (text for name, text in fields if name.lower() == "content-type" and text)
            return Content(
                identifier=capture.identifier,
                url=capture.url,
                date=capture.time and capture.time.replace(tzinfo=UTC),
                status=capture.status if has_own else payload.status,
                media_type=next(types, payload.mime or ""),
                headers=answer.fields,
                digest=_label(_declared_digest(payload)),
                size=None if undone else payload.length,
                capture=capture,
                original=original,
                stretch=stretch,
                facts=facts,
            )

    def _original(self, manifest: Manifest, capture: CaptureRow) -> CaptureRow:
        """Return the capture with the payload of a revisit. Raises ContentError."""
        record = None
        if capture.original is not None:
            record = self._repository.record(manifest, capture.original)
        if record is None or record.deleted or record.kind not in CAPTURES:
            raise ContentError(
                "unresolved", f"{capture.identifier}: the capture with its bytes is unknown"
            )
        original = CaptureRow.of(record.identifier, record.position, record.sets, record.fields)
        if original.is_revisit:
            raise ContentError("unresolved", f"{capture.identifier}: its original has no bytes")
        return original

    def _own(self, capture: CaptureRow) -> Document | None:
        """Return a revisit's own record, which may have HTTP headers; None if it is unreadable."""
        try:
            with archived_payload.open_record(self.archives, capture) as record:
                return record.document
        except ContentError:
            return None  # the payload is readable without it


def _declared_digest(capture: CaptureRow) -> DeclaredDigest | None:
    """Return a capture's digest; one without a label is a SHA-1 in base32."""
    if not capture.digest:
        return None
    text = capture.digest if ":" in capture.digest else f"sha1:{capture.digest}"
    return digests.parse_digest(text.encode())


def _label(declared: DeclaredDigest | None) -> str:
    """Return a digest with its label, or "" for None."""
    if declared is None:
        return ""
    text = declared.text()
    return text if ":" in text else f"{declared.algorithm}:{text}"


def _borne(document: Document) -> tuple[list[str], bool]:
    """Return the payload's codings in the order of application, and whether it is chunked."""
    message = document.message
    if message is None or not message.has_codings():
        return [], False
    named = [name for name in message.codings() if name not in _NO_CODING]
    chunked = "chunked" in message.tokens(b"transfer-encoding")
    return codings.detect_codings(document.start(codings.START), named, chunked=chunked)
