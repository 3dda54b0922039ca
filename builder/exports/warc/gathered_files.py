"""WARC/1.1 files of the files at URLs as a run found them, for web archive tools.

A version that a run logged becomes a response record with its header and its request, or, if these
were not kept, a resource record with the file's bytes alone. A new redirect becomes a response
record without a body, which is not kept. An unchanged file becomes a revisit record, which refers
to the record with its bytes. The date of each record is that of the run, or of an imported capture.
"""

import hashlib
import io
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from builder.errors import UsageError
from builder.exports import staging
from builder.exports.obi_source import LoggedObject, to_date
from builder.exports.warcinfo import software
from builder.http.responses import REDIRECTS, content_coding, fields_by_name
from builder.obi import content
from builder.obi.content import ExchangeRow
from builder.runtime import Advance
from builder.sources.datasets.item import HttpExchange
from builder.sources.datasets.strategies.warc import http_head, request_head
from builder.store.durable import sync_file
from functions.content.archived_payload import read_pieces
from functions.snapshot.store import Reader
from functions.store.window_stream import PieceStream

_HTTP = "application/http"  # says that the block begins with a header, whatever a server sent


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A run that found files: its tist, files and exchanges, as obi_source yields them.

    Of an `imported` run, the exchanges have the times of captures.
    """

    tist: int
    files: Callable[[], Iterable[LoggedObject]]
    exchanges: Callable[[], Iterable[ExchangeRow]] = tuple
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result: number of WARC files, resource, revisit and response records.

    `there` counts existing files.
    """

    files: int
    resources: int
    revisits: int
    there: int
    responses: int = 0


def is_file(target: Path) -> bool:
    """Return whether the target is named like a WARC file, rather than a folder of them."""
    return target.name.endswith((".warc", ".warc.gz"))


def export(store: Reader, runs: Sequence[FetchedFile], target: Path, advance: Advance) -> Recorded:
    """Write one WARC file of all `runs` or, into a folder, one for each run that has none yet.

    A file gets its name only when it is complete and synced. `advance` is called with the number of
    runs. Raises UsageError, DamagedStore, MissingObject and StoreError.
    """
    whole = is_file(target)
    if whole and target.exists():
        raise UsageError(f"{target} already exists: choose another file, or a folder to add to")
    files, counts = 0, Counter[str]()
    with staging.beside(target) as scratch:
        if not whole:
            target.mkdir(exist_ok=True)
        groups = [runs] if whole else [[run] for run in runs]
        for group in groups:
            path = target if whole else target / f"run-{group[0].tist}.warc.gz"
            if path.exists():
                continue
            with (scratch / path.name).open("xb") as out:
                records = _Records(store, out, path.name, group[-1].tist)
                for run in group:
                    records.add(run)
                    advance(1)
                sync_file(out)
            (scratch / path.name).rename(path)
            files += 1
            counts += records.counts
        staging.sync()
    there = len(groups) - files
    return Recorded(files, counts["resource"], counts["revisit"], there, counts["response"])


