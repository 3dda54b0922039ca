"""Checks of the records of publishes in `obi/`: their chain, and its end.

Each record names the one before it and its digest. What the last records must say follows from the
newest snapshot, so one that was removed or altered at the end is found as well.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from builder.obi.publishes import PUBLISH, PUBLISHES, PublishRecord, parse_record
from builder.snapshot.template_changes import RecordedState, derive_records
from builder.store.findings import Finding
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_EDITED, _MISSING = "obi-publish-edited", "obi-publish-missing"


def publish_findings(store: Writer, now: datetime) -> Iterator[Finding]:
    """Yield findings on the records of publishes. Raises StoreError."""
    manifest = _read_newest(store, now)  # before the records, which a publish writes later
    stored: dict[str, bytes] = {}
    records: list[PublishRecord] = []
    findings: list[Finding] = []
    for where in store.keys(PUBLISHES):
        stored[where] = b""
        try:
            stored[where] = store.read(where)
            records.append(parse_record(stored[where], where))
        except DamagedStore as error:
            findings.append(Finding(_EDITED, where, str(error)))
    findings += _check_links(stored, records)
    if not findings and manifest is not None:
        with suppress(MissingObject, DamagedStore):  # of records, which other checks report
            findings += _check_end(store, manifest, records)
    yield from findings


def _read_newest(store: Writer, now: datetime) -> Manifest | None:
    """Return the newest manifest if it is in effect and complete; other checks report damage."""
    catalogue = Catalogue(store)
    try:
        pointer = catalogue.pointer()
        newest = pointer.newest()
        if newest is None or not pointer.settled or newest.effective > now:
            return None
        return catalogue.manifest(newest.snapshot)
    except (DamagedStore, MissingObject):
        return None


def _check_links(
    stored: Mapping[str, bytes], records: Sequence[PublishRecord]
) -> Iterator[Finding]:
    """Yield findings on the links between the records, given all objects that are stored."""
    before: PublishRecord | None = None
    for record in records:
        link = record.previous
        if not record.is_linked or (link is None and before is None):
            if before is not None and before.is_linked:
                yield Finding(_EDITED, record.key, "it names no record before it, as others do")
        elif link is None:
            yield Finding(_EDITED, record.key, "it names no record before it, but there is one")
        elif link.key not in stored:
            yield Finding(_MISSING, link.key, f"{record.key} follows on it")
        elif hashlib.sha256(stored[link.key]).hexdigest() != link.sha256:
            yield Finding(_EDITED, link.key, f"{record.key} follows on one of another content")
        elif before is not None and link.key != before.key:
            yield Finding(_EDITED, before.key, f"{record.key} follows on {link.key}, not on it")
        before = record


def _check_end(
    store: Writer, manifest: Manifest, records: Sequence[PublishRecord]
) -> Iterator[Finding]:
    """Yield findings on the records that the newest snapshot shows to be missing or different."""
    for record in derive_records(store, manifest, RecordedState.of(reversed(records))):
        problem = "the newest snapshot has changes of templates that no record names"
        yield Finding(_MISSING, record.key, problem)
        return
    last = records[-1] if records else None
    if last is None or not last.is_linked:
        return
    earlier = [record for record in records if record.effective < last.effective]
    derived = derive_records(store, manifest, RecordedState.of(reversed(earlier)))
    expected = {_describe(record) for record in derived}
    for record in records[len(earlier) :]:
        if _describe(record) not in expected:
            yield Finding(_EDITED, record.key, "the newest snapshot shows another change")


def _describe(record: PublishRecord) -> tuple[object, ...]:
    """Return what a record says; a publish that changed no template may be dated differently."""
    if record.kind == PUBLISH:
        return record.kind, record.run, record.digest
    return record.kind, record.effective, record.identifiers, record.reason
