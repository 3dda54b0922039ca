"""Records of publishes, kept beside the runs: what a rebuild of the store from `obi/` needs.

A record says which runs a publish made visible, or which templates were withdrawn or reinstated,
and when that took effect. Publishing the same runs at the same instants gives the same items,
tombstones and datestamps again. So harvesters can go on with a rebuilt store.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from builder.obi import key
from builder.obi.history import Committed
from functions.snapshot import instant
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer

PUBLISHES = f"{key.ROOT};publishes/"
"""Prefix of the records in the store."""
PUBLISH, WITHDRAW, REINSTATE = "publish", "withdraw", "reinstate"
KINDS = (PUBLISH, WITHDRAW, REINSTATE)


@dataclass(frozen=True, slots=True)
class PublishRecord:
    """A snapshot that changed templates; `effective` is its instant.

    `run` is the last run that a publish included, and `digest` that of its commit.json. A record
    of another kind has the identifiers of the items and, of a withdrawal, the reason.
    """

    kind: str
    effective: datetime
    run: int = 0
    digest: str = ""
    identifiers: tuple[str, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str:
        """The key of the record. No two snapshots take effect at the same instant."""
        return _place(self.effective)

    def document(self) -> bytes:
        """Return the record as it is stored."""
        told = {
            "kind": self.kind,
            "effective": instant.to_text(self.effective),
            "run": self.run,
            "digest": self.digest,
            "identifiers": list(self.identifiers),
            "reason": self.reason,
        }
        return json.dumps(told, ensure_ascii=False, indent=1).encode() + b"\n"


def parse_record(data: bytes, where: str) -> PublishRecord:
    """Parse the record at `where`. Raises DamagedStore."""
    try:
        told = json.loads(data)
        found = PublishRecord(
            str(told["kind"]),
            instant.from_text(told["effective"]),
            int(told["run"]),
            str(told["digest"]),
            tuple(map(str, told["identifiers"])),
            str(told["reason"]),
        )
        if found.kind not in KINDS or found.key != where:
            raise ValueError("it is not a record of its place")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{where} is damaged: {error!r}") from error
    return found


def read_records(store: Writer, after: datetime | None = None) -> list[PublishRecord]:
    """Return the records after an instant, in their order. Raises DamagedStore."""
    begin = _place(after) if after else ""
    keys = [where for where in store.keys(PUBLISHES) if where > begin]
    return [parse_record(store.read(where), where) for where in keys]


def _place(effective: datetime) -> str:
    return f"{PUBLISHES}{int(effective.timestamp()):011}.json"


def write_record(store: Writer, record: PublishRecord) -> None:
    """Store a record; one that is there stays."""
    try:
        store.create(record.key, record.document())
    except Conflict:
        return


def record_publish(store: Writer, runs: Sequence[Committed], manifest: Manifest) -> None:
    """Record that a snapshot made runs visible, unless an earlier one did."""
    run, last = manifest.run, None
    if not run:
        return
    for where in reversed([*store.keys(PUBLISHES)]):
        record = parse_record(store.read(where), where)
        if record.kind == PUBLISH:
            last = record
            break
    digest = next((one.digest for one in runs if one.tist == run), None)
    if digest is not None and (last is None or last.run < run):
        write_record(store, PublishRecord(PUBLISH, manifest.effective, run, digest))


def record_items(
    store: Writer, kind: str, manifest: Manifest | None, items: Sequence[str], reason: str = ""
) -> None:
    """Record which templates a snapshot withdrew or reinstated; None stands for no snapshot."""
    if manifest is None or not manifest.prefix:
        return
    named = tuple(one for one in items if one.startswith(manifest.prefix))
    if named:
        write_record(store, PublishRecord(kind, manifest.effective, 0, "", named, reason))