class _Records:
    """Writer of the records of a named file, after its warcinfo record."""

    def __init__(self, store: Reader, out: BinaryIO, name: str, last: int) -> None:
        self._store = store
        self._writer = WARCWriter(out, gzip=name.endswith(".gz"), warc_version="1.1")
        self.counts: Counter[str] = Counter()
        about = {
            "software": software(),
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "description": "files behind the URLs of ReDIF templates",
        }
        record = self._writer.create_warcinfo_record(name, about)
        record.rec_headers.replace_header("WARC-Record-ID", _name(last, name))
        record.rec_headers.replace_header("WARC-Date", to_date(last))
        self._writer.write_record(record)

    def add(self, run: FetchedFile) -> None:
        """Write a record for each file that the run found, and for each new redirect."""
        exchanges = {row.id: row for row in run.exchanges()}
        for row in exchanges.values():
            if row.status in REDIRECTS:
                when = row.at if run.imported else run.tist
                head = http_head(_exchange(row), 0, unpacked=False)
                self._head("response", run.tist, row, head, when, {"WARC-Truncated": "unspecified"})
                self._request(run.tist, row, when)
        for noted in run.files():
            exchange = exchanges.get(noted.version.id)
            when = exchange.at if exchange is not None and run.imported else run.tist
            if noted.tist == run.tist and exchange is not None and exchange.headers:
                self._response(noted, exchange, when)
            elif noted.tist == run.tist:
                self._resource(noted, when)
            else:
                self._revisit(run.tist, noted, when)

    def _response(self, noted: LoggedObject, row: ExchangeRow, when: int) -> None:
        version, exchange = noted.version, _exchange(row)
        coded = content_coding(fields_by_name(exchange.headers)) is not None
        head = http_head(exchange, version.bytes, unpacked=coded and version.encoding is None)
        digest = hashlib.sha256(head)
        for data in content.read_parts(self._store, version.key, version.sha256):
            digest.update(data)
        headers = _digests(digest.hexdigest(), version.sha256) | {"WARC-Date": to_date(when)}
        with content.open_version(self._store, version) as payload:
            block = cast(BinaryIO, PieceStream(chain((head,), read_pieces(payload))))
            self._http("response", noted.tist, row, block, len(head) + version.bytes, headers)
        self._request(noted.tist, row, when)

    def _request(self, tist: int, row: ExchangeRow, when: int) -> None:
        """Write the request, if its header was kept."""
        if row.sent:
            answer = {"WARC-Concurrent-To": _name(tist, row.id)}
            self._head("request", tist, row, request_head(_exchange(row)), when, answer)

    def _head(
        self,
        kind: str,
        tist: int,
        row: ExchangeRow,
        head: bytes,
        when: int,
        more: Mapping[str, str],
    ) -> None:
        """Write a record that has a header alone."""
        digests = _digests(hashlib.sha256(head).hexdigest(), hashlib.sha256().hexdigest())
        headers = {**digests, "WARC-Date": to_date(when), **more}
        self._http(kind, tist, row, io.BytesIO(head), len(head), headers)

    def _http(
        self,
        kind: str,
        tist: int,
        row: ExchangeRow,
        block: BinaryIO,
        length: int,
        more: Mapping[str, str],
    ) -> None:
        """Write a record whose block begins with a header."""
        name = row.id if kind == "response" else f"{kind} {row.id}"
        address = {"WARC-IP-Address": row.address} if row.address else {}
        headers = {"WARC-Record-ID": _name(tist, name), **more, **address}
        self._write(kind, row.id, block, length, f"{_HTTP}; msgtype={kind}", headers)

    def _resource(self, noted: LoggedObject, when: int) -> None:
        version = noted.version
        media_type = " ".join((version.media_type or "").split())
        if not media_type or media_type.lower().startswith(_HTTP):
            media_type = "application/octet-stream"
        headers = {"WARC-Record-ID": _name(noted.tist, version.id), "WARC-Date": to_date(when)}
        headers |= _digests(version.sha256, version.sha256)
        with content.open_version(self._store, version) as payload:
            self._write("resource", version.id, payload, version.bytes, media_type, headers)

    def _write(
        self,
        kind: str,
        url: str,
        block: BinaryIO,
        length: int,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        record = self._writer.create_warc_record(
            url,
            kind,
            payload=block,
            length=length,
            http_headers=StatusAndHeaders("200", []),  # else it would write its own
            warc_content_type=media_type,
            warc_headers_dict=headers,
        )
        record.http_headers = None
        self._writer.write_record(record)
        self.counts[kind] += 1

    def _revisit(self, tist: int, noted: LoggedObject, when: int) -> None:
        identifier = noted.version.id
        record = self._writer.create_revisit_record(
            identifier,
            f"sha256:{noted.version.sha256}",
            identifier,
            to_date(noted.captured or noted.tist),
            warc_headers_dict={
                "WARC-Record-ID": _name(tist, identifier),
                "WARC-Date": to_date(when),
                "WARC-Refers-To": _name(noted.tist, identifier),
            },
        )
        self._writer.write_record(record)
        self.counts["revisit"] += 1


def _exchange(row: ExchangeRow) -> HttpExchange:
    def parse(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple((name, value.strip()) for name, _, value in (x.partition(":") for x in lines))

    return HttpExchange(
        url=row.id,
        at=datetime.fromtimestamp(row.at, UTC).strftime("%Y%m%d%H%M%S"),
        status=row.status,
        reason=row.reason,
        sent=parse(row.sent),
        headers=parse(row.headers),
        address=row.address,
    )


def _name(tist: int, identifier: str) -> str:
    """Return the id of a record, which is the same on every export."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{tist} {identifier}')}>"


def _digests(block: str, payload: str) -> dict[str, str]:
    return {"WARC-Block-Digest": f"sha256:{block}", "WARC-Payload-Digest": f"sha256:{payload}"}
